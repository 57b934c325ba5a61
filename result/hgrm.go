package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/weirmq/weir/measure"
)

// ticksPerHalf is how many rows a percentile table has per halving of the distance to 100 %:
// HdrHistogram's own default.
const ticksPerHalf = 5

// WriteHGRM writes c as HdrHistogram's percentile table, as its Java outputPercentileDistribution
// does, in nanoseconds, preceded by a comment with the schema. censored is how many samples are not
// included because only a lower bound of them is known; 0 writes no line about them.
func WriteHGRM(w io.Writer, title string, c *measure.Counts, censored uint64) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#[Schema: %s]\n#[%s, in nanoseconds]\n", SchemaHGRM, title)
	if censored > 0 {
		fmt.Fprintf(&b, "#[Censored = %12d samples, not in this table: see result.json]\n", censored)
	}
	fmt.Fprintf(&b, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	percentileRows(c, func(value int64, percentile float64, count uint64) {
		if percentile < 100 {
			fmt.Fprintf(&b, "%12.3f %2.12f %10d %14.2f\n", float64(value), percentile/100, count, 1/(1-percentile/100))
			return
		}
		fmt.Fprintf(&b, "%12.3f %2.12f %10d\n", float64(value), percentile/100, count)
	})
	fmt.Fprintf(&b, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", c.Mean(), c.StdDev())
	fmt.Fprintf(&b, "#[Max     = %12.3f, Total count    = %12d]\n", float64(c.Max()), c.Total())
	// As HdrHistogram counts them: 32 doublings of 2048 values, half of each
	// but the first shared with the one before.
	fmt.Fprintf(&b, "#[Buckets = %12d, SubBuckets     = %12d]\n", 32, 2048)
	_, err := w.Write(b.Bytes())
	return err
}

// percentileRows visits the rows of the table: HdrHistogram's
// PercentileIterator. The steps get finer as the percentile nears 100; a bucket
// that spans several steps has a row for each, the last bucket has one, and one
// more at 100. With n samples that is at most some 5 log2(n) rows.
func percentileRows(c *measure.Counts, row func(value int64, percentile float64, count uint64)) {
	total := c.Total()
	level := 0.0
	var sum uint64
	for v, n := range c.Buckets() {
		sum += n
		value := min(measure.HighestEquivalent(v), c.Max())
		if sum == total {
			row(value, level, sum)
			row(value, 100, sum)
			return
		}
		for at := 100 * float64(sum) / float64(total); at >= level && level < 100; {
			row(value, level, sum)
			halvings := math.Floor(math.Log2(100/(100-level))) + 1
			level += 100 / (ticksPerHalf * math.Pow(2, halvings))
		}
	}
}

// Bounds of a percentile table: WriteHGRM has at most some 330 rows.
const (
	maxRows = 1 << 14
	maxRow  = 4096 // bytes
)

// A Table is a percentile table that was read.
type Table struct {
	Title        string // "" if absent
	Censored     uint64 // samples that are not included
	Rows         []TableRow
	Mean, StdDev float64 // as printed
	Max          float64
	Total        uint64 // samples that are included
}

// A TableRow says that Count samples are at most Value, and that this is as far
// as the share Percentile, 0 to 1, reaches.
type TableRow struct {
	Value      float64 // ns in weir's tables
	Percentile float64
	Count      uint64
}

// ReadHGRM reads a percentile table of HdrHistogram, by weir or another program. The error is a
// *FileError that names the line: ErrNotResult for another kind of file, ErrNewer for a newer
// schema, ErrTorn for a truncated table.
func ReadHGRM(r io.Reader) (*Table, error) {
	t := new(Table)
	lines := newLineReader(r, maxRow)
	ended, headed := false, false
	for {
		b, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line := strings.TrimSpace(string(b))
		switch {
		case line == "":
		case strings.HasPrefix(line, "#["):
			var last bool
			if last, err = t.comment(strings.TrimSuffix(strings.TrimPrefix(line, "#["), "]")); last {
				ended = true
			}
		case !headed:
			if headed = strings.HasPrefix(line, "Value"); !headed {
				err = fmt.Errorf("%w: no percentile table, which begins with its columns' names", ErrNotResult)
			}
		case len(t.Rows) == maxRows:
			err = fmt.Errorf("%w: more than %d rows", ErrMalformed, maxRows)
		default:
			err = t.row(strings.Fields(line))
		}
		if err != nil {
			return nil, lines.wrong(err)
		}
	}
	switch n := len(t.Rows); {
	case !ended:
		return nil, &FileError{Err: fmt.Errorf("%w: the table has no end, which says its maximum and total", ErrTorn)}
	case n > 0 && t.Rows[n-1].Count != t.Total || n == 0 && t.Total > 0:
		return nil, &FileError{Err: fmt.Errorf("%w: the rows do not reach the total of %d", ErrMalformed, t.Total)}
	}
	return t, nil
}

// comment parses a line in #[ ], and reports whether it is the line with the total.
func (t *Table) comment(text string) (last bool, err error) {
	name, value, pair := strings.Cut(text, "=")
	switch name = strings.TrimSpace(name); {
	case strings.HasPrefix(text, "Schema: "):
		return false, checkSchema(strings.TrimPrefix(text, "Schema: "), SchemaHGRM)
	case !pair:
		if title, ok := strings.CutSuffix(text, ", in nanoseconds"); ok && t.Title == "" {
			t.Title = title
		}
		return false, nil
	case name == "Censored":
		t.Censored, err = strconv.ParseUint(first(value), 10, 64)
	case name == "Mean" || name == "Max":
		// Two figures on one line, the second after a comma.
		one, rest, _ := strings.Cut(value, ",")
		_, other, _ := strings.Cut(rest, "=")
		if name == "Mean" {
			t.Mean, err = figure(one)
			if err == nil {
				t.StdDev, err = figure(other)
			}
			break
		}
		last = true
		t.Max, err = figure(one)
		if err == nil {
			t.Total, err = strconv.ParseUint(strings.TrimSpace(other), 10, 64)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %q: %w", ErrMalformed, brief(text), err)
	}
	return last, err
}

// row parses a line of figures: the value, the share, the count and, except in the last,
// 1/(1-share).
func (t *Table) row(cols []string) error {
	if len(cols) != 3 && len(cols) != 4 {
		return fmt.Errorf("%w: %d columns, want 3 or 4", ErrMalformed, len(cols))
	}
	var r TableRow
	var errs [3]error
	r.Value, errs[0] = figure(cols[0])
	r.Percentile, errs[1] = figure(cols[1])
	r.Count, errs[2] = strconv.ParseUint(cols[2], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	var before TableRow
	if n := len(t.Rows); n > 0 {
		before = t.Rows[n-1]
	}
	if r.Value < before.Value || r.Percentile < before.Percentile || r.Percentile > 1 || r.Count < before.Count {
		return fmt.Errorf("%w: the row falls back behind the one before, or goes beyond 1", ErrMalformed)
	}
	t.Rows = append(t.Rows, r)
	return nil
}

// figure parses a finite decimal number.
func figure(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0) {
		err = fmt.Errorf("%q is not a latency", brief(s))
	}
	return v, err
}

// first returns the first word of s, "" for none.
func first(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}
