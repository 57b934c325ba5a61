package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/result"
)

// twoAgents is quietHost executed by a, which sends and receives, and b, which only receives, with clocks
// that agree to 5 µs; p50 of e2e is 200 µs.
func twoAgents() result.Result {
	in := quietHost()
	agent := func(name string, producers int, starts *int64) result.Agent {
		return result.Agent{
			Cost: &result.Cost{CeilingPerS: 1_000_000, RecordNS: 100},
			Name: name, Hostname: name, Producers: producers, Consumers: 2, StartsNS: starts,
			Clock: result.AgentClock{BoundNS: new(int64(2_500)), Exchanges: 100},
			Host: &result.AgentHost{
				Pacers: 1, Calibration: &pace.Calibration{Samples: 1000, P50: 50_000},
				Hiccups: &result.Hiccups{Count: 10_000, P50NS: 52_000, P99NS: 90_000, P999NS: 300_000, MaxNS: 2_000_000},
				Usage: &host.Usage{
					SpanS: 10, Cores: 2, CPUShare: new(0.2), HostBusyShare: new(0.4), StealShare: new(0.0),
					SwapInBytes: new(uint64(0)), SwapOutBytes: new(uint64(0)), ThrottledS: new(0.0), ThrottledPeriods: new(uint64(0)),
					GC: host.GC{Cycles: 3, Pauses: 6, PauseNS: 300_000, LongestNS: 100_000},
				},
			},
		}
	}
	in.Agents = []result.Agent{agent("a", 2, new(int64(40_000))), agent("b", 1, new(int64(-60_000))), agent("c", 0, nil)}
	in.Clock = &result.FleetClock{Crosses: true, BoundNS: new(int64(5_000))}
	in.Run.MeasureS, in.Evidence.HighestPerS = 10, 15_000
	in.Latency.E2E.Service = &result.Dist{Count: 100_000, Percentiles: []result.Percentile{
		{P: 50, NS: 200_000, Supported: true}, {P: 99, NS: 2_000_000, Supported: true}, {P: 99.99, NS: 5_000_000}, {P: 100, NS: 9_000_000, Supported: true},
	}}
	in.Host, in.Evidence.Cost = result.Host{}, nil
	return in
}

// checkOf returns one of a verdict's checks.
func checkOf(in result.Result, name string) result.Check {
	for _, c := range Verdict(&in, nil).Checks {
		if c.Name == name {
			return c
		}
	}
	return result.Check{}
}

func TestHealthyAgentsPassAllChecks(t *testing.T) {
	in := twoAgents()
	for check, value := range map[string]string{
		CheckHeadroom: "agent a: 10,000/s is 1 % of", CheckRecording: "agent a: recording a message takes 100 ns, which is 0.1 % of a core", CheckCPU: "agent a: weir used 20 %",
		CheckSteal: "agent a: the hypervisor took 0 %", CheckThrottling: "agent a: never", CheckSwap: "agent a: nothing moved", CheckGC: "agent a: Go's garbage collector stopped weir for 0 % of the time", CheckHiccups: "agent a: ",
		CheckAgents: "all 3", CheckStart: "100 µs between b and a", CheckClock: "the clocks are known to ±5.00 µs: 2.5 % of e2e p50 (200 µs)",
	} {
		if c := checkOf(in, check); c.Status != result.Valid || !strings.HasPrefix(c.Value, value) || c.Limit == "" || c.Why != "" || strings.Contains(c.Value, ";") {
			t.Errorf("%+v; want it valid, with %q", c, value)
		}
	}
	one := quietHost()
	if v := Verdict(&one, nil); len(v.Checks) != len(Verdict(&in, nil).Checks)-3 {
		t.Errorf("a run of one process has %d checks", len(v.Checks))
	}
}

func TestAgentProblemsAreReported(t *testing.T) {
	agent := func(in *result.Result, i int) *result.Agent { return &in.Agents[i] }
	vanish := func(in *result.Result, i int) {
		a := agent(in, i)
		a.Missing, a.Host, a.StartsNS, a.Absences = true, nil, nil, []result.Absence{{FromNS: 6_100_000_000}}
		a.Cost = nil
	}
	for name, tt := range map[string]struct {
		check string
		want  result.Status
		spoil func(*result.Result)
		value string
	}{
		"one host without a core left": {CheckCPU, result.Suspect, func(in *result.Result) { *agent(in, 1).Host.Usage.CPUShare = 0.85 }, "agent b: weir used 85 %"},
		"two such hosts": {CheckCPU, result.Suspect, func(in *result.Result) {
			*agent(in, 1).Host.Usage.CPUShare, *agent(in, 2).Host.Usage.CPUShare = 0.85, 0.95
		}, "agent c: weir used 95 % of its cores, and all processes together used 40 % of the host's; also over the limit: agent b"},
		"stalls of one host":      {CheckHiccups, result.Suspect, func(in *result.Result) { agent(in, 2).Host.Hiccups.P50NS = 110_000 }, "agent c: this host stalled for 60.0 µs at p50: 60 % of p50"},
		"one agent's own ceiling": {CheckHeadroom, result.Suspect, func(in *result.Result) { in.Agents[1].Cost.CeilingPerS = 6_000 }, "agent b: 5,000/s is 83.3 % of the 6,000/s"},
		"a quota of one":          {CheckThrottling, result.Suspect, func(in *result.Result) { *agent(in, 1).Host.Usage.ThrottledS = 0.05 }, "agent b: stopped for 50.0 ms"},
		"one that does not tell":  {CheckSteal, result.Valid, func(in *result.Result) { agent(in, 1).Host.Usage.StealShare = nil }, "agent a: the hypervisor took 0 % of the processor time, warm-up and drain included (10.0 s); not checked: agent b"},
		"one that was away": {CheckAgents, result.Suspect, func(in *result.Result) {
			agent(in, 1).Absences = []result.Absence{{FromNS: 1_000_000_000, ToNS: new(int64(12_340_000_000))}}
		}, "b was silent from 1.0 s to 12.3 s"},
		"one that was not back":  {CheckAgents, result.Suspect, func(in *result.Result) { agent(in, 1).Absences = []result.Absence{{FromNS: 1_000_000_000}} }, "b was silent from 1.0 s on"},
		"one whose reports lack": {CheckAgents, result.Invalid, func(in *result.Result) { agent(in, 1).LostReports = 2 }, "2 of the reports of b never came"},
		"one that received":      {CheckAgents, result.Invalid, func(in *result.Result) { vanish(in, 2) }, "c vanished at 6.1 s"},
		"one that was done": {CheckAgents, result.Suspect, func(in *result.Result) {
			vanish(in, 2)
			agent(in, 2).Absences[0].FromNS = 20_100_000_000
		}, "c vanished at 20.1 s"},
		"one in the warm-up": {CheckAgents, result.Suspect, func(in *result.Result) {
			in.Run.WarmUpS, agent(in, 1).Absences = new(5.0), []result.Absence{{FromNS: 1_000_000_000}}
		}, "b was silent from -4.0 s on"},
		"one that took load along": {CheckAgents, result.Invalid, func(in *result.Result) { vanish(in, 1); sends(in, 90_000, false) }, "b vanished at 6.1 s"},
		"and then of the rate":     {CheckRate, result.Invalid, func(in *result.Result) { vanish(in, 1); sends(in, 90_000, false) }, "90,000 of 100,000 sent"},
		"one that gave nothing": {CheckAgents, result.Invalid, func(in *result.Result) {
			vanish(in, 2)
			agent(in, 2).Absences = nil
		}, "c sent no figures"},
		"a late start": {CheckStart, result.Suspect, func(in *result.Result) { *agent(in, 0).StartsNS = 60_000_000 }, "60.1 ms between b and a"},
		"a start that is late for a short window": {CheckStart, result.Suspect, func(in *result.Result) {
			*agent(in, 0).StartsNS, in.Run.MeasureS = 20_000_000, 1
		}, "20.1 ms between b and a"},
		"one that sends":          {CheckStart, result.NotRun, func(in *result.Result) { agent(in, 0).StartsNS = nil }, ""},
		"nothing that crosses":    {CheckClock, result.NotRun, func(in *result.Result) { in.Clock = &result.FleetClock{} }, ""},
		"nothing received":        {CheckClock, result.NotRun, func(in *result.Result) { in.Latency.E2E.Service = nil }, ""},
		"one clock":               {CheckClock, result.Valid, func(in *result.Result) { in.Clock.Same, *in.Clock.BoundNS = true, 100 }, "one clock: the clocks are known to ±100 ns: 0.1 % of e2e p50"},
		"a bound that is seen":    {CheckClock, result.Suspect, func(in *result.Result) { *in.Clock.BoundNS = 100_000 }, "±100 µs: 50 % of e2e p50"},
		"a bound that is most":    {CheckClock, result.Invalid, func(in *result.Result) { *in.Clock.BoundNS = 101_000 }, "±101 µs: 50.5 % of e2e p50"},
		"a bound that is unknown": {CheckClock, result.Invalid, func(in *result.Result) { in.Clock.BoundNS = nil }, "not known"},
		"below the middle": {CheckClock, result.Suspect, func(in *result.Result) {
			in.Latency.E2E.Service.Percentiles = append([]result.Percentile{{P: 1, NS: 5_000, Supported: true}}, in.Latency.E2E.Service.Percentiles...)
		}, "±5.00 µs: 100 % of e2e p1 (5.00 µs)"},
		"negatives within the bound": {
			CheckClock, result.Valid, func(in *result.Result) { in.Clock.Negative, in.Clock.WorstNegativeNS = 1234, 5_000 },
			"the clocks are known to ±5.00 µs: 2.5 % of e2e p50 (200 µs); 1,234 deliveries seem to come before they were sent, by up to 5.00 µs",
		},
		"negatives beyond it": {CheckClock, result.Invalid, func(in *result.Result) { in.Clock.Negative, in.Clock.WorstNegativeNS = 1, 5_001 }, "by up to 5.00 µs"},
		"a step beyond a bound that is most": {CheckClock, result.Invalid, func(in *result.Result) {
			*in.Clock.BoundNS, agent(in, 1).Clock.Steps = 3_000_000, []result.Step{{AtNS: 1, ByNS: 1}}
		}, "±3.00 ms"},
		"chrony agrees": {CheckClock, result.Valid, func(in *result.Result) {
			agent(in, 1).Clock.Daemon = &result.TimeDaemon{BoundNS: 1_000_000, Agrees: true}
		}, "±5.00 µs"},
		"chrony differs": {CheckClock, result.Suspect, func(in *result.Result) {
			agent(in, 1).Clock.Daemon = &result.TimeDaemon{BoundNS: 1_000_000, ApartNS: 5_000_000}
		}, "chrony contradicts this for b, by up to 5.00 ms"},
		"no room for their reports": {CheckAgents, result.Invalid, func(in *result.Result) { in.Evidence.DiskFull, agent(in, 1).Missing = true, true }, "the coordinator's disk was full: b sent no figures"},
		"no room, and none missing": {CheckAgents, result.Valid, func(in *result.Result) { in.Evidence.DiskFull = true }, "all 3"},
		"a step": {CheckClock, result.Suspect, func(in *result.Result) {
			agent(in, 1).Clock.Steps = []result.Step{{AtNS: 6_020_000_000, ByNS: -3_000_000}}
		}, "the clock of b stepped by -3.00 ms at 6.0 s"},
	} {
		in := twoAgents()
		tt.spoil(&in)
		c := checkOf(in, tt.check)
		if statusOrFound(c) != tt.want || !strings.Contains(c.Value, tt.value) || c.Limit == "" || (c.Why == "") != (tt.want == result.Valid) {
			t.Errorf("%s: %+v; want it %s, with %q", name, c, tt.want, tt.value)
		}
	}
}

func TestBlur(t *testing.T) {
	d := Distribution(upTo(1000, 100), nil) // p50 is 50 µs
	bound := new(int64(76_000))
	Blur(d, bound)
	for p, want := range map[float64]string{50: result.ByClock, 75: result.ByClock, 90: "", 99.9: "", 100: ""} {
		row := d.Percentile(p)
		if row.UnsupportedBy != want || row.Supported != (want == "" && p != 99.9) {
			t.Errorf("%+v; want it taken back by %q", *row, want)
		}
	}
	if d.ClockBoundNS != bound {
		t.Errorf("%+v", d)
	}
	d = Distribution(upTo(1000, 100), nil)
	Blur(d, nil)
	for _, row := range d.Percentiles {
		if row.Supported || row.UnsupportedBy != result.ByUnknownClock {
			t.Errorf("%+v", row)
		}
	}
	Blur(nil, nil)
}

// 50 µs, known to 10 µs, keeps a limit of 70 µs and leaves one of 55 µs open.
func TestObjectiveAcrossClocksIncludesClockBound(t *testing.T) {
	for _, tt := range []struct {
		expr  string
		bound *int64
		want  result.Outcome
	}{
		{"e2e.p50 <= 70us", new(int64(10_000)), result.Pass},
		{"e2e.p50 <= 70us", new(int64(60_000)), result.Undecided}, // finer than the bound, which is in the interval
		{"e2e.p50 <= 120us", new(int64(60_000)), result.Pass},
		{"e2e.p50 <= 55us", new(int64(10_000)), result.Undecided},
		{"e2e.p50 <= 20us", new(int64(10_000)), result.Fail},
		{"e2e.max <= 105us", new(int64(10_000)), result.Undecided},
		{"e2e.max <= 110us", new(int64(10_000)), result.Pass},
		{"e2e.min >= 1us", new(int64(10_000)), result.Undecided},
		{"e2e.mean <= 120us", nil, result.Undecided},
		{"e2e.p50 <= 1s", nil, result.Undecided},
	} {
		o := must.Get(ParseObjective(tt.expr))(t)
		d := Distribution(upTo(1000, 100), nil)
		Blur(d, tt.bound)
		s := o.Judge(&result.Result{Latency: result.Latency{E2E: result.Pair{Response: d}}})
		if s.Outcome() != tt.want || s.Outcome() == result.Undecided && s.Why == "" {
			t.Errorf("%s with %v: %+v; want %s", tt.expr, tt.bound, s, tt.want)
		}
	}
}

// What needs a lost agent is neither kept nor missed, and the system is not blamed.
func TestLostAgentsDecideNothing(t *testing.T) {
	var objectives []Objective
	for _, expr := range []string{"e2e.service.p50 <= 1ms", "send.p50 <= 1s", "received.rate >= 1/s", "ratio(duplicated, confirmed) <= 0", "failed == 0"} {
		o := must.Get(ParseObjective(expr))(t)
		objectives = append(objectives, o)
	}
	const p, u = result.Pass, result.Undecided
	for name, tt := range map[string]struct {
		lost, from, pending int64
		status              result.Status
		want                [5]result.Outcome
	}{
		"nobody":                             {lost: -1, status: result.Valid, want: [5]result.Outcome{p, p, p, p, p}},
		"a receiver in the window":           {lost: 2, from: 6, status: result.Invalid, want: [5]result.Outcome{u, p, u, u, p}},
		"a receiver afterwards":              {lost: 2, from: 20, status: result.Suspect, want: [5]result.Outcome{p, p, p, p, p}},
		"a receiver, and messages are open":  {lost: 2, from: 20, pending: 3, status: result.Invalid, want: [5]result.Outcome{u, p, u, u, p}},
		"a sender in the window":             {lost: 1, from: 6, status: result.Invalid, want: [5]result.Outcome{u, u, u, u, u}},
		"one that never reported":            {lost: 1, from: -1, status: result.Invalid, want: [5]result.Outcome{u, u, u, u, u}},
		"a sender's report between others":   {lost: 0, from: -2, status: result.Invalid, want: [5]result.Outcome{u, u, u, u, u}},
		"a receiver's report between others": {lost: 2, from: -2, status: result.Invalid, want: [5]result.Outcome{u, p, u, u, p}},
	} {
		in := twoAgents()
		in.Latency.E2E.Service = Distribution(upTo(100_000, 10), nil)
		in.Latency.Send.Response = Distribution(upTo(100_000, 10), nil)
		in.Run.Mode, in.Throughput.ReceivedPerS = "stream", new(10_000.0)
		in.Messages.Pending = uint64(tt.pending)
		in.Messages.Delivered -= uint64(tt.pending)
		if tt.lost >= 0 {
			a := &in.Agents[tt.lost]
			a.Missing, a.Host, a.StartsNS, a.Cost = true, nil, nil, nil
			switch tt.from {
			case -1:
			case -2:
				a.LostReports = 1
			default:
				a.Absences = []result.Absence{{FromNS: tt.from * 1e9}}
			}
		}
		Withhold(&in)
		v := Verdict(&in, objectives)
		for i, o := range objectives {
			if got := v.SLO[i].Outcome(); got != tt.want[i] {
				t.Errorf("%s: %s is %s (%s); want %s", name, o, got, v.SLO[i].Why, tt.want[i])
			}
		}
		for _, c := range v.Checks {
			if c.Name == CheckAgents && c.Status != tt.status {
				t.Errorf("%s: %+v; want it %s", name, c, tt.status)
			}
			if c.Name == CheckSteady && tt.status == result.Invalid && c.Status != result.NotRun {
				t.Errorf("%s: %+v; want it not run", name, c)
			}
		}
		lost := in.Lost()
		for _, d := range []struct {
			of       *result.Dist
			withheld bool
		}{{in.Latency.E2E.Service, lost.Any()}, {in.Latency.Send.Response, len(lost.Senders) > 0}} {
			if row := d.of.Percentile(50); (row.UnsupportedBy == result.ByLostAgents) != d.withheld || row.Supported == d.withheld {
				t.Errorf("%s: p50 is %+v; withheld %v", name, row, d.withheld)
			}
		}
	}
}

// Messages that fail after the consumers are gone are not the system's failures.
func TestLostAgentsFailNoMessages(t *testing.T) {
	in := twoAgents()
	in.MessagesAll.Sent, in.MessagesAll.Failed = 100_000, 50_000
	if c := checkOf(in, CheckFailed); c.Status != result.Suspect {
		t.Errorf("%+v; want it suspect", c)
	}
	in.Agents[2].Missing = true
	if c := checkOf(in, CheckFailed); c.Status != result.NotRun || !strings.Contains(c.Why, "because agent c was lost") {
		t.Errorf("%+v; want it not run", c)
	}
}
