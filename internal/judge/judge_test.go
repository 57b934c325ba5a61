package judge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

func counts(values ...int64) *measure.Counts {
	c := new(measure.Counts)
	for _, v := range values {
		c.Add(v, 1)
	}
	return c
}

// upTo counts 1, 2, ... n times step.
func upTo(n, step int64) *measure.Counts {
	c := new(measure.Counts)
	for i := int64(1); i <= n; i++ {
		c.Add(i*step, 1)
	}
	return c
}

func TestDistributionOfNothingIsAbsent(t *testing.T) {
	for _, d := range []*result.Dist{Distribution(nil, nil), Distribution(counts(), counts())} {
		if d != nil {
			t.Errorf("got %+v", d)
		}
	}
}

func TestDistribution(t *testing.T) {
	d := Distribution(upTo(1000, 1), nil) // 1 to 1000 ns, each with a bucket of its own
	if d.Count != 1000 || *d.MinNS != 1 || *d.MaxNS != 1000 || *d.MeanNS != 500.5 || d.Censored != 0 || d.Overflow != 0 {
		t.Errorf("got %+v", d)
	}
	want := []result.Percentile{
		{P: 50, NS: 500, LoNS: new(int64(469)), HiNS: new(int64(532)), Supported: true},
		{P: 75, NS: 750, LoNS: new(int64(723)), HiNS: new(int64(778)), Supported: true},
		{P: 90, NS: 900, LoNS: new(int64(881)), HiNS: new(int64(919)), Supported: true},
		{P: 95, NS: 950, LoNS: new(int64(936)), HiNS: new(int64(964)), Supported: true},
		{P: 99, NS: 990, LoNS: new(int64(983)), HiNS: new(int64(997)), Supported: true},
		{P: 99.9, NS: 999, LoNS: new(int64(997))},
		{P: 99.99, NS: 1000, LoNS: new(int64(999))},
		{P: 99.999, NS: 1000, LoNS: new(int64(1000))},
		{P: 99.9999, NS: 1000, LoNS: new(int64(1000))},
		{P: 100, NS: 1000, LoNS: new(int64(1000)), Supported: true},
	}
	golden.Equal(t, want, d.Percentiles, "")
}

// 900 answers of 1 to 900 ns, and 100 messages known only to have taken at least 950 ns.
func TestCensoredSamples(t *testing.T) {
	censored := new(measure.Counts)
	censored.Add(950, 100)
	d := Distribution(upTo(900, 1), censored)
	if d.Count != 900 || d.Censored != 100 || d.MeanNS != nil || d.StdDevNS != nil || *d.MaxNS != 900 {
		t.Errorf("got %+v", d)
	}
	for _, tt := range []struct {
		p       float64
		ns      int64
		atLeast bool
		bounded bool
	}{
		{50, 500, false, true},
		{75, 750, false, true},
		{90, 900, false, false}, // its interval reaches the censored
		{95, 950, true, false},
		{99, 950, true, false},
		{100, 950, true, false},
	} {
		p := d.Percentile(tt.p)
		if p.NS != tt.ns || p.AtLeast != tt.atLeast || (p.HiNS != nil) != tt.bounded || *p.LoNS > p.NS {
			t.Errorf("p%g is %+v, want %+v", tt.p, *p, tt)
		}
	}
}

// A low censored sample makes everything above it a lower bound, whatever was observed there.
func TestCensoredSamplesInTheMiddle(t *testing.T) {
	d := Distribution(upTo(1000, 1), counts(600))
	if p := d.Percentile(50); p.AtLeast || p.NS != 501 {
		t.Errorf("below it: %+v", *p)
	}
	for _, p := range []float64{75, 99, 100} {
		if p := d.Percentile(p); !p.AtLeast || p.HiNS != nil {
			t.Errorf("above it: %+v", *p)
		}
	}
}

// A percentile in the bucket of the smallest censored sample is a lower bound, with the value of the
// bucket's lower end.
func TestACensoredSampleSharesItsBucket(t *testing.T) {
	const v = 5_000_000
	observed := new(measure.Counts)
	observed.Add(v, 99)
	d := Distribution(observed, counts(v+1))
	p := d.Percentile(50)
	if !p.AtLeast || p.NS > v || p.NS < measure.LowestEquivalent(v) {
		t.Errorf("got %+v", *p)
	}
}

func TestOnlyCensoredSamples(t *testing.T) {
	d := Distribution(nil, counts(5, 6, 7))
	if d.Count != 0 || d.Censored != 3 || d.MinNS != nil || d.MaxNS != nil || d.MeanNS != nil {
		t.Errorf("got %+v", d)
	}
	if p := d.Percentile(50); p.NS != 6 || !p.AtLeast || p.HiNS != nil {
		t.Errorf("median %+v", *p)
	}
}

func TestOverflowIsCounted(t *testing.T) {
	d := Distribution(counts(5, measure.Highest+1), counts(measure.Highest+2))
	if d.Overflow != 2 || *d.MaxNS != measure.Highest+1 {
		t.Errorf("got %+v", d)
	}
}

func TestAMedianOfMillisecondsCarriesItsBuckets(t *testing.T) {
	d := Distribution(upTo(10_000, 1_000), nil) // 1 µs to 10 ms
	p := d.Percentile(50)
	if p.NS != measure.HighestEquivalent(5_000_000) || *p.LoNS != measure.LowestEquivalent(*p.LoNS) || *p.HiNS != measure.HighestEquivalent(*p.HiNS) {
		t.Errorf("got %+v", *p)
	}
	if *p.LoNS > 4_902_000 || *p.HiNS < 5_098_000 {
		t.Errorf("interval %d to %d is too narrow", *p.LoNS, *p.HiNS)
	}
}

func TestPoints(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    *measure.Counts
		want result.Points
	}{
		{"nothing", counts(), result.Points{}},
		{"nine", upTo(9, 1), result.Points{MaxNS: new(int64(9))}},
		{"ten", upTo(10, 1), result.Points{P50NS: new(int64(5)), MaxNS: new(int64(10))}},
		{"five hundred", upTo(500, 1), result.Points{P50NS: new(int64(250)), P99NS: new(int64(495)), MaxNS: new(int64(500))}},
		{"a thousand", upTo(1000, 1), result.Points{P50NS: new(int64(500)), P99NS: new(int64(990)), MaxNS: new(int64(1000))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			golden.Equal(t, tt.want, Points(tt.c), "")
		})
	}
}

func TestIntervalCombinesBothPhases(t *testing.T) {
	in := &measure.Interval{From: 2e9, To: 3e9, Backlog: measure.Backlog{{Missing: 4}}}
	in.Counters[measure.WarmUp] = measure.Counters{Sent: 1, Confirmed: 2, Received: 3}
	in.Counters[measure.Measure] = measure.Counters{Sent: 10, Confirmed: 20, Received: 30}
	in.Kinds[measure.SendResponse][measure.WarmUp] = *upTo(5, 1)
	in.Kinds[measure.SendResponse][measure.Measure] = *upTo(5, 1)
	in.Kinds[measure.SendService][measure.Measure] = *counts(77)
	in.Kinds[measure.E2EResponse][measure.Measure] = *counts(9)
	want := result.Interval{
		TS: 2, Phase: "measure", Sent: 11, Confirmed: 22, Received: 33, Backlog: 4,
		Send: result.Points{P50NS: new(int64(3)), MaxNS: new(int64(5))},
		E2E:  result.Points{MaxNS: new(int64(9))},
	}
	golden.Equal(t, want, Interval(in, "measure", false), "")
	if got := Interval(in, "measure", true).Send.MaxNS; *got != 77 {
		t.Errorf("closed loop: %d", *got)
	}
	in.Kinds[measure.RTTResponse][measure.Measure] = *counts(11)
	in.Kinds[measure.RTTService][measure.Measure] = *counts(12)
	for closed, want := range map[bool]int64{false: 11, true: 12} {
		if got := Interval(in, "measure", closed).RTT; got == nil || *got.MaxNS != want {
			t.Errorf("closed %v: round trips %+v; want up to %d", closed, got, want)
		}
	}
}

func TestMessageAccountingBalances(t *testing.T) {
	good := result.Messages{
		Scheduled: 100, Sent: 90, Dropped: 4, Unsent: 3, Confirmed: 80, Failed: 6, Unconfirmed: 4,
		Delivered: 153, Corrupted: 1, Lost: 3, Pending: 1, Unknown: 2, Duplicated: 50, Foreign: 9, FailedDelivered: 2,
	}
	must.Do(t, balance(&good, 3, 2))
	for name, tt := range map[string]struct {
		change func(*result.Messages)
		says   string
	}{
		"one more scheduled": {func(m *result.Messages) { m.Scheduled++ }, "scheduled is 101"},
		"one less dropped":   {func(m *result.Messages) { m.Dropped-- }, "sent + dropped + unsent + not due is 99"},
		"one less failed":    {func(m *result.Messages) { m.Failed-- }, "confirmed + failed + unconfirmed is 89"},
		"one more delivered": {func(m *result.Messages) { m.Delivered++ }, "delivered + late + dead-lettered + corrupted + lost + pending + unknown is 161"},
		"a dead letter":      {func(m *result.Messages) { m.DeadLettered++ }, "dead-lettered + corrupted + lost + pending + unknown is 161"},
		"one less lost":      {func(m *result.Messages) { m.Lost-- }, "is 159"},
		"all wrong":          {func(m *result.Messages) { *m = result.Messages{Scheduled: 1, Unconfirmed: 1, Lost: 1} }, "confirmed for each subscription is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			tt.change(&m)
			err := balance(&m, 3, 2)
			if !errors.Is(err, ErrAccounting) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %q", err, tt.says)
			}
		})
	}
	produce := result.Messages{Scheduled: 5, Sent: 5, Confirmed: 5}
	if err := balance(&produce, 0, 0); err != nil {
		t.Errorf("nothing consumes: %v", err)
	}
}

// scaled gives n samples that rise evenly to most.
func scaled(n, most int64) *result.Dist {
	c := new(measure.Counts)
	for i := int64(1); i <= n; i++ {
		c.Add(i*most/n, 1)
	}
	return Distribution(c, nil)
}

// good is a run that nothing can be said against.
func good() result.Result {
	in := result.Result{
		Run:       result.Run{Loop: result.LoopOpen, Mode: "stream", MeasureS: 10},
		Messages:  result.Messages{Scheduled: 100_000, Sent: 100_000, Confirmed: 100_000},
		Intervals: []result.Interval{{TS: 2, LatestNS: new(int64(10_000))}, {TS: 3, LatestNS: new(int64(9_000))}},
		Evidence:  &result.Evidence{Sent: 100_000},
	}
	rise(&in, 100_000, 0.01)
	return in
}

// sends has this many of the run's messages sent and confirmed, and drops the others or
// leaves them unsent.
func sends(in *result.Result, sent uint64, dropped bool) {
	m := &in.Messages
	m.Sent, m.Confirmed = sent, sent
	if m.Unsent = m.Scheduled - sent; dropped {
		m.Dropped, m.Unsent = m.Unsent, 0
	}
}

// waits has messages wait for room.
func waits(in *result.Result) {
	in.Evidence.WhenFull, in.Latency.Send.Blocked = result.WhenFullWait, scaled(10, 1_000_000)
}

// of is a run as checks read it.
func of(r *result.Result) *subject { return subjectOf(r, nil) }

func TestVerdict(t *testing.T) {
	needs.NoRace(t)
	for _, tt := range []struct {
		name   string
		change func(*result.Result)
		check  string // the one that must say
		want   result.Status
		value  string // part of its value or reason
		whole  result.Status
	}{
		{"nothing against it", func(*result.Result) {}, CheckLateness, result.Valid, "not 999 µs: 1 % less", result.Valid},
		{"late by a tenth", func(in *result.Result) { rise(in, 100_000, 0.099) }, CheckLateness, result.Valid, "9.9 %", result.Valid},
		{"late by a third", func(in *result.Result) { rise(in, 100_000, 0.33) }, CheckLateness, result.Suspect, ": 33 % less", result.Suspect},
		{"late by most of it", func(in *result.Result) { rise(in, 100_000, 0.9) }, CheckLateness, result.Invalid, "90 %", result.Invalid},
		{"late at the median alone", func(in *result.Result) {
			sent(in, drawn{501, 100_000, 80_000}, drawn{499, 10_000_000, 0})
		}, CheckLateness, result.Invalid, "not 100 µs: 80 % less", result.Invalid},
		{"late by no more than any host is", func(in *result.Result) {
			sent(in, drawn{1000, 41_000, 40_000})
		}, CheckLateness, result.Suspect, "not 41.0 µs: 97.6 % less", result.Suspect},
		{"late at 99 % by no more than a sleep can be", func(in *result.Result) {
			sent(in, drawn{985, 400, 10}, drawn{15, 239_000, 237_000})
		}, CheckLateness, result.Valid, "changes send p99 up to p99.99 by over 10 %", result.Valid},
		{"late at 99 % as where others use the core", func(in *result.Result) {
			sent(in, drawn{985, 400, 10}, drawn{15, 297_000, 295_000})
		}, CheckLateness, result.Valid, "p99", result.Valid},
		{"late at 99.9 % only", func(in *result.Result) {
			sent(in, drawn{995, 1_000_000, 10}, drawn{5, 10_000_000, 9_000_000})
		}, CheckLateness, result.Valid, "send p99.9 is 1.00 ms, not 10.0 ms: 90 % less", result.Valid},
		{"late beyond the percentiles that are figures", func(in *result.Result) {
			recorded(in, func(s *measure.Sender, _ *measure.Receiver) {
				for i := range 40_000 {
					late := int64(10)
					if i < 40 { // p99.9 is of 40, p99.99 of four
						late = 9_000_000
					}
					s.Handed(0, 0, late, late, late, 64)
					s.Confirmed(0, late, late+1_000_000, late)
				}
			})
		}, CheckLateness, result.Valid, "", result.Valid},
		{"late where no percentile is supported", func(in *result.Result) { rise(in, 9, 0.9) }, CheckLateness, result.NotRun, "fewer than 10", result.Suspect},
		{"a closed loop is never late", func(in *result.Result) { in.Run.Loop, in.Latency = result.LoopClosed, result.Latency{} }, CheckLateness, result.NotRun, "closed loop", result.Valid},
		{"a closed loop has no rate to keep", func(in *result.Result) { in.Run.Loop = result.LoopClosed; sends(in, 5, false) }, CheckRate, result.NotRun, "", result.Valid},
		{"nothing confirmed", func(in *result.Result) { in.Latency = result.Latency{} }, CheckLateness, result.NotRun, "No message", result.Valid},
		{"late because pacers had to wait for the system", func(in *result.Result) {
			rise(in, 100_000, 0.9)
			in.Host.PacerWaits = 3
		}, CheckLateness, result.Suspect, "system refused", result.Suspect},

		{"half a percent missing", func(in *result.Result) { sends(in, 99_500, false) }, CheckRate, result.Valid, "99,500 of 100,000", result.Valid},
		{"the system took no more", func(in *result.Result) { sends(in, 60_000, true) }, CheckRate, result.Valid, "the system took 60 % of the rate: 60,000 of 100,000 sent (40,000 dropped, 0 unsent)", result.Valid},
		{"the system took the rest later", func(in *result.Result) { in.Evidence.Sent = 60_000; waits(in) }, CheckRate, result.Valid, "the system took 60 % of the rate: 100,000 of 100,000 sent, 40,000 of them", result.Valid},
		{"the system took some of the rest later", func(in *result.Result) { in.Evidence.Sent = 10_000; waits(in); sends(in, 30_000, false) }, CheckRate, result.Valid, "the system took 10 % of the rate: 30,000 of 100,000 sent", result.Valid},
		{"sent later for another reason", func(in *result.Result) { in.Evidence.Sent = 60_000 }, CheckRate, result.Valid, "100,000 of 100,000 sent", result.Valid},
		{"we sent too little", func(in *result.Result) {
			in.Latency.Send.Lateness = scaled(100_000, 4_000_000_000)
			sends(in, 60_000, false)
		}, CheckRate, result.Invalid, "did not keep up", result.Invalid},
		{"we did not come to all", func(in *result.Result) { in.Evidence.Behind = 40_000; sends(in, 60_000, false) }, CheckRate, result.Invalid, "the generator did not keep up: 60,000 of 100,000 sent", result.Invalid},
		{"we did not come to all, and pacers had to wait", func(in *result.Result) { in.Evidence.Behind, in.Host.PacerWaits = 40_000, 3; sends(in, 60_000, false) }, CheckRate, result.Invalid, "the generator did not keep up", result.Invalid},
		{"we did not come to a few", func(in *result.Result) { in.Evidence.Behind = 500; sends(in, 60_000, false) }, CheckRate, result.Valid, "the system took 60 % of the rate", result.Valid},
		{"behind for a moment", func(in *result.Result) {
			*in.Intervals[1].LatestNS, in.Run.WarmUpS = 51_000_000, new(1.5)
		}, CheckRate, result.Suspect, "late in 1 of 2 seconds, by up to 51.0 ms in the second that began at 1.5 s of the measured window", result.Suspect},
		{"behind where a second began in the warm-up", func(in *result.Result) {
			*in.Intervals[0].LatestNS, in.Run.WarmUpS = 51_000_000, new(2.1)
		}, CheckRate, result.Suspect, "in the second that began at 0.0 s of the measured window", result.Suspect},
		{"behind by less than it matters", func(in *result.Result) { *in.Intervals[1].LatestNS = 49_000_000 }, CheckRate, result.Valid, "", result.Valid},
		{"nothing scheduled", func(in *result.Result) { in.Messages = result.Messages{} }, CheckRate, result.NotRun, "Nothing", result.Invalid},

		{"samples to 99.99 %", func(*result.Result) {}, CheckSamples, result.Valid, "p99.999 needs 500,000", result.Valid},
		{"too few for any percentile", func(in *result.Result) { rise(in, 9, 0) }, CheckSamples, result.Suspect, "too few samples for any percentile", result.Suspect},
		{"enough for the median", func(in *result.Result) { rise(in, 10, 0) }, CheckSamples, result.Valid, "10 samples", result.Valid},
		{"no samples", func(in *result.Result) { in.Latency = result.Latency{} }, CheckSamples, result.NotRun, "", result.Valid},
		{"only deliveries", func(in *result.Result) {
			d := scaled(20, 5)
			in.Latency = result.Latency{E2E: result.Pair{Response: d, OnTime: d}}
		}, CheckSamples, result.Valid, "20 samples", result.Valid},
		{"holes closed", func(in *result.Result) { in.Host.LedgerEvicted = 1 }, CheckLedger, result.Suspect, "does not know what became of these messages", result.Suspect},
		{"over an hour", func(in *result.Result) { in.Latency.Send.Response.Overflow = 1 }, CheckOverflow, result.Suspect, "1 samples", result.Suspect},
		{"books wrong", func(in *result.Result) { in.Messages.Scheduled, in.Evidence.Planned = 100_001, 1 }, CheckAccounting, result.Invalid, "; ", result.Invalid},
		{"interrupted", func(in *result.Result) { in.Run.Interrupted = true }, CheckRun, result.Suspect, "part that ran", result.Suspect},
		{"ended by weir", func(in *result.Result) { in.Evidence.EndedFor = "a producer was full" }, CheckRun, result.Invalid, "a producer was full", result.Invalid},
		{"interrupted before anything was sent", func(in *result.Result) { in.Run.Interrupted, in.Messages = true, result.Messages{} }, CheckRun, result.Invalid, "nothing was measured", result.Invalid},
		{"ended before anything was sent", func(in *result.Result) { in.Evidence.EndedFor = "full"; sends(in, 0, false) }, CheckRun, result.Invalid, "nothing was measured: ended early: full", result.Invalid},
		{"nothing confirmed at all", func(in *result.Result) { in.Messages.Confirmed, in.Messages.Unconfirmed = 0, 100_000 }, CheckRun, result.Invalid, "nothing was confirmed", result.Invalid},
		{"nothing to confirm where nothing is sent", func(in *result.Result) {
			in.Run.Mode, in.Evidence.Received, in.Messages = result.ModeConsume, 1, result.Messages{}
		}, CheckRun, result.Valid, "", result.Valid},
		{"gone after the drain", func(in *result.Result) { in.Run.Gone = &result.Gone{Why: "no answer"} }, CheckRun, result.Invalid, "the system is gone: no answer", result.Invalid},
		{"nothing sent", func(in *result.Result) { in.Messages = result.Messages{} }, CheckRun, result.Invalid, "nothing was sent", result.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := good()
			tt.change(&in)
			v := Verdict(&in, nil)
			if v.Status != tt.whole {
				t.Errorf("verdict %s, want %s: %+v", v.Status, tt.whole, v.Checks)
			}
			for _, c := range v.Checks {
				if c.Name == tt.check {
					if c.Status != tt.want || !strings.Contains(c.Value+"\n"+c.Why, tt.value) {
						t.Errorf("%+v, want %s saying %q", c, tt.want, tt.value)
					}
				}
				if c.Limit == "" || c.Status != result.Valid && c.Why == "" {
					t.Errorf("%s says too little: %+v", c.Name, c)
				}
			}
		})
	}
}

// Only checks that did not run are named to people.
func TestInapplicableChecksDifferFromNotRun(t *testing.T) {
	for what, x := range map[string]struct {
		change func(*result.Result)
		cannot []string
	}{
		"an open loop": {func(in *result.Result) {
			in.Evidence.Blocked, in.Latency.Send.Blocked = &result.BlockedTime{}, in.Latency.Send.Lateness
		}, nil},
		"nobody waits": {func(*result.Result) {}, []string{CheckBlocked}},
		"a closed loop": {
			func(in *result.Result) {
				in.Run.Loop = result.LoopClosed
				in.Latency = result.Latency{Send: result.Send{Service: in.Latency.Send.Response}}
			},
			[]string{CheckLateness, CheckRate, CheckHeadroom, CheckBlocked},
		},
		"only receiving": {
			func(in *result.Result) {
				in.Run.Mode, in.Latency, in.Messages, in.Evidence.Received = result.ModeConsume, result.Latency{}, result.Messages{}, 5
			},
			[]string{CheckFailed, CheckLateness, CheckRate, CheckSamples, CheckSteady, CheckHeadroom, CheckHiccups, CheckBlocked},
		},
		"nothing came of it": {func(in *result.Result) {
			in.Evidence.Blocked, in.Latency, in.Messages.Confirmed = &result.BlockedTime{}, result.Latency{}, 0
		}, nil},
	} {
		in := good()
		in.Host = quietHost().Host
		x.change(&in)
		var cannot []string
		for _, c := range Verdict(&in, nil).Checks {
			if c.Inapplicable {
				cannot = append(cannot, c.Name)
				if c.Status != result.NotRun || c.Why == "" {
					t.Errorf("%s: %+v", what, c)
				}
			}
		}
		if diff := cmp.Diff(x.cannot, cannot); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// TestSecondReportsGreatestLateness: of the measured window alone.
func TestSecondReportsGreatestLateness(t *testing.T) {
	in := &measure.Interval{From: 5e9}
	in.Kinds[measure.SendLateness][measure.Measure] = *counts(7, 1234)
	in.Kinds[measure.SendLateness][measure.WarmUp] = *counts(9999)
	if got := Interval(in, "measure", false).LatestNS; got == nil || *got != 1234 {
		t.Errorf("got %v", got)
	}
	if got := Interval(&measure.Interval{}, "measure", false).LatestNS; got != nil {
		t.Errorf("nothing was handed over: %v", *got)
	}
}

func TestWorst(t *testing.T) {
	for _, tt := range []struct {
		statuses []result.Status
		want     result.Status
	}{
		{nil, result.Valid},
		{[]result.Status{result.NotRun}, result.Valid},
		{[]result.Status{result.Valid, result.Suspect, result.NotRun}, result.Suspect},
		{[]result.Status{result.Invalid, result.Suspect}, result.Invalid},
	} {
		var checks []result.Check
		for _, s := range tt.statuses {
			checks = append(checks, result.Check{Status: s})
		}
		if got := Worst(checks); got != tt.want {
			t.Errorf("%v: %s", tt.statuses, got)
		}
	}
}

func TestSmallBacklogRateIsSuspect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, rest time.Duration
		want        result.Status
	}{
		{time.Millisecond, 20 * time.Millisecond, result.Valid},
		{20 * time.Millisecond, 20 * time.Millisecond, result.Valid},
		{20 * time.Millisecond, time.Millisecond, result.Suspect},
		{time.Millisecond, 0, result.Suspect},
	} {
		filled := &result.Filled{Messages: 1, BeganNS: 5, FirstNS: 5 + int64(c.first), LastNS: 5 + int64(c.first+c.rest)}
		v := Verdict(&result.Result{Evidence: &result.Evidence{Filled: filled}}, nil)
		last := v.Checks[len(v.Checks)-1]
		if last.Name != CheckDrain || last.Status != c.want {
			t.Errorf("%v after %v: %+v; want %s", c.rest, c.first, last, c.want)
		}
	}
}

func TestInstantBacklogHasNoRate(t *testing.T) {
	t.Parallel()
	o := must.Get(ParseObjective("received.rate >= 10/s"))(t)
	r := &result.Result{Run: result.Run{Mode: "backlog", MeasureS: 1}, MessagesAll: result.Messages{Delivered: 10}}
	if s := o.Judge(r); s.Status != result.Undecided {
		t.Errorf("got %+v", s)
	}
	r.MessagesAll.Delivered, r.Throughput.ReceivedPerS = 0, new(0.0)
	if s := o.Judge(r); s.Status != result.Fail {
		t.Errorf("nothing received: got %+v", s)
	}
	r.Run, r.Throughput.ReceivedPerS = result.Run{Mode: result.ModeConsume}, nil
	if s := o.Judge(r); s.Status != result.Undecided || !strings.Contains(s.Why, "nothing was received") {
		t.Errorf("nothing to receive: got %+v", s)
	}
}
