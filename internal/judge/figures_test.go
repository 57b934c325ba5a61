package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// markedBy returns the figures that cannot be quoted with the checks that say so.
func markedBy(in *result.Result) string {
	var out []string
	for _, f := range Figures(in) {
		if !f.Quotable {
			out = append(out, f.Name+":"+f.By)
			if f.Part <= 0 || f.Part > 1 || f.Why == "" || f.Code == "" {
				out = append(out, "incomplete")
			}
		}
	}
	return strings.Join(out, " ")
}

// serversWaited sets for how many seconds of 10 the servers waited for a core, and how busy the host was.
func serversWaited(in *result.Result, seconds, busy float64) {
	in.Host.Usage = quietHost().Host.Usage
	in.Host.Usage.HostBusyShare = new(busy)
	in.Servers = &result.Servers{SpanS: 10, Processes: []host.ServerUsage{{Name: "server", Cores: new(0.1), WaitedS: new(seconds)}}}
}

func TestFigureMarkNamesItsCause(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	for name, x := range map[string]struct {
		change func(*result.Result)
		want   string
	}{
		"nothing": {func(*result.Result) {}, ""},
		"lateness of the slowest": {func(in *result.Result) {
			sent(in, drawn{995, 1_000_000, 10}, drawn{5, 10_000_000, 9_000_000})
		}, "send.p99.9:lateness send.p99.99:lateness"},
		"a client that waits for a core": {func(in *result.Result) {
			in.Latency.Send.Blocked = scaled(1000, 200)
			in.Latency.Send.Response = scaled(1000, 1000)
			in.Latency.Send.OnTime = scaled(1000, 1000)
			in.Evidence.Blocked = &result.BlockedTime{PublishNS: 7, LookedNS: 1000, BusyNS: 1000}
		}, "send.p50:blocked send.p75:blocked send.p90:blocked send.p95:blocked send.p99:blocked"},
		"two clocks": {func(in *result.Result) {
			in.Latency = result.Latency{E2E: result.Pair{Response: scaled(1000, 1_000_000), OnTime: scaled(1000, 1_000_000)}}
			in.Latency.E2E.Response.ClockBoundNS = new(int64(80_000))
		}, "e2e.p50:clock e2e.p75:clock"},
		"servers without a core, while others have them": {func(in *result.Result) {
			serversWaited(in, 0.3, 0.7)
		}, "send.p75:cpu send.p90:cpu send.p95:cpu send.p99:cpu send.p99.9:cpu send.p99.99:cpu"},
		"servers that wait for each other": {func(in *result.Result) { serversWaited(in, 0.3, 0.4) }, ""},
		"servers that hardly waited":       {func(in *result.Result) { serversWaited(in, 0.00005, 0.7) }, ""},
		"a closed loop without its cores": {func(in *result.Result) {
			in.Run.Loop, in.Throughput.ConfirmedPerS = result.LoopClosed, 1000
			in.Latency = result.Latency{Send: result.Send{Service: scaled(20, 1000)}}
			in.Host.Usage = quietHost().Host.Usage
			in.Host.Usage.TakenS, in.Host.Usage.CPUSeconds = new(2.0), new(5.0)
		}, "send.service.p50:cpu send.service.p75:cpu confirmed.rate:cpu"},
	} {
		in := good()
		x.change(&in)
		if got := markedBy(&in); got != x.want {
			t.Errorf("%s: %s; want %s", name, got, x.want)
		}
	}
}

// A run is valid while one latency can be quoted.
func TestRunIsSuspectWithoutQuotableLatency(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		calm int64
		want result.Status
	}{{1000, result.Valid}, {2, result.Suspect}} {
		in := good()
		in.Latency = result.Latency{E2E: result.Pair{Response: scaled(1000, 1000), OnTime: scaled(1000, 1000)}}
		for i := range in.Latency.E2E.Response.Percentiles {
			row := &in.Latency.E2E.Response.Percentiles[i]
			row.Stalls = &result.Stalls{Met: 1, LeastNS: 1}
			if row.P == 50 {
				row.Stalls.LeastNS = row.NS * x.calm / 1000
			}
		}
		v := Verdict(&in, nil)
		can, cannot := Quotable(&v)
		if v.Status != x.want || find(v.Checks, CheckFigures).Status != x.want || slices.Contains(can, "e2e p50") != (x.want == result.Valid) {
			t.Errorf("%s, %q can be quoted, %q cannot; want %s", v.Status, can, cannot, x.want)
		}
	}
}

// An objective whose figure misses the limit only by what stalls may have added is not decided; one whose
// figure can be quoted, or misses it anyway, is failed.
func TestObjectiveGoesByItsFigure(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]result.Outcome{
		"e2e.p99 <= 1ms": result.Pass, "e2e.p99 <= 600us": result.Undecided, "e2e.p99 <= 400us": result.Fail, "e2e.p50 <= 400us": result.Fail, "e2e.p99 >= 2ms": result.Fail,
	} {
		in := good()
		d := scaled(10_000, 1_000_000)
		for i := range d.Percentiles {
			row := &d.Percentiles[i]
			row.LoNS, row.HiNS, row.Deff = new(row.NS), new(row.NS), 1
		}
		d.Percentile(99).Stalls = &result.Stalls{Met: 0.2, LeastNS: d.Percentile(99).NS / 2}
		in.Latency = result.Latency{E2E: result.Pair{Response: d, OnTime: d}}
		o := must.Get(ParseObjective(expr))(t)
		v := Verdict(&in, []Objective{o})
		if got := v.SLO[0].Outcome(); got != want || (want == result.Undecided) != strings.Contains(v.SLO[0].Why, "only for this") {
			t.Errorf("%s: %+v; want %s", expr, v.SLO[0], want)
		}
	}
}

func TestQuotableNamesRanges(t *testing.T) {
	t.Parallel()
	v := &result.Verdict{Figures: []result.Figure{
		{Name: "send.p50", Quotable: true},
		{Name: "send.p99"},
		{Name: "send.p99.9"},
		{Name: "e2e.service.p50", Quotable: true},
		{Name: "e2e.service.p99", Quotable: true},
		{Name: "received.rate"},
	}}
	can, cannot := Quotable(v)
	golden.Equal(t, [][]string{{"send p50", "e2e service p50 up to p99"}, {"send p99 up to p99.9", "the rates"}}, [][]string{can, cannot}, "")
}
