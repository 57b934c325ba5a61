package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/measure"
)

// Tag returns the tag of the lines of a distribution, "send.response.measure".
func Tag(k measure.Kind, p measure.Phase) string { return k.String() + "." + p.String() }

// CensoredTag returns the tag of the line of a distribution's censored samples.
func CensoredTag(k measure.Kind, p measure.Phase) string { return Tag(k, p) + ".censored" }

// A LogWriter writes an HdrHistogram log, format version 1.3. It is used by one
// goroutine at a time.
type LogWriter struct {
	w    io.Writer
	line []byte
	enc  encoder
}

// NewLogWriter writes the head of a log. Its instants count from epoch. The head's two times are
// whole milliseconds as in all such logs; the epoch to the nanosecond is in result.json. weir is
// the version of the writer.
func NewLogWriter(w io.Writer, epoch time.Time, weir string) (*LogWriter, error) {
	ms := epoch.UnixMilli()
	var head bytes.Buffer
	fmt.Fprintf(&head, "#[Schema: %s]\n", SchemaIntervals)
	fmt.Fprintf(&head, "#[Logged by weir %s]\n", weir)
	fmt.Fprintf(&head, "#[Histogram log format version 1.3]\n")
	fmt.Fprintf(&head, "#[StartTime: %d.%03d (seconds since epoch), %s]\n", ms/1000, ms%1000, epoch.UTC().Format(time.RFC3339Nano))
	fmt.Fprintf(&head, "#[BaseTime: %d.%03d (seconds since epoch)]\n", ms/1000, ms%1000)
	fmt.Fprintf(&head, "#[StartTimestamp and Interval_Length in seconds, Interval_Max in milliseconds, values of the histograms in nanoseconds]\n")
	fmt.Fprintf(&head, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
	if _, err := w.Write(head.Bytes()); err != nil {
		return nil, err
	}
	return &LogWriter{w: w}, nil
}

// Write writes one line: c, counted in [from, to), in ns since the epoch. Each line is one call of
// the underlying Write.
func (l *LogWriter) Write(tag string, from, to int64, c *measure.Counts) error {
	text, err := l.enc.encode(c)
	if err != nil {
		return err
	}
	// Readers of logs do not accept negative times: an interval that begins before the epoch begins
	// with it.
	from = max(from, 0)
	to = max(to, from)
	b := append(l.line[:0], "Tag="...)
	b = append(b, tag...)
	b = append(b, ',')
	b = appendSeconds(b, from)
	b = append(b, ',')
	b = appendSeconds(b, to-from)
	b = append(b, ',')
	b = strconv.AppendFloat(b, float64(c.Max())/1e6, 'f', 6, 64)
	b = append(b, ',')
	b = append(b, text...)
	b = append(b, '\n')
	l.line = b
	_, err = l.w.Write(b)
	return err
}

// appendSeconds appends ns, which must not be negative, as seconds with nine decimals.
func appendSeconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e9, 10)
	frac := strconv.AppendInt(nil, 1e9+ns%1e9, 10)
	frac[0] = '.'
	return append(b, frac...)
}

// A Line is one line of a log.
type Line struct {
	Tag      string // "" if absent
	From, To int64  // ns since the log's base time
	Max      int64  // ns; Interval_Max, which is milliseconds in the file
	Counts   *measure.Counts
}

// maxLine bounds the length of a line: a histogram with all buckets counted in nine bytes,
// uncompressed, in base64, and the columns before it.
const maxLine = maxPayloadBytes*4/3 + 4096

// A LogReader reads an HdrHistogram log of this package's geometry. It holds
// one line at a time.
type LogReader struct{ lines *lineReader }

// NewLogReader returns a reader of r.
func NewLogReader(r io.Reader) *LogReader { return &LogReader{newLineReader(r, maxLine)} }

// Next returns the next histogram, or io.EOF after the last. Other errors are a *FileError that
// names the line: after ErrMalformed Next may be called again for the next line. ErrTorn is the
// last line of a log whose writer was killed; what came before it is valid. A log of another kind
// is ErrNotResult, one of a newer schema ErrNewer; a log that names no schema is read as any
// HdrHistogram log.
func (r *LogReader) Next() (*Line, error) { return r.NextOf(func(string) bool { return true }) }

// NextOf is Next, but decodes only the histograms of wanted tags, which is most of the work. Lines
// of other tags have no Counts, except an unterminated last line, which may be torn.
func (r *LogReader) NextOf(want func(tag string) bool) (*Line, error) {
	for {
		b, err := r.lines.next()
		if err != nil {
			return nil, err
		}
		b = bytes.TrimSuffix(b, []byte("\r"))
		switch {
		case len(b) == 0, b[0] == '"':
			continue
		case b[0] == '#':
			if s, ok := strings.CutPrefix(string(b), "#[Schema: "); ok {
				if err := checkSchema(strings.TrimSuffix(s, "]"), SchemaIntervals); err != nil {
					return nil, r.lines.wrong(err)
				}
			}
			continue
		}
		line, err := parseLine(b, func(tag string) bool { return r.lines.open || want(tag) })
		if err != nil {
			return nil, r.lines.wrong(err)
		}
		return line, nil
	}
}

func parseLine(b []byte, want func(tag string) bool) (*Line, error) {
	var l Line
	if rest, ok := bytes.CutPrefix(b, []byte("Tag=")); ok {
		tag, rest, ok := bytes.Cut(rest, []byte(","))
		if !ok {
			return nil, fmt.Errorf("%w: a tag and nothing else", ErrMalformed)
		}
		l.Tag, b = string(tag), rest
	}
	cols := bytes.SplitN(b, []byte(","), 4)
	if len(cols) != 4 {
		return nil, fmt.Errorf("%w: %d columns, want 4", ErrMalformed, len(cols))
	}
	from, err := seconds(cols[0])
	if err != nil {
		return nil, err
	}
	length, err := seconds(cols[1])
	if err != nil {
		return nil, err
	}
	l.From, l.To = from, from+length
	ms, err := figure(string(cols[2]))
	if err != nil || ms > 1<<42 {
		return nil, fmt.Errorf("%w: %q is not an Interval_Max in milliseconds", ErrMalformed, brief(string(cols[2])))
	}
	l.Max = int64(math.Round(ms * 1e6))
	if want(l.Tag) {
		l.Counts, err = decode(cols[3])
	}
	return &l, err
}

// seconds parses a decimal number of seconds into nanoseconds, exactly.
func seconds(b []byte) (int64, error) {
	const most = 1 << 32 // s: more than a century, and twice it fits int64 ns
	whole, frac, _ := strings.Cut(string(b), ".")
	s, err := strconv.ParseUint(whole, 10, 32)
	if err != nil || s >= most || len(frac) > 18 {
		return 0, fmt.Errorf("%w: %q is not a time in seconds", ErrMalformed, brief(string(b)))
	}
	frac = (frac + "000000000")[:9]
	ns, err := strconv.ParseUint(frac, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a time in seconds", ErrMalformed, brief(string(b)))
	}
	return int64(s)*1e9 + int64(ns), nil
}

// maxTags bounds how many sums Totals keeps; a run has some forty tags.
const maxTags = 256

// Totals reads a whole log and sums its lines by tag. Along with ErrTorn, for a log with a torn
// last line, it returns the sums of all other lines.
func Totals(r io.Reader) (map[string]*measure.Counts, error) {
	sums := map[string]*measure.Counts{}
	for log := NewLogReader(r); ; {
		line, err := log.Next()
		switch {
		case errors.Is(err, io.EOF):
			return sums, nil
		case errors.Is(err, ErrTorn):
			return sums, err
		case err != nil:
			return nil, err
		}
		sum := sums[line.Tag]
		if sum == nil {
			if len(sums) == maxTags {
				return nil, log.lines.wrong(fmt.Errorf("%w: more than %d tags", ErrMalformed, maxTags))
			}
			sum = new(measure.Counts)
			sums[line.Tag] = sum
		}
		if line.Counts.Total() > math.MaxInt64-sum.Total() {
			return nil, log.lines.wrong(fmt.Errorf("%w: the counts of %q exceed 63 bits", ErrMalformed, brief(line.Tag)))
		}
		sum.Merge(line.Counts)
	}
}
