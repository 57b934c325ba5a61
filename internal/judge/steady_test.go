package judge

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// seconds makes a run of n seconds whose p50, p99 and backlog are given by the
// second, with one of warm-up before and one of the drain behind.
func seconds(n int, p50, p99 func(i int) int64, backlog func(i int) uint64) []result.Interval {
	out := []result.Interval{{Phase: "warmup", Send: result.Points{P50NS: new(int64(1 << 40))}}}
	for i := range n {
		out = append(out, result.Interval{TS: float64(i), Phase: "measure", Backlog: backlog(i), Send: result.Points{P50NS: new(p50(i)), P99NS: new(p99(i))}})
	}
	return append(out, result.Interval{Phase: "drain"})
}

// lasting is a run of these seconds with perS messages a second offered.
func lasting(perS float64, rows []result.Interval) result.Result {
	return result.Result{Intervals: rows, Messages: result.Messages{Sent: 1}, Evidence: &result.Evidence{HighestPerS: perS}}
}

func flat(i int) uint64 { return uint64(i % 3) }

// around is a figure that varies by a tenth from second to second.
func around(dice *rand.Rand, ns float64) func(int) int64 {
	return func(int) int64 { return int64(ns * (1 + 0.1*dice.NormFloat64())) }
}

func TestASteadyRunIsSteady(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	bad := 0
	const runs = 400
	for i := range runs {
		n := 10 + i%60
		in := lasting(1000, seconds(n, around(dice, 1e5), around(dice, 1e6), flat))
		if c := steady(of(&in)).stored(); c.Status != result.Valid {
			bad++
			t.Log(c.Value)
		}
	}
	if bad > runs/50 {
		t.Errorf("%d of %d steady runs are called unsteady; want at most one of fifty", bad, runs)
	}
}

func TestUnsteadyFiguresAreReported(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	p50, p99 := around(dice, 1e5), around(dice, 1e6)
	warming := seconds(30, func(i int) int64 { return p50(i) + int64(max(0, 6-i))*100_000 }, p99, flat)
	cut := []result.Fault{{Do: "cut", To: "leader"}}
	for name, x := range map[string]struct {
		rows    []result.Interval
		faults  []result.Fault
		of      string
		seconds any
		codes   string
	}{
		"a warm-up too short":       {warming, nil, "send p50", nil, "steady.beginning steady.warm_up"},
		"and a fault":               {warming, cut, "send p50", nil, "steady.beginning steady.fault"}, // a longer warm-up moves it along
		"a tail that warms up":      {seconds(60, p50, func(i int) int64 { return p99(i) + int64(max(0, 12-i))*1_000_000 }, flat), nil, "send p99", nil, "steady.beginning steady.warm_up"},
		"a first second of another": {seconds(10, func(i int) int64 { return p50(i) * int64(1+9*max(0, 1-i)) }, p99, flat), nil, "send p50", 1.0, "steady.beginning steady.warm_up"},
		"half a run of another":     {seconds(14, func(i int) int64 { return p50(i) * int64(1+49*min(1, max(0, 7-i))) }, p99, flat), nil, "send p50", 7.0, "steady.beginning steady.warm_up"},
		"a tail that grows":         {seconds(20, p50, func(i int) int64 { return p99(i) * int64(20+i) / 20 }, flat), nil, "send p99", nil, "steady.trend steady.drifts"},
		"a median that falls":       {seconds(60, func(i int) int64 { return p50(i) * int64(90-i) / 90 }, p99, flat), nil, "send p50", nil, "steady.trend steady.drifts"},
		"confirmations too slow":    {short(2, 20, 1000, flat, func(i int) uint64 { return uint64(30 * i) }).Intervals, nil, "", nil, "steady.open steady.system"},
		"consumers too slow":        {seconds(10, p50, p99, func(i int) uint64 { return uint64(100*i + i%3) }), nil, "", nil, "steady.backlog steady.consumers"},
	} {
		in := lasting(1000, x.rows)
		in.Faults = x.faults
		c := steady(of(&in)).stored()
		if got := strings.Join(c.Codes, " "); statusOrFound(c) != result.Suspect || got != x.codes || x.of != "" && c.Values["of"] != x.of || x.seconds != nil && c.Values["seconds"] != x.seconds {
			t.Errorf("%s: %+v; want it suspect for %s, %v s, %s", name, c, x.of, x.seconds, x.codes)
		}
	}
}

// A latency that is long but constant, a stall at the end, failed messages, and a closed loop, which fills
// its places.
func TestLateConfirmationsAreNotFallingBehind(t *testing.T) {
	behind := func(i int) uint64 { return uint64(30 * i) }
	failed, closed := short(2, 20, 1000, flat, behind), short(2, 20, 1000, flat, behind)
	failed.MessagesAll.Failed = 600
	closed.Run.Loop = result.LoopClosed
	for name, in := range map[string]result.Result{
		"a latency of 3 s":   short(2, 10, 1000, flat, func(i int) uint64 { return min(3000, 1000*uint64(i+1)) }),
		"a stall at its end": short(2, 20, 1000, flat, func(i int) uint64 { return uint64(i%3 + i/21*900) }),
		"messages failed":    failed,
		"a closed loop":      closed,
	} {
		if c := steady(of(&in)).stored(); says(c, "steady.backlog", "steady.open") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// stopped is a run of ten seconds in which the system stalls for some, and then catches up.
func stopped(from, still int, p50, p99 func(int) int64, backlog func(int) uint64) result.Result {
	rows := seconds(10, p50, p99, backlog)
	for i := from; i < from+still; i++ {
		rows[1+i].Send = result.Points{}
	}
	if after := 1 + from + still; after < 11 {
		rows[after].Send = result.Points{P50NS: new(int64(59_506_687)), P99NS: new(int64(988_807_167))}
	}
	in := lasting(2000, rows)
	in.Run.MeasureS = 10
	return in
}

// A backlog filled on purpose is not a finding, but other drift is; seconds without a percentile are
// skipped, and the rest judged if they suffice; warm-up messages confirmed in the window do not count.
func TestDriftJudgedFromUsableSeconds(t *testing.T) {
	const ok, suspect, not = result.Valid, result.Suspect, result.NotRun
	dice := rand.New(rand.NewPCG(3, 4))
	p50, p99 := around(dice, 1e5), around(dice, 1e6)
	still := func(int) int64 { return 1e6 }
	grows := func(by int) func(int) uint64 { return func(i int) uint64 { return uint64(by * i) } }
	none := func(rows []result.Interval) []result.Interval {
		for i := range rows {
			rows[i].Send = result.Points{}
		}
		return rows
	}
	first := seconds(14, func(i int) int64 { return p50(i) * int64(1+49*min(1, max(0, 4-i))) }, p50, flat)
	first[1].Send = result.Points{} // which is often cut short
	asIs := func(*result.Result) {}
	fills := func(in *result.Result) { in.Run.Mode = result.ModeBacklog }
	for name, x := range map[string]struct {
		in     result.Result
		change func(*result.Result)
		want   result.Status
		codes  string
	}{
		"a backlog that is filled":     {lasting(1000, seconds(12, p50, p99, grows(1000))), fills, ok, "steady.unchanged"},
		"a tail that grows beside it":  {lasting(1000, seconds(20, p50, func(i int) int64 { return p99(i) * int64(20+i) / 20 }, grows(1000))), fills, suspect, "steady.trend steady.drifts"},
		"a rate that changes":          {lasting(1000, seconds(12, p50, p99, grows(1000))), func(in *result.Result) { in.Evidence.RateVaries = true }, not, "steady.rate_varies"},
		"a backlog small for the rate": {lasting(100_000, seconds(10, still, still, grows(100))), asIs, ok, "steady.unchanged"},
		"nothing sent in the window":   {lasting(1000, seconds(12, still, still, flat)), func(in *result.Result) { in.Messages.Sent = 0 }, not, "steady.nothing"},
		"a few messages a second":      {lasting(1, none(seconds(12, still, still, flat))), asIs, not, "steady.few_sampled"},
		"and a backlog that grows":     {lasting(100, none(seconds(12, still, still, grows(100)))), asIs, suspect, "steady.backlog steady.consumers"},
		"only received":                {lasting(0, seconds(12, still, still, flat)), func(in *result.Result) { in.Run.Mode, in.Evidence.Received = result.ModeConsume, 12 }, not, "no.latencies"},
		"no percentile in the first":   {lasting(1000, first), asIs, suspect, "steady.beginning steady.left_out steady.warm_up"},
		"a stop of a second":           {stopped(5, 1, p50, p99, flat), asIs, ok, "steady.unchanged steady.left_out"},
		"a stop of two":                {stopped(4, 2, p50, p99, flat), asIs, ok, "steady.unchanged steady.left_out"},
		"the last two":                 {stopped(8, 2, p50, p99, flat), asIs, ok, "steady.unchanged steady.left_out"},
		"three: too few left":          {stopped(4, 3, p50, p99, flat), asIs, not, "steady.few_sampled"},
		"a stop, and all changes":      {stopped(5, 1, func(i int) int64 { return p50(i) * int64(1+i) }, p99, flat), asIs, suspect, "steady.trend steady.left_out steady.drifts"},
	} {
		x.change(&x.in)
		c := steady(of(&x.in)).stored()
		if got := strings.Join(c.Codes, " "); statusOrFound(c) != x.want || got != x.codes || c.Inapplicable != (got == "steady.rate_varies" || got == "no.latencies") {
			t.Errorf("%s: %+v; want it %s, %s", name, c, x.want, x.codes)
		}
	}
	bad := 0
	const runs = 400
	for i := range runs {
		if in := stopped(2+i%7, 1+i%2, p50, p99, flat); statusOrFound(steady(of(&in)).stored()) == result.Suspect {
			bad++
		}
	}
	if bad > runs/50 {
		t.Errorf("%d of %d runs that are steady but for a stop are called unsteady; want at most one of fifty", bad, runs)
	}
}

// It came from a stall, and the consumers caught up.
func TestBacklogThatShrinksIsNotGrowing(t *testing.T) {
	dice := rand.New(rand.NewPCG(9, 10))
	p50, p99 := around(dice, 1e5), around(dice, 1e6)
	for name, x := range map[string]struct {
		of    []uint64
		grows bool
	}{
		"a stop of two seconds in the middle":   {[]uint64{0, 1, 0, 1, 2000, 4000, 1000, 0, 1, 0}, false},
		"a stop of two seconds near the end":    {[]uint64{0, 1, 0, 1, 0, 1, 0, 2000, 4000, 300}, false},
		"a stop of four seconds, caught up":     {[]uint64{0, 1, 2, 3, 2000, 4000, 6000, 8000, 8100, 3}, false},
		"a stop of four seconds, not caught up": {[]uint64{0, 1, 2, 3, 2000, 4000, 6000, 8000, 9000, 9500}, true},
		"it grows throughout":                   {[]uint64{0, 200, 390, 610, 800, 990, 1210, 1400, 1590, 1800}, true},
	} {
		in := lasting(2000, seconds(10, p50, p99, func(i int) uint64 { return x.of[i] }))
		if c := steady(of(&in)).stored(); says(c, "steady.backlog") != x.grows {
			t.Errorf("%s: %+v; want growing %t", name, c, x.grows)
		}
	}
}

// A window of one second can span two clock seconds.
func TestWholeMeasuredSecondsAreCounted(t *testing.T) {
	still := func(int) int64 { return 1e6 }
	for _, x := range []struct {
		rows     int
		measureS float64
		seconds  float64 // that there are
		code     string
	}{
		{2, 1, 1.0, "steady.short"},
		{1, 0.2, 0.0, "steady.short"},
		{5, 7, 7.0, "steady.short"}, // two of them are long
		{7, 10, 10.0, "steady.few_intervals"},
		{10, 9.4, 9.0, "steady.short"},
		{9, 0, 9.0, "steady.short"}, // of an older version
		{11, 9.98, 11.0, ""},
		{9, 10, 9.0, ""}, // one of them is long
	} {
		in := lasting(1000, seconds(x.rows, still, still, flat))
		in.Run.MeasureS = x.measureS
		if c := steady(of(&in)); whyOf(c) != x.code || c.stored().Values["seconds"] != x.seconds {
			t.Errorf("%d rows of %v s: %+v; want %s", x.rows, x.measureS, c.stored(), x.code)
		}
	}
}

// With ties a rank test has less power, and an outlier among them moves the end of the beginning.
func TestWarmUpDetectedDespiteEqualMedians(t *testing.T) {
	for outlier := 4; outlier < 14; outlier++ {
		in := lasting(500, seconds(14, func(i int) int64 {
			switch {
			case i < 4:
				return 250_000_000
			case i == outlier:
				return 5_300_000
			}
			return 5_110_000
		}, func(int) int64 { return 1 }, flat))
		if c := steady(of(&in)).stored(); statusOrFound(c) != result.Suspect {
			t.Errorf("with an outlier in second %d: %+v", outlier, c)
		}
	}
}

// The advised length is beyond its end: seconds differ until 6 s after the start of the run, of which 2 are
// warm-up.
func TestShortWarmUpSuggestsLength(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 6))
	p50, p99 := around(dice, 1e5), around(dice, 1e6)
	rows := seconds(30, func(i int) int64 {
		if i < 4 {
			return 5 * p50(i)
		}
		return p50(i)
	}, p99, flat)
	for i := range rows {
		rows[i].TS += 2
	}
	in := lasting(1000, rows)
	if c := steady(of(&in)).stored(); statusOrFound(c) != result.Suspect || c.Values["warm"] != 6.0 || c.Values["warmup"] != 9.0 {
		t.Errorf("%+v; want it suspect, for 6 s, with a warm-up of 9 s", c)
	}
}
