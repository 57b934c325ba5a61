package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// sampled returns what the system took for 20,000 messages in 20 steps: 1 ms each, and what late returns for
// the messages beside a delay of the host, a hundred in each step.
func sampled(late int64, delay int64) (all *measure.Counts, groups []wire.Group) {
	all = new(measure.Counts)
	for step := range int64(20) {
		calm, disturbed := new(measure.Counts), new(measure.Counts)
		for i := range int64(900) {
			calm.Add(1_000_000+i*100, 1)
		}
		disturbed.Add(late, 100)
		groups = append(groups, wire.Group{Step: step, Delay: 1, System: *calm}, wire.Group{Step: step, Delay: delay, System: *disturbed})
		all.Merge(calm)
		all.Merge(disturbed)
	}
	return all, groups
}

// ofSystem returns a run in which kernel instants show such a part of the system.
func ofSystem(system *result.Dist) *result.Result {
	in := good()
	in.Latency = result.Latency{E2E: result.Pair{Response: scaled(1000, 3000), OnTime: scaled(1000, 3000)}}
	in.Wire = &result.Wire{E2E: &result.WireParts{Sampled: 20_000, Exact: 20_000, System: system}}
	return &in
}

func TestSystemTimeMarkedForHostDelays(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		late, delay int64
		marked      string
	}{
		"delays that are short beside it": {20_000_000, 50_000, ""},
		"delays that moved nothing":       {1_000_000, 20_000_000, ""},
		"delays that moved the tail":      {20_000_000, 20_000_000, "p95 p99 p99.9"},
	} {
		all, groups := sampled(x.late, x.delay)
		in := ofSystem(SystemsPart(all, groups, nil, 40_000))
		var marked []string
		figures := 0
		for _, f := range Figures(in) {
			if p, is := strings.CutPrefix(f.Name, "e2e.system."); is {
				if figures++; !f.Quotable {
					marked = append(marked, p)
				}
			}
		}
		if got := strings.Join(marked, " "); figures < 6 || got != x.marked && got != strings.TrimSpace(x.marked+" p99.99") {
			t.Errorf("%s: of %d figures %q are marked; want %q", name, figures, got, x.marked)
		}
	}
}

// TestLocalSystemTimeMarkedForHostStalls: calm messages prove nothing about the system's own threads.
func TestLocalSystemTimeMarkedForHostStalls(t *testing.T) {
	t.Parallel()
	all, groups := sampled(20_000_000, 1)
	beside := new(measure.Counts)
	beside.Add(20_000, 8000)
	beside.Add(30_000_000, 2000)
	for _, f := range Figures(ofSystem(SystemsPart(all, groups, beside, 20_000))) {
		if f.Name == "e2e.system.p99" && f.Quotable {
			t.Error("p99 can be quoted on a host that stood still for a fifth of the time")
		}
	}
	calm := new(measure.Counts)
	calm.Add(20_000, 10_000)
	for _, f := range Figures(ofSystem(SystemsPart(all, groups, calm, 20_000))) {
		if f.Name == "e2e.system.p99" && !f.Quotable {
			t.Errorf("on a calm host: %s", f.Why)
		}
	}
}

func TestSystemsPartNeedsNearlyAllMessages(t *testing.T) {
	t.Parallel()
	all, groups := sampled(1_000_000, 1)
	in := ofSystem(SystemsPart(all, groups, nil, 0))
	in.Wire.E2E.Sampled, in.Wire.E2E.Late = 20_100, 100 // half a percent
	for _, f := range Figures(in) {
		if want := map[string]bool{"e2e.system.p50": true, "e2e.system.p90": true, "e2e.system.p99": false}; strings.HasPrefix(f.Name, "e2e.system") {
			if q, is := want[f.Name]; is && q != f.Quotable {
				t.Errorf("%s: quotable %v: %s", f.Name, f.Quotable, f.Why)
			}
		}
	}
}

// TestSystemsPartNeedsTime: windows of a moment do not stand for the run.
func TestSystemsPartNeedsTime(t *testing.T) {
	t.Parallel()
	all := new(measure.Counts)
	all.Add(1000, 10_000)
	if row := SystemsPart(all, []wire.Group{{Delay: 1, System: *all}}, nil, 0).Percentile(50); row.Supported || row.LoNS != nil {
		t.Errorf("%+v", row)
	}
}

// A bound gives way to what kernel instants show, if the system's own part is known.
func TestKernelInstantsReplaceABound(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	for _, x := range []struct {
		moved    float64
		left     uint64
		quotable bool
		code     string
	}{{0.05, 0, true, ""}, {0.30, 0, false, "figure.host"}, {0.05, 5000, false, "figure.stalls"}} {
		all, groups := sampled(1_000_000, 1)
		in := ofSystem(SystemsPart(all, groups, nil, 0))
		in.Latency.E2E.Response.Percentile(50).Stalls = &result.Stalls{Met: 1}
		in.Wire.E2E.At = []result.WireAt{{P: 50, Moved: &x.moved}}
		in.Wire.E2E.Sampled += x.left
		v := Verdict(in, nil)
		if f := v.Figure("e2e.p50"); f.Quotable != x.quotable || f.Code != x.code {
			t.Errorf("moved %v, %d left out: %+v", x.moved, x.left, f)
		}
	}
}

// TestHostMovedComparesWithTheWholeRun uses messages of 20 ms of which this host added 11 ms.
func TestHostMovedComparesWithTheWholeRun(t *testing.T) {
	t.Parallel()
	const ms = 1_000_000
	fill := func(v, slow int64) *measure.Counts {
		c := new(measure.Counts)
		c.Add(v, 9000)
		c.Add(slow, 1000)
		return c
	}
	for _, x := range []struct {
		ns    int64
		left  float64
		moved float64
		ok    bool
	}{{20 * ms, 0, 0.55, true}, {30 * ms, 0, 0, false}, {20 * ms, 0.02, 0, false}} {
		row := &result.Percentile{P: 95, NS: x.ns, Supported: true}
		moved, ok := hostMoved(row, fill(10*ms, 20*ms), fill(9*ms, 9*ms), x.left)
		if ok != x.ok || moved < x.moved-0.01 || moved > x.moved+0.01 {
			t.Errorf("p95 of all %d, %v left out: %v, %v", x.ns, x.left, moved, ok)
		}
	}
}

// A run whose latencies cannot be quoted is valid with those of the system.
func TestQuotableNamesTheSystemsPart(t *testing.T) {
	t.Parallel()
	v := result.Verdict{Figures: []result.Figure{
		{Name: "e2e.p50", Quotable: true}, {Name: "e2e.p99"}, {Name: "e2e.system.p50", Quotable: true}, {Name: "e2e.system.p99", Quotable: true}, {Name: "e2e.system.p99.9"},
	}}
	can, cannot := Quotable(&v)
	if got, want := strings.Join(can, ", "), "e2e p50, e2e system p99"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := strings.Join(cannot, ", "), "e2e p99"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	in := good()
	c := figures(subjectOf(&in, nil), []result.Figure{{Name: "e2e.p99", By: CheckHiccups}, {Name: "e2e.system.p99", Quotable: true}})
	if c.status != result.Valid || !strings.Contains(c.stored().Why, "can be quoted, at 1 percentile.") {
		t.Errorf("%+v", c.stored())
	}
}

// TestObjectivesOfTheSystemsPart: p99 of the system is 1 ms.
func TestObjectivesOfTheSystemsPart(t *testing.T) {
	t.Parallel()
	all, groups := sampled(1_000_000, 1)
	known := func() *result.Result { return ofSystem(SystemsPart(all, groups, nil, 40_000)) }
	leftOut := known()
	leftOut.Wire.E2E.Sampled = 2 * leftOut.Wire.E2E.Exact
	short := ofSystem(SystemsPart(all, groups[:8], nil, 40_000))
	without := known()
	without.Wire = nil
	for _, x := range []struct {
		name, objective string
		in              *result.Result
		want            result.Outcome
	}{
		{"met", "e2e.system.p99 < 2ms", known(), result.Pass},
		{"missed", "e2e.system.p99 < 500us", known(), result.Fail},
		{"half of the messages are left out", "e2e.system.p99 < 2ms", leftOut, result.Undecided},
		{"half are left out, and the rest misses it", "e2e.system.p99 < 500us", leftOut, result.Undecided},
		{"four steps of time", "e2e.system.p99 < 2ms", short, result.Undecided},
		{"nothing is known of send", "send.system.p99 < 2ms", known(), result.Undecided},
		{"no kernel instants", "e2e.system.p99 < 2ms", without, result.Undecided},
	} {
		o := must.Get(ParseObjective(x.objective))(t)
		if o.String() != x.objective || !strings.HasPrefix(x.objective, o.Figure()) {
			t.Errorf("%s: reads %q of %q", x.name, o, o.Figure())
		}
		v := result.Verdict{Figures: Figures(x.in)}
		if got := o.judged(x.in, &v); got.Outcome() != x.want {
			t.Errorf("%s: %s (%s); want %s", x.name, got.Outcome(), got.Why, x.want)
		} else if x.in == short && !strings.HasSuffix(got.Why, "messages were sampled in too few parts of the run") {
			t.Errorf("%s: %q", x.name, got.Why)
		}
	}
	for _, bad := range []string{"rtt.system.p99 < 1ms", "e2e.system.max < 1ms", "e2e.system < 1ms", "e2e.system.service.p99 < 1ms"} {
		if _, err := ParseObjective(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
