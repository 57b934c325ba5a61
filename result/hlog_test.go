package result

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// randomCounts returns counts in up to most buckets over the whole range.
func randomCounts(rnd *rand.Rand, most int) *measure.Counts {
	c := new(measure.Counts)
	for range rnd.IntN(most + 1) {
		c.Add(rnd.Int64N(1<<42)>>rnd.IntN(42), 1+rnd.Uint64N(1<<40)>>rnd.IntN(41))
	}
	return c
}

// buckets returns what two equal histograms must have in common.
func buckets(c *measure.Counts) map[int64]uint64 {
	m := map[int64]uint64{}
	for v, n := range c.Buckets() {
		m[v] = n
	}
	return m
}

func TestHdrHistogramDecodesWhatWeEncode(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var e encoder
	for range 30 {
		c := randomCounts(rnd, 200)
		text := must.Get(e.encode(c))(t)
		h := must.Get(hdr.Decode(text))(t)
		got := map[int64]uint64{}
		for _, bar := range h.Distribution() {
			if bar.Count > 0 {
				got[bar.From] = uint64(bar.Count)
			}
		}
		if d := cmp.Diff(buckets(c), got); d != "" {
			t.Fatal(d)
		}
		ours := must.Get(decode(text))(t)
		if d := cmp.Diff(buckets(c), buckets(ours)); d != "" {
			t.Fatal(d)
		}
	}
}

func TestWeDecodeWhatHdrHistogramEncodes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		h := hdr.New(measure.Lowest, measure.Highest, measure.Digits)
		want := new(measure.Counts)
		for range rnd.IntN(100) {
			v, n := rnd.Int64N(measure.Highest)>>rnd.IntN(42), 1+rnd.Int64N(1000)
			must.Do(t, h.RecordValues(v, n))
			want.Add(v, uint64(n))
		}
		text := must.Get(h.Encode(hdr.V2CompressedEncodingCookieBase))(t)
		got := must.Get(decode(text))(t)
		if d := cmp.Diff(buckets(want), buckets(got)); d != "" {
			t.Fatal(d)
		}
	}
}

func TestCountsBeyond63BitsAreRefused(t *testing.T) {
	var c measure.Counts
	c.Add(5, math.MaxInt64+1)
	if _, err := new(encoder).encode(&c); err == nil {
		t.Fatal("encoded")
	}
}

func TestZigZag(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 1 << 31, math.MaxInt64, math.MinInt64, 1<<56 - 1, 1 << 55} {
		b := appendZigZag(nil, v)
		got, n := zigZag(append(b, 0xff))
		if got != v || n != len(b) || n > maxCountBytes {
			t.Errorf("%d came back as %d from % x, %d bytes used", v, got, b, n)
		}
		if _, n := zigZag(b[:len(b)-1]); n != 0 {
			t.Errorf("%d cut short was accepted", v)
		}
	}
}

// record records random events of one interval.
func record(r *measure.Recorder, rnd *rand.Rand) {
	for range rnd.IntN(200) {
		due := rnd.Int64N(5e9)
		start := due + rnd.Int64N(1e9)>>rnd.IntN(30)
		done := start + rnd.Int64N(1<<42)>>rnd.IntN(42)
		s, v := r.Sender(rnd.IntN(3)), r.Receiver(rnd.IntN(3))
		s.Handed(due, due, due+(start-due)/2, 0, start, 100)
		if rnd.IntN(10) == 0 {
			s.Failed(due, start, done)
			continue
		}
		s.Confirmed(due, start, done, 0)
		v.Delivered(due, start, done, 0)
		v.Settled(done, done+rnd.Int64N(1000), r.Phase(due))
	}
}

// Writes random intervals and reads them back: the file must contain each distribution's counts
// exactly once.
func TestIntervalLinesSumToTotal(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := measure.NewRecorder(measure.Config{SendShards: 2, ReceiveShards: 2, From: 1e9, To: 5e9})
		dir := filepath.Join(t.TempDir(), "run")
		f := must.Get(Create(dir))(t)
		must.Do(t, f.StartIntervals(time.Unix(1_700_000_000, 123_456_789), "test"))
		var all measure.Snapshot
		var in measure.Interval
		for i := range int64(8) {
			record(r, rnd)
			r.Next((i+1)*1e9, &in)
			must.Do(t, f.AppendInterval(&in))
		}
		r.Read(8e9, &all)
		censored := randomCounts(rnd, 20)
		must.Do(t, f.AppendCensored(measure.SendResponse, measure.Measure, 0, 8e9, censored))
		must.Do(t, f.Close())
		file := must.Get(os.Open(filepath.Join(dir, FileIntervals)))(t)
		sums, err := Totals(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]map[int64]uint64{}
		for k := range all.Kinds {
			for p := range all.Kinds[k] {
				if c := &all.Kinds[k][p]; c.Total() > 0 {
					want[Tag(measure.Kind(k), measure.Phase(p))] = buckets(c)
				}
			}
		}
		if censored.Total() > 0 {
			want[CensoredTag(measure.SendResponse, measure.Measure)] = buckets(censored)
		}
		got := map[string]map[int64]uint64{}
		for tag, c := range sums {
			got[tag] = buckets(c)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
}

func TestLineTimesAreExactToNanosecond(t *testing.T) {
	var b bytes.Buffer
	w := must.Get(NewLogWriter(&b, time.Unix(1_700_000_000, 123_456_789), "v1"))(t)
	var c measure.Counts
	c.Add(1_234_567, 2)
	for _, span := range [][2]int64{{0, 1_000_000_000}, {1_000_000_001, 2_000_000_000}, {-5, 7}, {280_000_000_000_000, 280_001_999_999_999}} {
		must.Do(t, w.Write("a.b", span[0], span[1], &c))
		from, to := max(span[0], 0), span[1]
		l := last(t, b.Bytes())
		if l.Tag != "a.b" || l.From != from || l.To != to || l.Counts.Total() != 2 {
			t.Errorf("wrote %d to %d, read %+v", from, to, l)
		}
	}
	if !strings.Contains(b.String(), "Tag=a.b,1.000000001,0.999999999,1.234567,HIST") {
		t.Errorf("no such line in\n%s", b.String())
	}
}

func last(t *testing.T, log []byte) *Line {
	t.Helper()
	var last *Line
	for r := NewLogReader(bytes.NewReader(log)); ; {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			t.Fatal(err)
		}
		last = l
	}
}

func TestBadLogLines(t *testing.T) {
	var e encoder
	var c measure.Counts
	c.Add(7, 1)
	text := must.Get(e.encode(&c))(t)
	good := string(text)
	for name, tt := range map[string]struct {
		line string
		want error
	}{
		"a tag alone":                   {"Tag=x", ErrMalformed},
		"three columns":                 {"1.0,1.0," + good, ErrMalformed},
		"a time that is none":           {"x,1.0,1.0," + good, ErrMalformed},
		"a negative time":               {"-1,1.0,1.0," + good, ErrMalformed},
		"a length that is none":         {"1,1e3,1.0," + good, ErrMalformed},
		"no base64":                     {"1,1,1,###", ErrMalformed},
		"an empty histogram":            {"1,1,1,", ErrMalformed},
		"a histogram cut short":         {"1,1,1," + good[:len(good)-8], ErrMalformed},
		"the old V1 encoding":           {"1,1,1,HISTIgAAAFd42pNp", ErrMalformed},
		"a log of microseconds":         {"0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=", ErrMalformed},
		"a log of a newer version":      {"#[Schema: weir.intervals/v2]", ErrNewer},
		"a log of another kind of ours": {"#[Schema: weir.result/v1]", ErrNotResult},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewLogReader(strings.NewReader(tt.line + "\nTag=ok,1.5,1,1," + good + "\n"))
			if _, err := r.Next(); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "line 1") {
				t.Fatalf("error %v, want %v of line 1", err, tt.want)
			}
			if l, err := r.Next(); err != nil || l.Tag != "ok" || l.From != 1_500_000_000 {
				t.Fatalf("the line after it: %+v, %v", l, err)
			}
		})
	}
}

func BenchmarkWriteLine(b *testing.B) {
	c := new(measure.Counts)
	for v := int64(10_000); v < 10_000_000; v += v >> 9 {
		c.Add(v, uint64(v%97+1))
	}
	w := must.Get(NewLogWriter(io.Discard, time.Unix(0, 0), "bench"))(b)
	for b.Loop() {
		must.Do(b, w.Write("send.response.measure", 0, 1e9, c))
	}
}

func TestLogReadsOnlySelectedTags(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := must.Get(NewLogWriter(&b, time.Unix(1, 0), "v0"))(t)
	c := new(measure.Counts)
	c.Add(1000, 3)
	for _, tag := range []string{"a", "b", "a"} {
		must.Do(t, w.Write(tag, 1e9, 2e9, c))
	}
	r := NewLogReader(&b)
	for _, want := range []string{"a", "b", "a"} {
		l, err := r.NextOf(func(tag string) bool { return tag == "b" })
		if err != nil || l.Tag != want || l.To != 2e9 || (l.Counts != nil) != (want == "b") {
			t.Errorf("%s: %+v, %v", want, l, err)
		}
	}
}
