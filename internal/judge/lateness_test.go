package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A lot is some messages in a thousand that are alike.
type lot struct{ perMille, response, late int64 }

// sent has the run send 100 messages for each of a thousand in lots.
func sent(in *result.Result, lots ...lot) {
	recorded(in, func(s *measure.Sender, _ *measure.Receiver) {
		for _, l := range lots {
			for range l.perMille * 100 {
				s.Handed(0, 0, l.late, l.late, l.late, 64)
				s.Confirmed(0, l.late, l.response, l.late)
			}
		}
	})
}

// rise has the run send n messages, whose responses rise evenly to 1 ms, and of
// each of which a part is lateness.
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

// TestLateMessagesThatAreNotTheSlowOnes: of 1,000 messages six are late by 0.86 ms
// and six as slow by themselves, which is why p99 is 1 ms; two are slower still.
// At every percentile lateness is a tenth of the response at most.
func TestLatenessThatMovesAPercentileOfWhichItIsNoPart(t *testing.T) {
	t.Parallel()
	in := good()
	sent(&in, lot{986, 140_000, 0}, lot{6, 1_000_000, 860_000}, lot{6, 1_000_000, 0}, lot{2, 10_000_000, 0})
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		if l, r := in.Latency.Send.Lateness.Percentile(p), in.Latency.Send.Response.Percentile(p); !r.Supported || 10*l.NS > r.NS {
			t.Fatalf("at p%v %d of %d ns are lateness; the case needs a tenth at most", p, l.NS, r.NS)
		}
	}
	v := Verdict(&in, nil)
	if c := lateness(of(&in)).stored(); v.Status != result.Invalid || c.Status != result.Invalid || c.Value != "without the generator's lateness send p99 is 140 µs, not 1.00 ms: 86 % less" {
		t.Errorf("%s: %+v; want it invalid, since lateness moved p99 by 86 %%", v.Status, c)
	}
}

// TestLatenessOfMessagesThatAreFast moves nothing: two of 1,000 are late, by a
// fifth of what p99.9 is, and would else be the fastest.
func TestLatenessOfMessagesThatAreFastMovesNothing(t *testing.T) {
	t.Parallel()
	in := good()
	sent(&in, lot{990, 1_000_000, 0}, lot{8, 5_000_000, 0}, lot{2, 1_030_000, 1_025_000})
	if l, r := in.Latency.Send.Lateness.Percentile(99.9), in.Latency.Send.Response.Percentile(99.9); 5*l.NS < r.NS {
		t.Fatalf("%d of %d ns are lateness at p99.9; the case needs a fifth", l.NS, r.NS)
	}
	v := Verdict(&in, nil)
	if c := lateness(of(&in)).stored(); v.Status != result.Valid || c.Status != result.Valid || c.Value != "lateness moved no percentile" {
		t.Errorf("%s: %+v; want it valid, since lateness moved nothing", v.Status, c)
	}
}

// TestEveryResponseIsJudged: what a consumer has before the sender knows of it may
// be nearly all lateness while the sender's response is hardly any.
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
	if v.Status != result.Invalid || c.Value != "without the generator's lateness e2e p50 is 100 µs, not 2.10 ms: 95.2 % less" || !strings.Contains(c.Why, "It changes e2e p50 up to p99.9 by over 10 %.") {
		t.Errorf("%s: %+v; want it invalid for e2e", v.Status, c)
	}
}

// TestAFindingIsToldOnce: a host that stands still makes lanes late, holds up a
// thread that only sleeps, and leaves gaps in the load.
func TestAFindingIsToldOnce(t *testing.T) {
	t.Parallel()
	found := func(in result.Result) (told []string) {
		for _, c := range Verdict(&in, nil).Checks {
			if c.Status == result.Suspect || c.Status == result.Invalid {
				told = append(told, c.Name+">"+c.With)
			}
		}
		return told
	}
	host := quietHost().Host
	host.Hiccups.P999NS = 8_000_000
	late := good()
	late.Host = host
	late.Intervals[0].LatestNS = ptr(int64(60_000_000))
	sent(&late, lot{995, 1_000_000, 10}, lot{5, 10_000_000, 9_000_000})
	onTime := late
	sent(&onTime, lot{995, 1_000_000, 10}, lot{5, 10_000_000, 0})
	both := late
	both.Latency.E2E = result.Pair{Response: onTime.Latency.Send.Response, OnTime: onTime.Latency.Send.OnTime}
	for what, x := range map[string]struct {
		in   result.Result
		want string
	}{
		"lateness tells":                {late, "lateness> offered rate>lateness hiccups>lateness"},
		"lateness has nothing to tell":  {onTime, "offered rate> hiccups>"},
		"lateness tells of one of them": {both, "lateness> offered rate>lateness hiccups>"},
	} {
		if got := strings.Join(found(x.in), " "); got != x.want {
			t.Errorf("%s: %s; want %s", what, got, x.want)
		}
	}
}

// TestWhatMadeTheLanesLateDecidesTheAdvice: of all lateness, at least half must be
// what the lanes cannot have made before something else is to blame.
func TestWhatMadeTheLanesLateDecidesTheAdvice(t *testing.T) {
	t.Parallel()
	for held, want := range map[int64]string{
		0:       "The lanes fell behind, and nothing shows why. It changes send p50 up to p99.99 by over 10 %. Repeat the run on a quieter host, or at a lower rate.",
		100_000: "The lanes fell behind: of all lateness the host's late wake-ups are 33.3 %, and nothing shows the cause of the rest. It changes send p50 up to p99.99 by over 10 %. Repeat",
		200_000: "The host woke the generator too late: that is 66.7 % of all lateness. It changes send p50 up to p99.99 by over 10 %. Use a quieter host, or give each lane a free core, or run with --fifo.",
	} {
		in := good()
		recorded(&in, func(s *measure.Sender, _ *measure.Receiver) {
			for range 100_000 {
				s.Handed(0, 0, 300_000, held, 300_000, 64)
				s.Confirmed(0, 300_000, 1_000_000, 300_000)
			}
		})
		c := lateness(of(&in)).stored()
		if c.Status != result.Suspect || !strings.HasPrefix(c.Why, want) {
			t.Errorf("held up for %d of 300,000 ns: %+v; want %q", held, c, want)
		}
	}
}

// TestLanesAreBlamedByEvidenceOnly: the host woke them late for 41 % of their lateness.
func TestLanesAreBlamedByEvidenceOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(*result.Result)
		want  string
	}{
		"a host busy with others": {
			func(in *result.Result) { in.Host.Usage.CPUShare, in.Host.Usage.HostBusyShare = ptr(0.036), ptr(0.997) },
			"The host was 99.7 % busy, mostly with other processes (weir used 3.6 % of its cores), and the lanes fell behind. It changes send p50 up to p99.99 by over 10 %. Stop what else runs, or put the system on another host.",
		},
		"a host busy with weir and others": {
			func(in *result.Result) { in.Host.Usage.CPUShare, in.Host.Usage.HostBusyShare = ptr(0.6), ptr(0.997) },
			"The host was 99.7 % busy, also with other processes (weir used 60 % of its cores), and the lanes fell behind. ",
		},
		"weir on all cores": {
			func(in *result.Result) { in.Host.Usage.CPUShare, in.Host.Usage.HostBusyShare = ptr(0.85), ptr(0.9) },
			"The generator had hardly a free core, and the lanes fell behind: weir used 85 % of its cores, and all processes together used 90 % of the host's. It changes send p50 up to p99.99 by over 10 %. Lower the rate, or use a host with more cores (each lane needs one).",
		},
		"lanes near their limit": {
			func(in *result.Result) { in.Evidence.HighestPerS = 600_000 },
			"The lanes work near their limit, and fell behind: 600,000/s is 60 % of the 1,000,000/s that the lanes can send to a system that costs nothing. ",
		},
		"a hypervisor with other guests": {
			func(in *result.Result) { in.Host.Usage.StealShare = ptr(0.02) },
			"The lanes fell behind. The cause may be what another check found (steal: the hypervisor took 2 % of the processor time, warm-up and drain included (10.0 s)). It changes ",
		},
		"a quiet host": {
			func(*result.Result) {},
			"The lanes fell behind: of all lateness the host's late wake-ups are 41 %, and nothing shows the cause of the rest. It changes ",
		},
	} {
		quiet := quietHost()
		in := good()
		in.Host, in.Evidence = quiet.Host, quiet.Evidence
		tt.spoil(&in)
		recorded(&in, func(s *measure.Sender, _ *measure.Receiver) {
			for range 100_000 {
				s.Handed(0, 0, 300_000, 123_000, 300_000, 64)
				s.Confirmed(0, 300_000, 1_000_000, 300_000)
			}
		})
		if c := lateness(of(&in)).stored(); c.Status != result.Suspect || !strings.HasPrefix(c.Why, tt.want) {
			t.Errorf("%s: %+v; want %q", name, c, tt.want)
		}
		in.Agents = []result.Agent{{Name: "a", Producers: 1, Host: &result.AgentHost{Usage: in.Host.Usage, Lanes: 1}, Cost: in.Evidence.Cost}}
		in.Host.Usage = nil
		if c := lateness(of(&in)).stored(); strings.Contains(c.Why, "nothing shows") != (name == "a quiet host") {
			t.Errorf("%s, by an agent: %+v", name, c)
		}
	}
}

// TestProducersThatWokeLateAreNamed: they are to blame where they made more of the lateness
// than the host and the lanes' own work each did.
func TestProducersThatWokeLateAreNamed(t *testing.T) {
	t.Parallel()
	const n, late = 100_000, 300_000
	for _, x := range []struct {
		woken, held int64
		cores       float64
		want        string
	}{
		{0, 0, 4, "The lanes fell behind, and nothing shows why. "},
		{90_000, 0, 4, "The lanes fell behind, and nothing shows why. "},
		{90_000, 160_000, 4, "The host woke the generator too late: that is 53.3 % of all lateness. It changes send p50 up to p99.99 by over 10 %. Use a quieter host, or give each lane a free core, or run with --fifo. Producers' goroutines that woke late are another 30 %: with --producers 3 each lane sends by itself."},
		{160_000, 30_000, 4, "The lanes were in time, but producers' goroutines woke late: that is 53.3 % of all lateness. It changes send p50 up to p99.99 by over 10 %. Each producer has such a goroutine where the client may block and producers outnumber lanes (3). Use --producers 3. "},
		{130_000, 100_000, 4, "The lanes were in time, but producers' goroutines woke late: that is 43.3 % of all lateness. "},
		{160_000, 30_000, 16, "The lanes were in time, but producers' goroutines woke late: that is 53.3 % of all lateness. It changes send p50 up to p99.99 by over 10 %. Each producer has such a goroutine where the client may block and producers outnumber lanes (3). Use --producers 8 (at up to 20,000/s each). "},
	} {
		in := good()
		in.Host.Lanes, in.Host.Usage = 3, &host.Usage{Cores: x.cores}
		in.Evidence.Blocked = &result.BlockedTime{WokenNS: n * x.woken}
		recorded(&in, func(s *measure.Sender, _ *measure.Receiver) {
			for range n {
				s.Handed(0, 0, late, x.held, late, 64)
				s.Confirmed(0, late, 1_000_000, late)
			}
		})
		if c := lateness(of(&in)).stored(); c.Status != result.Suspect || !strings.HasPrefix(c.Why, x.want) {
			t.Errorf("of %d ns goroutines woke %d late, and the host made %d: %+v; want %q", late, x.woken, x.held, c, x.want)
		}
	}
}

// TestAGeneratorIsBlamedForWhatItWasBehindBy: 40 % of the messages of 10 s are
// missing, which is 4 s.
func TestAGeneratorIsBlamedForWhatItWasBehindBy(t *testing.T) {
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

func TestHostLimited(t *testing.T) {
	t.Parallel()
	in := good()
	sent(&in, lot{995, 1_000_000, 10}, lot{5, 10_000_000, 9_000_000})
	r := Responses(&in.Latency)[0]
	for p, want := range map[float64]bool{50: false, 99: false, 99.9: true, 99.999: false, 100: true, 42: false} {
		if got := HostLimited(r.All, r.OnTime, nil, p); got != want {
			t.Errorf("p%g: %t", p, got)
		}
		if got := HostLimited(r.All, nil, in.Latency.Send.Lateness, p); got != want {
			t.Errorf("p%g of an older result: %t", p, got)
		}
	}
	if HostLimited(r.All, nil, nil, 50) || HostLimited(nil, nil, in.Latency.Send.Lateness, 50) {
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
