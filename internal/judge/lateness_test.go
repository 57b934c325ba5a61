package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A lot is some messages in a thousand that are alike.
type drawn struct{ perMille, response, late int64 }

// sent has the run send 100 messages for each of a thousand in lots.
func sent(in *result.Result, lots ...drawn) {
	recorded(in, func(s *measure.Sender, _ *measure.Receiver) {
		for _, l := range lots {
			for range l.perMille * 100 {
				s.Handed(0, 0, l.late, l.late, l.late, 64)
				s.Confirmed(0, l.late, l.response, l.late)
			}
		}
	})
}

// rise has the run send n messages, whose responses rise evenly to 1 ms, each with the same fraction of
// lateness.
func rise(in *result.Result, n int64, part float64) {
	recorded(in, func(s *measure.Sender, _ *measure.Receiver) {
		for i := int64(1); i <= n; i++ {
			response := i * 1_000_000 / n
			late := int64(part * float64(response))
			s.Handed(0, 0, late, late, late, 64)
			s.Confirmed(0, late, response, late)
		}
	})
}

// recorded gives the run the distributions of what record records.
func recorded(in *result.Result, record func(*measure.Sender, *measure.Receiver)) {
	r := measure.NewRecorder(measure.Config{To: 1 << 60})
	record(r.Sender(0), r.Receiver(0))
	var snap measure.Snapshot
	r.Read(0, &snap)
	of := func(k measure.Kind) *result.Dist { return Distribution(&snap.Kinds[k][measure.Measure], nil) }
	in.Latency = result.Latency{
		Send: result.Send{Response: of(measure.SendResponse), OnTime: of(measure.SendOnTime), Lateness: of(measure.SendLateness), HeldUp: of(measure.SendHeldUp)},
		E2E:  result.Pair{Response: of(measure.E2EResponse), OnTime: of(measure.E2EOnTime)},
	}
}

// Of 1,000 messages six are late by 0.86 ms and six are as slow by themselves, so that p99 is 1 ms; two are
// slower still. At every percentile lateness is at most a tenth of the response. In the other run two are
// late, by a fifth of p99.9, and would otherwise be the fastest.
func TestLatenessJudgedByEffectOnPercentile(t *testing.T) {
	t.Parallel()
	moved, same := good(), good()
	sent(&moved, drawn{986, 140_000, 0}, drawn{6, 1_000_000, 860_000}, drawn{6, 1_000_000, 0}, drawn{2, 10_000_000, 0})
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		if l, r := moved.Latency.Send.Lateness.Percentile(p), moved.Latency.Send.Response.Percentile(p); !r.Supported || 10*l.NS > r.NS {
			t.Fatalf("at p%v %d of %d ns are lateness; the case needs a tenth at most", p, l.NS, r.NS)
		}
	}
	if c := lateness(of(&moved)).stored(); statusOrFound(c) != result.Suspect || c.Values["p"] != 99.0 || finding.Share(c.Values["part"].(float64)) != "86 %" {
		t.Errorf("%+v; want it found that lateness moved p99 by 86 %%", c)
	}
	sent(&same, drawn{990, 1_000_000, 0}, drawn{8, 5_000_000, 0}, drawn{2, 1_030_000, 1_025_000})
	if l, r := same.Latency.Send.Lateness.Percentile(99.9), same.Latency.Send.Response.Percentile(99.9); 5*l.NS < r.NS {
		t.Fatalf("%d of %d ns are lateness at p99.9; the case needs a fifth", l.NS, r.NS)
	}
	if c := lateness(of(&same)).stored(); c.Status != result.Valid || !says(c, "lateness.none") {
		t.Errorf("%+v; want it valid, since lateness moved nothing", c)
	}
}

// A response to consumers, before the sender knows of it, may be almost entirely lateness when the sender's
// response has hardly any.
func TestEveryResponseIsJudged(t *testing.T) {
	t.Parallel()
	in := good()
	recorded(&in, func(s *measure.Sender, k *measure.Receiver) {
		for range 10_000 {
			s.Handed(0, 0, 2_000_000, 2_000_000, 2_000_000, 64)
			s.Confirmed(0, 2_000_000, 50_000_000, 2_000_000)
			k.Delivered(0, 2_000_000, 2_100_000, 2_000_000)
		}
	})
	v := Verdict(&in, nil)
	c := lateness(of(&in)).stored()
	if v.Status != result.Invalid || c.Values["of"] != "e2e" || c.Values["p"] != 50.0 || fmt.Sprint(c.Values["figures"]) != "[e2e p50 up to p99.9]" {
		t.Errorf("%s: %+v; want it invalid for e2e", v.Status, c)
	}
}

// A host stall delays the pacers, stalls a thread that only sleeps, and leaves gaps in the load.
func TestFindingIsReportedOnce(t *testing.T) {
	t.Parallel()
	found := func(in result.Result) (doubtful []string) {
		for _, c := range Verdict(&in, nil).Checks {
			if c.Status == result.Suspect || c.Status == result.Invalid {
				doubtful = append(doubtful, c.Name+">"+c.With)
			}
		}
		return doubtful
	}
	host := quietHost().Host
	host.Hiccups.P999NS = 8_000_000
	late := good()
	late.Host = host
	late.Intervals[0].LatestNS = new(int64(60_000_000))
	sent(&late, drawn{995, 1_000_000, 10}, drawn{5, 10_000_000, 9_000_000})
	onTime := late
	sent(&onTime, drawn{995, 1_000_000, 10}, drawn{5, 10_000_000, 0})
	both := late
	both.Latency.E2E = result.Pair{Response: onTime.Latency.Send.Response, OnTime: onTime.Latency.Send.OnTime}
	for what, x := range map[string]struct {
		in   result.Result
		want string
	}{
		"lateness tells":                {late, "offered rate>"},
		"lateness has nothing to tell":  {onTime, "offered rate>"},
		"lateness explains one of them": {both, "offered rate>"},
	} {
		if got := strings.Join(found(x.in), " "); got != x.want {
			t.Errorf("%s: %s; want %s", what, got, x.want)
		}
	}
}

// Something else is blamed only if at least half of all lateness cannot be the pacers' own, and only a host
// check shows why they fell behind.
func TestLatenessCauseNeedsEvidence(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	const n, late = 100_000, 300_000
	usage := func(weir, all float64) func(*result.Result) {
		return func(in *result.Result) { in.Host.Usage.CPUShare, in.Host.Usage.HostBusyShare = &weir, &all }
	}
	none := func(*result.Result) {}
	for name, x := range map[string]struct {
		held, woken int64
		spoil       func(*result.Result)
		why         string
	}{
		"nothing":                           {0, 0, none, "lateness.unknown lateness.changes advice.repeat"},
		"a third by the host":               {100_000, 0, none, "lateness.partly_host lateness.changes advice.repeat"},
		"most by the host":                  {200_000, 0, none, "lateness.host lateness.changes lateness.host_advice"},
		"a third by producers":              {0, 90_000, none, "lateness.unknown lateness.changes advice.repeat"},
		"most by producers":                 {30_000, 160_000, none, "lateness.producers lateness.changes lateness.producers_advice lateness.alone"},
		"more by producers than others":     {100_000, 130_000, none, "lateness.producers lateness.changes lateness.producers_advice lateness.alone"},
		"most by the host, some by them":    {160_000, 90_000, none, "lateness.host lateness.changes lateness.host_advice lateness.also_producers lateness.alone"},
		"a host busy with others":           {123_000, 0, usage(0.036, 0.997), "lateness.busy lateness.changes advice.stop_others"},
		"weir on all cores":                 {123_000, 0, usage(0.85, 0.9), "lateness.no_core cpu.value lateness.changes advice.fewer"},
		"pacers near their limit":           {123_000, 0, func(in *result.Result) { in.Evidence.HighestPerS = 600_000 }, "lateness.pacers_limit headroom.value lateness.changes advice.fewer"},
		"a hypervisor with other guests":    {123_000, 0, func(in *result.Result) { in.Host.Usage.StealShare = new(0.02) }, "lateness.another steal.value lateness.changes advice.read"},
		"a host of which nothing is known":  {0, 0, func(in *result.Result) { in.Host = result.Host{} }, "lateness.unknown lateness.changes advice.repeat"},
		"an agent, on all cores":            {123_000, 0, func(in *result.Result) { usage(0.85, 0.9)(in); byAgent(in) }, "lateness.another agent.of cpu.value lateness.changes advice.read"},
		"an agent, on a host that is quiet": {123_000, 0, byAgent, "lateness.partly_host lateness.changes advice.repeat"},
	} {
		quiet := quietHost()
		in := good()
		in.Host, in.Evidence = quiet.Host, quiet.Evidence
		in.Evidence.Blocked = &result.BlockedTime{WokenNS: n * x.woken}
		x.spoil(&in)
		recorded(&in, func(s *measure.Sender, _ *measure.Receiver) {
			for range n {
				s.Handed(0, 0, late, x.held, late, 64)
				s.Confirmed(0, late, 1_000_000, late)
			}
		})
		if c := lateness(of(&in)); c.status != result.Suspect || whyOf(c) != x.why {
			t.Errorf("%s: %s, %s; want %s", name, c.status, whyOf(c), x.why)
		}
	}
}

// byAgent moves the run's host to an agent.
func byAgent(in *result.Result) {
	in.Agents = []result.Agent{{Name: "a", Producers: 1, Host: &result.AgentHost{Usage: in.Host.Usage, Pacers: 1}, Cost: in.Evidence.Cost}}
	in.Host.Usage = nil
}

// As many as there are pacers, or as half of the cores.
func TestProducersAreAdvisedByPacersAndCores(t *testing.T) {
	for cores, want := range map[float64]string{4: "--producers 3", 16: "--producers 8 (at up to 20,000/s each)"} {
		in := good()
		in.Host.Usage = &host.Usage{Cores: cores}
		if got := of(&in).alone(3).String(); got != want {
			t.Errorf("%v cores: %q; want %q", cores, got, want)
		}
	}
}

// 40 % of the messages of 10 s are missing, which is 4 s.
func TestGeneratorBlamedForUnsentMessages(t *testing.T) {
	t.Parallel()
	for latest, want := range map[int64]result.Status{10_000: result.Valid, 1_900_000_000: result.Valid, 4_000_000_000: result.Invalid} {
		in := good()
		in.Latency.Send.Lateness = scaled(100_000, latest)
		sends(&in, 60_000, false)
		if c := rate(of(&in)).stored(); c.Status != want {
			t.Errorf("behind by %d ns: %+v; want it %s", latest, c, want)
		}
	}
}

func TestLateIsJudgedPerPercentile(t *testing.T) {
	t.Parallel()
	in := good()
	sent(&in, drawn{995, 1_000_000, 10}, drawn{5, 10_000_000, 9_000_000})
	r := Responses(&in.Latency)[0]
	for p, want := range map[float64]bool{50: false, 99: false, 99.9: true, 99.999: false, 100: true, 42: false} {
		if got := Late(r.All, r.OnTime, nil, p); got != want {
			t.Errorf("p%g: %t", p, got)
		}
		if got := Late(r.All, nil, in.Latency.Send.Lateness, p); got != want {
			t.Errorf("p%g of an older result: %t", p, got)
		}
	}
	if Late(r.All, nil, nil, 50) || Late(nil, nil, in.Latency.Send.Lateness, 50) {
		t.Error("without lateness, or without a response")
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	judged := []float64{50, 75, 90, 95, 99}
	for want, some := range map[string][]float64{
		"": nil, "p50": {50}, "p75 up to p95": {75, 90, 95}, "p50 and p90 up to p99": {50, 90, 95, 99}, "p50 up to p99": judged, "p75 and p95": {75, 95},
	} {
		if got := spans(judged, some); got != want {
			t.Errorf("%v: %q; want %q", some, got, want)
		}
	}
}
