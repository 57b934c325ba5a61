package view

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/measure"
)

const second = int64(time.Second)

// interval is the n-th second of a run of 1000/s whose warm-up is two seconds
// long; each second is a little slower than the one before.
func interval(n int) *measure.Interval {
	iv := &measure.Interval{From: int64(n) * second, To: int64(n+1) * second, Backlog: measure.Backlog{{Missing: uint64(3 * n)}}}
	p := measure.Measure
	if n < 2 {
		p = measure.WarmUp
	}
	iv.Counters[p] = measure.Counters{Scheduled: 1000, Sent: 998, Confirmed: 990, Received: 985}
	for i := range 990 {
		ns := int64(400_000 + 1000*i + 50_000*n)
		iv.Kinds[measure.SendResponse][p].Add(ns, 1)
		iv.Kinds[measure.SendService][p].Add(ns-1000, 1)
		iv.Kinds[measure.E2EResponse][p].Add(2*ns, 1)
		iv.Kinds[measure.E2EService][p].Add(2*ns-1000, 1)
		iv.Kinds[measure.SendLateness][p].Add(int64(i), 1)
	}
	return iv
}

// story is a run as the engine tells it; shot is called at points of interest.
func story(v *Live, shot func(name string)) {
	v.Doing("starting jetstream")
	shot("starting")
	v.Note("started jetstream in a process of its own at nats://127.0.0.1:4222")
	v.Doing("connecting")
	v.Event(0, "phase", "warmup")
	shot("no figures yet")
	v.Interval(interval(0))
	shot("warming up")
	v.Event(second+second/2, "reconnect", "producer 3")
	v.Interval(interval(1))
	v.Event(2*second, "phase", "measure")
	shot("the window begins")
	v.Interval(interval(2))
	v.Event(3*second-1, "injected", "kill server-1")
	v.Event(3*second, "fault", "consumer 12: connection lost")
	v.Event(3*second+1, "fault", "consumer 13: connection lost")
	v.Event(3*second+2, "gc", "1 cycles, longest stop 80µs")
	v.Event(3*second+3, "gc", "1 cycles, longest stop 12ms")
	_, _ = io.WriteString(v, "time=2026 level=WARN msg=\"slow\x1b[2J consumer\"\npart of a line")
	bad := interval(3)
	bad.Counters[measure.Measure].Failed = 12
	bad.Counters[measure.Measure].Dropped = 3456
	bad.Backlog[0].Passed = 4
	v.Interval(bad)
	shot("trouble")
	v.Event(4*second, "phase", "drain")
	shot("the drain begins")
	iv := &measure.Interval{From: 4 * second, To: 5 * second, Backlog: measure.Backlog{{Missing: 7}}}
	iv.Counters[measure.Measure] = measure.Counters{Confirmed: 30, Received: 50}
	v.Interval(iv)
	shot("draining")
	v.Interval(&measure.Interval{From: 5 * second, To: 5*second + 1000})
	v.Done()
	v.Done()
	shot("done")
}

var plan = LivePlan{System: "jetstream", WarmUp: 2 * time.Second, End: 4 * time.Second, Drain: 30 * time.Second, Sends: true, Receives: true}

func sameBlock(t *testing.T, name, got string) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", "live", name), got)
}

func TestScreenContents(t *testing.T) {
	t.Parallel()
	suite := plan
	suite.Which = "run 2 of 6, jetstream-1kib-1000"
	for name, tt := range map[string]struct {
		cols, rows int
		plan       LivePlan
	}{
		"80 columns":                 {80, 24, plan},
		"80 columns, one of several": {80, 24, suite},
		"40 columns":                 {40, 24, suite},
		"120 columns and 50 lines":   {120, 50, plan},
		"ten lines, which scroll":    {80, 10, plan},
		"three lines, too few":       {80, 3, plan},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			s := newTerminal(t, tt.cols, tt.rows)
			_, _ = io.WriteString(s, "$ weir run\n")
			v := NewLive(Terminal{Out: s, Rewrite: true, Colour: true, Size: s.size}, tt.plan)
			story(v, func(name string) { fmt.Fprintf(&b, "--- %s\n%s", name, s) })
			sameBlock(t, strings.NewReplacer(" ", "-", ",", "").Replace(name)+".txt", b.String())
		})
	}
}

func TestPlainLines(t *testing.T) {
	t.Parallel()
	for name, which := range map[string]string{
		"plain.txt": "", "plain-several.txt": "run 2 of 6, chan-1kib-1k",
		"plain-long-name.txt": "run 12 of 60, kafka-three-nodes-acks-all-16kib-with-consumers-that-settle-each",
	} {
		p := plan
		p.Which = which
		var b bytes.Buffer
		story(NewLive(Terminal{Out: &b}, p), func(string) {})
		if strings.ContainsAny(b.String(), "\x1b\r") {
			t.Errorf("%s: control characters in %q", name, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widestLine {
				t.Errorf("%s: %d characters in %q", name, n, line)
			}
		}
		sameBlock(t, name, b.String())
	}
}

// A line comes after a second, with each stage, after a fault, and else every five seconds. None comes at the
// end of the window.
func TestWhenPlainLinesCome(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := plan
	p.End = 22 * time.Second
	v := NewLive(Terminal{Out: &b}, p)
	v.Event(0, "phase", "warmup")
	for n := range 22 {
		if n == 2 {
			v.Event(int64(n)*second, "phase", "measure")
		}
		if n == 15 {
			v.Event(int64(n)*second, "injected", "kill server-1")
		}
		v.Interval(interval(n))
	}
	v.Event(22*second, "phase", "drain")
	v.Interval(interval(22))
	var got []string
	for line := range strings.Lines(b.String()) {
		when, _, _ := strings.Cut(line, " of 22 s;")
		when, _, _ = strings.Cut(when, " not yet ")
		got = append(got, strings.TrimSpace(when))
	}
	want := []string{
		"jetstream: warming up, 1 s", "jetstream: measuring, 3 s", "jetstream: measuring, 8 s", "jetstream: measuring, 13 s",
		"at 13.0 s: fault: kill server-1", "jetstream: measuring, 16 s", "jetstream: measuring, 21 s", "jetstream: draining: 296",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

// The backlog is in a line if it grew since the last one to more than are on their way.
func TestPlainLineShowsGrowingBacklog(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := plan
	p.End = time.Minute
	v := NewLive(Terminal{Out: &b}, p)
	v.Event(2*second, "phase", "measure")
	for n, missing := range []uint64{99, 400, 400, 399, 500} {
		iv := interval(2 + 5*n)
		iv.Backlog = measure.Backlog{{Missing: missing}}
		v.Interval(iv)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		_, backlog, _ := strings.Cut(strings.TrimSpace(line), ", backlog ")
		got = append(got, backlog)
	}
	if want := []string{"", "400", "", "", "500"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

// figures is the block's rows, each as a line.
func figures(v *Live) string {
	var b strings.Builder
	for _, l := range v.frame(200, 0) {
		b.WriteString(strings.Join(strings.Fields(l.text), " ") + "\n")
	}
	return b.String()
}

func TestASilentViewWritesNothing(t *testing.T) {
	t.Parallel()
	story(NewLive(Terminal{Rewrite: true}, plan), func(string) {})
}

func TestARefreshIsASingleWrite(t *testing.T) {
	t.Parallel()
	s := newTerminal(t, 80, 24)
	v := NewLive(Terminal{Out: s, Rewrite: true, Size: s.size}, plan)
	v.Event(0, "phase", "warmup")
	before := s.writes
	v.Interval(interval(0))
	if n := s.writes - before; n != 1 {
		t.Errorf("a refresh takes %d writes; want 1, so that it does not flicker", n)
	}
}

func TestNarrowingTerminalKeepsScrollback(t *testing.T) {
	t.Parallel()
	s := newTerminal(t, 80, 24)
	_, _ = io.WriteString(s, "$ weir run\n")
	v := NewLive(Terminal{Out: s, Rewrite: true, Size: s.size}, plan)
	v.Event(0, "phase", "warmup")
	v.Interval(interval(0))
	s.cols = 40 // lines of a terminal that does not break them anew
	v.Interval(interval(1))
	v.Interval(interval(2))
	got := s.String()
	if !strings.HasPrefix(got, "$ weir run\njetstream: warming up") || strings.Count(got, "\njetstream: warming up") != 2 {
		t.Errorf("want the command, the block as it was and one that fits; got\n%s", got)
	}
	s.cols = 120
	v.Interval(interval(3))
	v.Done()
	if got = s.String(); strings.Count(got, "warming up") != 1 {
		t.Errorf("want what a narrower window broke and nothing else; got\n%s", got)
	}
}

func TestStatusWording(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		plan  LivePlan
		phase string
		shown *measure.Interval
		want  string
	}{
		{"before anything is known", LivePlan{}, "", nil, "connecting"},
		{"a closed loop until this many messages", LivePlan{Closed: true, Sends: true, Messages: 5000}, "measure", interval(2), "measuring, 990 of 5,000 messages"},
		{"more than this many are on their way", LivePlan{Closed: true, Sends: true, Messages: 500}, "measure", interval(2), "measuring, 500 of 500 messages"},
		{"until nothing comes any more", LivePlan{Receives: true}, "measure", interval(2), "measuring for 3 s"},
		{"the last second", LivePlan{End: 3 * time.Second}, "measure", interval(2), "measuring"},
		{"a long one", LivePlan{End: 2 * time.Hour}, "measure", interval(2), "measuring, 3 s of 2 h, 2 h left"},
		{"what others sent", LivePlan{Receives: true}, "drain", &measure.Interval{To: second}, "draining"},
		{"nothing to wait for", LivePlan{Sends: true}, "drain", &measure.Interval{To: second}, "draining: all messages confirmed"},
		{"the drain has only begun", LivePlan{Sends: true}, "drain", nil, "draining"},
		{"a backlog", LivePlan{Sends: true, Backlog: true, Drain: 9 * time.Second}, "drain", &measure.Interval{To: second, Backlog: measure.Backlog{{Missing: 5000}}}, "draining the backlog: 5,000 not yet delivered, 8 s more at most"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := NewLive(Terminal{Out: io.Discard}, tt.plan)
			if tt.phase != "" {
				v.Event(0, "phase", tt.phase)
			}
			if tt.shown != nil {
				v.Interval(tt.shown)
			}
			if got := v.head(); got != tt.want {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}

func TestOnlyActiveSidesAreShown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan      LivePlan
		has, lack []string
	}{
		"producers only": {LivePlan{Sends: true, End: time.Hour}, []string{"offered", "confirmed"}, []string{"received", "delivered", "backlog"}},
		"consumers only": {LivePlan{Receives: true}, []string{"received"}, []string{"offered", "sent", "confirmed", "delivered", "backlog"}},
		"a closed loop":  {LivePlan{Sends: true, Receives: true, Closed: true}, []string{"sent", "confirmed", "delivered", "backlog"}, []string{"offered", "received"}},
		"a backlog":      {LivePlan{Sends: true, Receives: true, Backlog: true}, []string{"confirmed", "drained"}, []string{"received", "delivered"}},
	} {
		v := NewLive(Terminal{Out: io.Discard}, tt.plan)
		v.Event(0, "phase", "measure")
		v.Interval(interval(2))
		got := figures(v)
		for _, w := range tt.has {
			if !strings.Contains(got, w+" ") {
				t.Errorf("%s: %q does not say %s", name, got, w)
			}
		}
		for _, w := range tt.lack {
			if strings.Contains(got, w+" ") {
				t.Errorf("%s: %q says %s", name, got, w)
			}
		}
	}
}

func TestRoundTripsAreShownIfPresent(t *testing.T) {
	t.Parallel()
	for closed, kind := range map[bool]measure.Kind{false: measure.RTTResponse, true: measure.RTTService} {
		v := NewLive(Terminal{Out: io.Discard}, LivePlan{Sends: true, Receives: true, Closed: closed})
		v.Event(0, "phase", "measure")
		iv := &measure.Interval{To: second}
		iv.Kinds[kind][measure.Measure].Add(5000, 10)
		v.Interval(iv)
		if got, want := figures(v), "rtt 5.00 µs 5.00 µs 5.00 µs"; !strings.Contains(got, want) || strings.Contains(got, "send p50") {
			t.Errorf("closed loop %v: %q; want %q in it and no send", closed, got, want)
		}
	}
}

// Messages that failed, found no room or wait are in no percentile.
func TestPercentilesBesideFailuresAreMarked(t *testing.T) {
	t.Parallel()
	const says = "percentiles of completed messages only"
	for name, tt := range map[string]struct {
		change func(*measure.Counters)
		want   bool
	}{
		"all completed":      {func(*measure.Counters) {}, false},
		"failed":             {func(c *measure.Counters) { c.Failed = 1 }, true},
		"dropped":            {func(c *measure.Counters) { c.Dropped = 1 }, true},
		"a stall":            {func(c *measure.Counters) { c.Sent, c.Confirmed = 1000, 0 }, true},
		"no percentiles yet": {func(c *measure.Counters) { c.Failed = 1 }, false},
	} {
		v := NewLive(Terminal{Out: io.Discard}, plan)
		v.Event(2*second, "phase", "measure")
		iv := interval(2)
		tt.change(&iv.Counters[measure.Measure])
		if name == "no percentiles yet" {
			iv = &measure.Interval{From: iv.From, To: iv.To, Counters: iv.Counters}
		}
		v.Interval(iv)
		if got := figures(v); strings.Contains(got, says) != tt.want {
			t.Errorf("%s: %q; marked: want %v", name, got, tt.want)
		}
	}
}

func BenchmarkRefresh(b *testing.B) {
	iv := interval(2)
	v := NewLive(Terminal{Out: io.Discard, Rewrite: true, Colour: true}, plan)
	v.Event(0, "phase", "measure")
	b.ReportAllocs()
	for b.Loop() {
		v.Interval(iv)
	}
}

func TestStallOfOneSecondShowsBacklog(t *testing.T) {
	t.Parallel()
	sends := LivePlan{Sends: true, Receives: true, End: time.Hour}
	closed := sends
	closed.Closed = true
	for name, tt := range map[string]struct {
		plan  LivePlan
		phase string
		last  measure.Counters
		want  string // "": nothing
	}{
		"a second's worth":            {sends, "measure", measure.Counters{Scheduled: 1000, Sent: 1000}, "waiting 1,000 to be confirmed"},
		"a second's worth that waits": {sends, "measure", measure.Counters{Scheduled: 1000}, "waiting 1,000 to be sent"},
		"all of it":                   {sends, "measure", measure.Counters{Scheduled: 4000, Sent: 4000}, "waiting 4,000 to be confirmed"},
		"less than it":                {sends, "measure", measure.Counters{Scheduled: 1000, Sent: 1000, Confirmed: 1}, ""},
		"failed is not unconfirmed":   {sends, "measure", measure.Counters{Scheduled: 1000, Sent: 1000, Failed: 500}, ""},
		"a slow rate":                 {sends, "measure", measure.Counters{}, ""},
		"a closed loop":               {closed, "measure", measure.Counters{Sent: 10_000}, ""},
		"a drain, whose head says it": {sends, "drain", measure.Counters{Sent: 10_000}, ""},
	} {
		v := NewLive(Terminal{Out: io.Discard}, tt.plan)
		v.Event(0, "phase", tt.phase)
		iv := &measure.Interval{To: second}
		iv.Counters[measure.Measure] = tt.last
		v.Interval(iv)
		if got := figures(v); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "waiting") {
			t.Errorf("%s: %q; want %q in it", name, got, tt.want)
		}
	}
}

// A starting server's elapsed time is updated each second on a terminal, and written every 10 s elsewhere.
func TestLongWaitShowsElapsedTime(t *testing.T) {
	for _, rewrite := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			v := NewLive(Terminal{Out: &out, Rewrite: rewrite}, LivePlan{})
			v.Doing("starting kafka")
			time.Sleep(25*time.Second + 500*time.Millisecond)
			v.Doing("connecting")
			time.Sleep(500 * time.Millisecond)
			v.Event(0, "phase", "warmup")
			time.Sleep(time.Minute)
			v.Done()
			synctest.Wait()
			said := out.String()
			for text, want := range map[string]int{"starting kafka, 2 s": 1, "starting kafka, 25 s": 1, "starting kafka, 20 s": 1, "starting kafka, 26 s": 0, "connecting, ": 0} {
				if !rewrite && text != "starting kafka, 20 s" {
					want = 0
				}
				if got := strings.Count(said, text); got != want {
					t.Errorf("rewrite %v: %q comes %d times; want %d in %q", rewrite, text, got, want, said)
				}
			}
		})
	}
}
