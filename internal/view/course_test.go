package view

import (
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// length is a run of that many seconds, most of them without p99.9.
func length(seconds int) []result.Interval {
	out := make([]result.Interval, seconds)
	ns := func(v int) *int64 { x := int64(v); return &x }
	for i := range out {
		in := &out[i]
		in.TS, in.Phase, in.Sent, in.Confirmed, in.Received, in.Backlog = float64(i), "measure", 1000, 990+uint64(i%20), 1000, uint64(i%9)
		in.Send = result.Points{P50NS: ns(100_000 + i%999), P99NS: ns(2_000_000 + i%77_777), MaxNS: ns(9_000_000 + i%333_333)}
		in.E2E = in.Send
		if i%10 == 0 {
			in.Send.P999NS = ns(5_000_000)
		}
		switch {
		case i < 2:
			in.Phase = "warmup"
		case i == seconds-1:
			in.Phase = "drain"
		}
	}
	out[seconds/3].Send.MaxNS = ns(7_654_321_000)
	return out
}

func eachEvent(events []result.Event) iter.Seq2[result.Event, error] {
	return func(yield func(result.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Has an event and a lateness each second.
func TestDayLongRunMakesUsablePage(t *testing.T) {
	t.Parallel()
	const day = 86_400
	intervals := length(day)
	own := map[string][]plot.Point{}
	var events []result.Event
	for i := range day {
		for _, name := range []string{"lateness.p50", "lateness.p99", "lateness.max", "blocked.p50", "blocked.p99", "blocked.max"} {
			own[name] = append(own[name], plot.Point{X: float64(i) + 0.5, Y: float64(1000 + i%5000)})
		}
		events = append(events, result.Event{TNS: int64(i) * 1e9, Kind: "gc", Text: "1 cycles, longest stop 98.304µs"})
	}
	course := newCourse(0, intervals, own, day)
	must.Do(t, course.happened(eachEvent(events)))
	e := run(t, "jetstream-500")
	e.Course = course
	page := html1(t, e, Options{})
	if _, err := look(page); err != nil {
		t.Error(err)
	}
	if n := len(page); n > 250_000 {
		t.Errorf("the page has %d bytes", n)
	}
	t.Logf("%d bytes", len(page))
	mentions(t, page, "The run has 86,400 seconds: drawn are the lowest and the highest value of each of 80 parts", "max 9.00 ms to 7.65 s", ">720</td>")
	if got := course.marks; len(got) != markBins {
		t.Errorf("%d marks; want %d", len(got), markBins)
	}
	for name, x := range course.tracks {
		if len(x.points) > 3*mostBins || len(x.ranges) > mostColumns {
			t.Errorf("%s has %d points, %d columns", name, len(x.points), len(x.ranges))
		}
	}
}

func TestMissingSecondIsChartGap(t *testing.T) {
	t.Parallel()
	e := run(t, "jetstream-500")
	e.Course = newCourse(0, length(12), nil, 12)
	page := html1(t, e, Options{})
	// p99.9 is there in seconds 0 and 10 only: two steps, no line from one to the other.
	if !regexp.MustCompile(`<path class="line s3" d="M[\d.]+ [\d.]+h[\d.]+m[-\d. ]+h[\d.]+" data-n="3"/>`).MatchString(page) {
		t.Error("the gaps of p99.9 are bridged")
	}
	if !strings.Contains(page, "5.3 s to") && !strings.Contains(page, "p99.9 -") {
		t.Error("no column says that there is no p99.9")
	}
	mentions(t, page, ">warm-up<", `class="span"`, "offered (mean of the window, 500/s)")
}

// A fault that the text dates at 5.0 s must be drawn there.
func TestTimesCountFromEndOfWarmUp(t *testing.T) {
	t.Parallel()
	dir, _ := outage(t, 50)
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileEvents), []byte(`{"schema": "weir.events/v1"}
{"t_ns":7000000000,"kind":"fault","text":"kill"}
{"t_ns":1000000000,"kind":"reconnect","text":"in the warm-up"}
`), 0o644))
	e := run(t, "jetstream-500")
	e.Result.Run.WarmUpS = new(2.0)
	in := length(12)
	in[7].Received = 3 // after the fault
	c := must.Get(NewCourse(e.Result, in, dir))(t)
	e.Course = c
	if p := c.tracks["received"].points[7]; p.X != 5 || p.Wide != 1 || p.Y != 3 {
		t.Errorf("the second after the fault is %+v; want a step from 5 to 6 s", p)
	}
	if p := c.mosaics["e2e"].pack(c.origin); p.From[0] != -2 || p.To[11] != 10 {
		t.Errorf("the latencies are of %v to %v s", p.From[0], p.To[11])
	}
	page := html1(t, e, Options{})
	mentions(t, page,
		"<title>fault at 5.0 s: kill</title>", "<title>reconnect at -1.0 s: in the warm-up</title>", ">-2 s</text>", "5.0 s to 6.0 s: sent 1,000/s, confirmed 997/s, delivered 3.00/s",
		"time since the end of the warm-up</text>",
	)
	where := regexp.MustCompile(`<path class="line s2 over" d="M([\d.]+) ([^"]*)"`).FindStringSubmatch(page)
	mark := regexp.MustCompile(`<path class="mark event" d="M([\d.]+) [^"]*"><title>fault at`).FindStringSubmatch(page)
	if mark == nil || where == nil {
		t.Fatalf("the fault is at %q, and what was received falls at %q", mark, where)
	}
	fault, at, falls := number(t, mark[1]), number(t, where[1]), false
	for _, wide := range regexp.MustCompile(`h([\d.]+)(v\d)?`).FindAllStringSubmatch(where[2], -1) {
		at += number(t, wide[1])
		falls = falls || wide[2] != "" && math.Abs(at-fault) < 0.06
	}
	if !falls {
		t.Errorf("the fault is at %v, and what was received falls elsewhere: %s", fault, where[2])
	}
}

func TestPartialSecondHasNoRate(t *testing.T) {
	t.Parallel()
	in := []result.Interval{{Sent: 100}, {TS: 1, Sent: 50}, {TS: 1.5, Sent: 3}, {TS: 1.5, Sent: 1}, {TS: 1.6, Sent: 400}}
	at := func(until float64) (out []float64) {
		for _, p := range newCourse(0, in, nil, until).tracks["sent"].points {
			out = append(out, p.Y)
		}
		return out
	}
	for until, last := range map[float64]float64{2.6: 400, 1.7: math.NaN()} {
		want := []float64{100, 100, math.NaN(), math.NaN(), last}
		if got := at(until); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("until %v: %v; want %v", until, got, want)
		}
	}
}

func TestCrowdedEventsAreMerged(t *testing.T) {
	t.Parallel()
	c := newCourse(0, length(120), nil, 120)
	events := []result.Event{
		{TNS: -5, Kind: "phase", Text: "warmup"},
		{TNS: 90e9, Kind: "fault", Text: "pause"},
		{TNS: 10e9, Kind: "gc", Text: "a"},
		{TNS: 10.2e9, Kind: "gc", Text: "b", Count: 4},
		{TNS: 10.3e9, Kind: "fault", Text: "c"},
		{TNS: math.MaxInt64, Kind: "late"},
		{TNS: math.MinInt64, Kind: "early"},
	}
	for i := range 30 {
		events = append(events, result.Event{TNS: 5e9, Kind: fmt.Sprint("kind", i), Count: 2})
	}
	must.Do(t, c.happened(eachEvent(events)))
	var got []string
	for _, m := range c.marks {
		if !strings.HasPrefix(m.kind, "kind") {
			got = append(got, fmt.Sprint(m.kind, " ", m.text, " ", m.count))
		}
	}
	if s := strings.Join(got, "; "); s != "early  1; gc a 5; fault c 1; fault pause 1; late  1" {
		t.Errorf("got %s", s)
	}
	if want := uint64(2 * (30 + 4 - mostKinds)); c.unmarked != want { // gc, fault, late and early are kinds too
		t.Errorf("%d events are not marked; want %d", c.unmarked, want)
	}
	e := run(t, "jetstream-500")
	e.Course = c
	page := html1(t, e, Options{})
	mentions(t, page,
		`<path class="mark often" d="M127.2 276v-9"/>`, ` data-name="events then">5</td>`, `<title>fault at 90.0 s: pause</title>`,
		"28 further events are in events.jsonl only", ` data-name="event">fault</td>`,
	)
}

// Two phases within one second form one point; a censored line belongs to no second.
func TestCourseIsReadFromFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	f := must.Get(result.Create(dir))(t)
	must.Do(t, f.StartIntervals(time.Unix(1_767_323_045, 0), "v0"))
	late := new(measure.Counts)
	late.Add(77, 1)
	for i := range 3 {
		in := &measure.Interval{From: int64(i)*1e9 - 3, To: int64(i+1) * 1e9}
		in.Kinds[measure.SendLateness][measure.WarmUp].Add(1000, 6)
		in.Kinds[measure.SendLateness][measure.Measure].Add(2000, 1+uint64(i))
		in.Kinds[measure.SendBlocked][measure.Measure].Add(int64(i), 1)
		must.Do(t, f.AppendInterval(in))
	}
	for _, err := range []error{
		f.AppendCensored(measure.SendLateness, measure.Measure, 0, 90e9, late),
		f.AppendEvent(result.Event{TNS: 1e9, Kind: "fault", Text: "x"}), f.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := NewCourse(new(result.Result), length(3), dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.to != 3 {
		t.Errorf("it ends at %v s; want 3", c.to)
	}
	if got := c.tracks["lateness.max"].points; len(got) != 3 || got[0].Y != 2000 || math.Abs(got[1].X-1) > 1e-3 || math.Abs(got[1].Wide-1) > 1e-3 {
		t.Errorf("the lateness is %+v", got)
	}
	if got := c.tracks["lateness.p50"].points; len(got) != 0 { // so few samples are not a median
		t.Errorf("the median lateness is %+v", got)
	}
	if got := c.tracks["blocked.max"].points; len(got) != 3 || got[0].Y != 0 || got[2].Y != 2 {
		t.Errorf("what was blocked is %+v", got)
	}
	if len(c.marks) != 1 || c.marks[0].text != "x" {
		t.Errorf("the events are %+v", c.marks)
	}

	// Without the logs the seconds of result.json are used; damaged ones are reported.
	for _, name := range []string{result.FileIntervals, result.FileEvents} {
		must.Do(t, os.Remove(filepath.Join(dir, name)))
	}
	if c, err = NewCourse(new(result.Result), length(3), dir); err != nil || len(c.tracks["sent"].points) != 3 {
		t.Errorf("without logs: %v, %+v", err, c)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileIntervals), []byte("Tag=x,1"), 0o644))
	if c, err = NewCourse(new(result.Result), length(3), dir); err == nil || len(c.tracks["sent"].points) != 3 {
		t.Errorf("with a torn log: %v, %+v", err, c)
	}
	if c, err := NewCourse(new(result.Result), nil, dir); c != nil || err != nil {
		t.Errorf("without seconds: %+v, %v", c, err)
	}
}
