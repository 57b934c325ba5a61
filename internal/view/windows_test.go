package view

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// loggedSeconds writes an interval log of seconds, each with one latency.
func loggedSeconds(t *testing.T, dir string, each ...int64) {
	t.Helper()
	f := must.Get(os.Create(filepath.Join(dir, result.FileIntervals)))(t)
	w := must.Get(result.NewLogWriter(f, time.Unix(1_795_275_128, 0), "test"))(t)
	must.Do(t, w.Write(result.Tag(measure.SendResponse, measure.WarmUp), 0, 2e9, new(measure.Counts)))
	for i, ns := range each {
		c := new(measure.Counts)
		c.Add(ns, 1000)
		from := int64(i+2) * 1e9
		must.Do(t, w.Write(result.Tag(measure.SendResponse, measure.Measure), from, from+1e9, c))
	}
	must.Do(t, f.Close())
}

// TestWindowsHavePercentilesOfTheirOwn: of ten seconds, five of 1 ms and five of 3 ms.
func TestWindowsHavePercentilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const ms = 1_000_000
	loggedSeconds(t, dir, ms, ms, ms, ms, ms, 3*ms, 3*ms, 3*ms, 3*ms, 3*ms, 3*ms)
	w, err := windowed(dir, 5*time.Second, 2e9)
	if err != nil || len(w.parts) != 3 {
		t.Fatalf("%d windows, %v; want 3", len(w.parts), err)
	}
	e := repeat(1, ms, 11_000)
	e.Windows = w
	text := rendered(t, Text, e, Options{Percentiles: []float64{95}, Width: 120})
	mentions(t, text, "in windows of 5 s", "0..5 s", "5,000", "5..10 s", "10..15 s", "3.00 ms")
	page := rendered(t, HTML, e, Options{})
	if _, err := look(page); err != nil {
		t.Error(err)
	}
	c := chart(page, "c-windows-send")
	if !strings.Contains(c, "5..10 s, p95: 3.") || !strings.Contains(c, "send response in windows of 5 s") {
		t.Errorf("the chart of windows: %s", c)
	}
}

// Windows begin at whole seconds, although lines of the log end some milliseconds late, and one of the last
// warm-up second has messages of the measured window.
func TestWindowsBeginWithTheMeasuredWindow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const ms = 1_000_000
	var log bytes.Buffer
	w := must.Get(result.NewLogWriter(&log, time.Unix(1_795_275_128, 0), "test"))(t)
	for _, x := range [][3]int64{ // from, to, messages
		{1001_810814, 2001_799785, 4},
		{2001_799785, 3002_030175, 2000},
		{3002_030175, 4000_900000, 1999},
		{4000_900000, 5002_015741, 2003},
		{6000_000000, 7001_786334, 7},
		{7001_786334, 7003_000000, 5},
	} {
		c := new(measure.Counts)
		c.Add(ms, uint64(x[2])) //nolint:gosec // G115: small
		must.Do(t, w.Write(result.Tag(measure.SendResponse, measure.Measure), x[0], x[1], c))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileIntervals), log.Bytes(), 0o600))
	e := repeat(1, ms, 11_000)
	e.Windows = must.Get(windowed(dir, time.Second, 2001_799785))(t)
	text := rendered(t, Text, e, Options{Percentiles: []float64{50}, Width: 120})
	_, table, _ := strings.Cut(text, "in windows of 1 s since the end of the warm-up")
	var got []string
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "s" {
			got = append(got, f[0]+" "+f[2])
		}
	}
	if diff := cmp.Diff([]string{"0..1 2,004", "1..2 1,999", "2..3 2,003", "3..4 0", "4..5 7", "5..6 5"}, got); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

func TestWindowsBeyondTheBoundAreCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	each := make([]int64, mostWindows+7)
	for i := range each {
		each[i] = 1_000_000
	}
	loggedSeconds(t, dir, each...)
	w, err := windowed(dir, time.Second, 2e9)
	if err != nil || len(w.parts) != mostWindows || w.more != 7 {
		t.Errorf("%d windows and %d more, %v; want %d and 7", len(w.parts), w.more, err, mostWindows)
	}
	if _, err := windowed(t.TempDir(), time.Second, 0); err == nil {
		t.Error("a folder without a log has windows")
	}
}

// TestCurveSpansAllSamples, as finely as the samples are known.
func TestCurveSpansAllSamples(t *testing.T) {
	t.Parallel()
	c := new(measure.Counts)
	for i := range int64(1000) {
		c.Add((i+1)*1000, 1)
	}
	least, most := int64(1000), int64(1_000_000)
	d := &result.Dist{Count: 1000, MinNS: &least, MaxNS: &most, Percentiles: []result.Percentile{{P: 50, NS: 500_000, Supported: true}, {P: 100, NS: most, Supported: true}}}
	x := plotted{"response", &result.Result{}, distribution{group: "send", name: "response", d: d}, c, false}
	b := bounded{}
	line := x.fine("s1", 1, &b)
	first, last := line.Points[0], line.Points[len(line.Points)-1]
	if first.X != 0 || first.Y != 1000 || last.X != 3 || last.Y != 1_000_000 || len(line.Points) < 200 {
		t.Errorf("%d points from %+v to %+v; want from 1 µs at 0 to 1 ms at three nines", len(line.Points), first, last)
	}
	for i, p := range line.Points {
		if i > 0 && p.Y < line.Points[i-1].Y {
			t.Fatalf("the curve falls at %+v", p)
		}
	}
	d.Censored = 1000
	d.Percentiles[1].AtLeast = true
	if line := x.fine("s1", 1, &b); line.Points[len(line.Points)-1].X > nines(50)+1e-9 {
		t.Errorf("it goes to %+v; want no further than what is known", line.Points[len(line.Points)-1])
	}
}

// If the warm-up ends within a second, a window would hold that second's messages and part of the next's.
func TestWindowsAlignToLogSeconds(t *testing.T) {
	t.Parallel()
	r := &result.Result{Intervals: []result.Interval{{TS: 0, Phase: "warmup"}, {TS: 1, Phase: "measure"}, {TS: 2, Phase: "measure"}}}
	r.Run.WarmUpS = new(1.3)
	if got := firstSecond(r); got != 1e9 {
		t.Errorf("the first window begins at %d ns; want 1 s", got)
	}
	r.Intervals = nil
	if got := firstSecond(r); got != 1_300_000_000 {
		t.Errorf("without seconds, the first window begins at %d ns; want 1.3 s", got)
	}
}
