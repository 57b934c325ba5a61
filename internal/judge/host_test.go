package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/result"
)

// quietHost is a run of 100,000 messages at 10,000/s on a host that withholds
// nothing: p50 100 µs, p99 1 ms, p99.9 5 ms.
func quietHost() result.Result {
	d := &result.Dist{Count: 100_000, Percentiles: []result.Percentile{
		{P: 50, NS: 100_000, Supported: true},
		{P: 99, NS: 1_000_000, Supported: true},
		{P: 99.9, NS: 5_000_000, Supported: true},
		{P: 99.99, NS: 7_000_000},
		{P: 100, NS: 9_000_000, Supported: true},
	}}
	return result.Result{
		Latency:  result.Latency{Send: result.Send{Service: d}},
		Messages: result.Messages{Scheduled: 100_000, Sent: 100_000, Confirmed: 100_000},
		Evidence: &result.Evidence{Sent: 100_000, HighestPerS: 10_000, Cost: &result.Cost{CeilingPerS: 1_000_000, RecordNS: 100}},
		Host: result.Host{
			Lanes: 1, Calibration: &pace.Calibration{Samples: 1000, P50: 50_000},
			Hiccups: &result.Hiccups{Count: 10_000, P50NS: 52_000, P99NS: 90_000, P999NS: 300_000, MaxNS: 2_000_000},
			Usage: &host.Usage{
				SpanS: 10, Cores: 2, CPUShare: ptr(0.2), HostBusyShare: ptr(0.4), StealShare: ptr(0.0),
				SwapInBytes: ptr(uint64(0)), SwapOutBytes: ptr(uint64(0)), ThrottledS: ptr(0.0), ThrottledPeriods: ptr(uint64(0)),
				GC: host.GC{Cycles: 3, Pauses: 6, PauseNS: 300_000, LongestNS: 100_000},
			},
		},
	}
}

// statusOf returns one of the checks of the host.
func statusOf(in *result.Result, check string) result.Check {
	return *find(hostOf(in), check)
}

// hostOf returns the checks of the host as they are stored.
func hostOf(in *result.Result) (all []result.Check) {
	for _, c := range hostChecks(of(in)) {
		all = append(all, c.stored())
	}
	return all
}

func TestAQuietHostPassesEveryCheckOfIt(t *testing.T) {
	in := quietHost()
	for _, c := range hostOf(&in) {
		if c.Status != result.Valid || c.Value == "" || c.Limit == "" || c.Why != "" {
			t.Errorf("%+v", c)
		}
	}
}

func TestWhatTheHostWithholdsIsSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		check string
		spoil func(*result.Result)
		value string
	}{
		"a rate near the ceiling":           {CheckHeadroom, func(in *result.Result) { in.Evidence.HighestPerS = 600_000 }, "600,000/s is 60 % of the 1,000,000/s"},
		"recording that takes a core":       {CheckRecording, func(in *result.Result) { in.Evidence.HighestPerS, in.Evidence.Cost.RecordNS = 400_000, 300 }, "takes 300 ns, which is 12 % of a core"},
		"no core left":                      {CheckCPU, func(in *result.Result) { in.Host.Usage.CPUShare = ptr(0.85) }, "weir used 85 % of its cores, and all processes together used 40 %"},
		"others on every core":              {CheckCPU, func(in *result.Result) { in.Host.Usage.HostBusyShare = ptr(0.99) }, "weir used 20 % of its cores, and all processes together used 99 %"},
		"a hypervisor with other guests":    {CheckSteal, func(in *result.Result) { in.Host.Usage.StealShare = ptr(0.02) }, "2 %"},
		"a quota":                           {CheckThrottling, func(in *result.Result) { *in.Host.Usage.ThrottledS, *in.Host.Usage.ThrottledPeriods = 0.05, 2 }, "50.0 ms over all cores, in 2 periods"},
		"swapping":                          {CheckSwap, func(in *result.Result) { *in.Host.Usage.SwapOutBytes = 4096 }, "0 bytes in, 4,096 bytes out"},
		"a collector that is always there":  {CheckGC, func(in *result.Result) { in.Host.Usage.GC.PauseNS = 200_000_000 }, "2 % of the time"},
		"a pause as long as the tail":       {CheckGC, func(in *result.Result) { in.Host.Usage.GC.LongestNS = 4_000_000 }, "p99.9 is 5.00 ms"},
		"stalls as long as the middle":      {CheckHiccups, func(in *result.Result) { in.Host.Hiccups.P50NS = 110_000 }, "60.0 µs too late at p50: 60 % of p50 (100 µs)"},
		"stalls as long as the finest tail": {CheckHiccups, func(in *result.Result) { in.Host.Hiccups.P999NS = 4_050_000 }, "80 % of p99.9 (5.00 ms)"},
	} {
		in := quietHost()
		tt.spoil(&in)
		for _, c := range hostOf(&in) {
			switch {
			case c.Name != tt.check && c.Status != result.Valid:
				t.Errorf("%s: %+v", name, c)
			case c.Name == tt.check && (c.Status != result.Suspect || !strings.Contains(c.Value, tt.value) || c.Why == ""):
				t.Errorf("%s: %+v; want it suspect, with %q", name, c, tt.value)
			}
		}
	}
}

// TestAPauseThatFewMessagesMeetIsNotInTheTail: one pause of 4 ms at 10,000/s
// holds up 40 messages, and 100 lie beyond p99.9.
func TestAPauseThatFewMessagesMeetIsNotInTheTail(t *testing.T) {
	in := quietHost()
	in.Host.Usage.GC = host.GC{Cycles: 1, Pauses: 2, PauseNS: 4_000_100, LongestNS: 4_000_000}
	if c := statusOf(&in, CheckGC); c.Status != result.Valid {
		t.Errorf("%+v", c)
	}
}

// TestALowRateNeedsNoCeiling: what recording costs bounds what a lane does.
func TestALowRateNeedsNoCeiling(t *testing.T) {
	for name, tt := range map[string]struct {
		perS, recordNS float64
		lanes          int
		want           result.Status
		value          string
	}{
		"ten thousand":             {10_000, 100, 1, result.Valid, "10,000/s is at most 2 %"},
		"hardly any":               {10, 50, 1, result.Valid, "10/s is at most 0.1 %"},
		"the most":                 {50_000, 100, 1, result.Valid, "50,000/s is at most 10 %"},
		"more":                     {50_001, 100, 1, result.NotRun, ""},
		"more, on two lanes":       {50_001, 100, 2, result.Valid, "50,001/s is at most 5.1 %"},
		"a host ten times as slow": {50_000, 1000, 1, result.NotRun, ""},
		"nothing known":            {1000, 0, 1, result.NotRun, ""},
	} {
		in := quietHost()
		in.Evidence.HighestPerS, in.Evidence.Cost, in.Host.Lanes = tt.perS, &result.Cost{RecordNS: tt.recordNS}, tt.lanes
		c := statusOf(&in, CheckHeadroom)
		if c.Status != tt.want || !strings.HasPrefix(c.Value, tt.value) || (c.Why == "") != (tt.want == result.Valid) {
			t.Errorf("%s: %+v; want it %s, with %q", name, c, tt.want, tt.value)
		}
		if light := Light(*in.Evidence.Cost, tt.perS/float64(tt.lanes)); light != (tt.want == result.Valid) {
			t.Errorf("%s: light is %v", name, light)
		}
	}
}

// TestTheWayOutOfASleepIsNoStall: a system that costs nothing answers in less
// than by what sleeps vary.
func TestTheWayOutOfASleepIsNoStall(t *testing.T) {
	in := quietHost()
	in.Host.Calibration.P50 = 6_700
	in.Latency.Send.Service.Percentiles = []result.Percentile{{P: 50, NS: 495, Supported: true}, {P: 99, NS: 9_000, Supported: true}}
	in.Host.Hiccups = &result.Hiccups{Count: 1500, P50NS: 7_300, P99NS: 13_000, P999NS: 150_000, MaxNS: 180_000}
	if c := statusOf(&in, CheckHiccups); c.Status != result.Valid || c.Value != "a thread that only sleeps woke 0 ns too late at p99: 0 % of p99 (9.00 µs)" {
		t.Errorf("%+v", c)
	}
	in.Host.Hiccups.P99NS = 21_000
	if c := statusOf(&in, CheckHiccups); c.Status != result.Suspect || c.Value != "a thread that only sleeps woke 14.3 µs too late at p99: 158.9 % of p99 (9.00 µs)" {
		t.Errorf("%+v", c)
	}
}

func TestWhatTheHostDoesNotTellIsNotJudged(t *testing.T) {
	in := quietHost()
	in.Host, in.Evidence.Cost = result.Host{}, nil
	for _, c := range hostOf(&in) {
		if c.Status != result.NotRun || c.Why == "" || c.Limit == "" {
			t.Errorf("%+v", c)
		}
	}
	in = quietHost()
	in.Run.Loop = result.LoopClosed
	for check, want := range map[string]result.Status{CheckHeadroom: result.NotRun, CheckHiccups: result.NotRun, CheckCPU: result.NotRun} {
		if c := statusOf(&in, check); c.Status != want {
			t.Errorf("in a closed loop: %+v, want it %s", c, want)
		}
	}
}

// TestAClosedLoopIsJudgedByWhatOthersTook: a run of ten seconds that used 1.9 cores of two.
func TestAClosedLoopIsJudgedByWhatOthersTook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		taken, servers float64
		heldNS         int64
		cpu, hiccups   result.Status
		says           string
	}{
		"nothing":                    {0, 0, 0, result.Valid, result.Valid, ""},
		"little":                     {0.4, 0, 40e6, result.Valid, result.Valid, ""},
		"a third":                    {9.5, 0, 0, result.Suspect, result.Valid, "too low by up to 33.3 %"},
		"most":                       {40, 0, 0, result.Suspect, result.Valid, "too low by up to 67.8 %"},
		"by the servers of the run":  {9.5, 0.95, 0, result.Valid, result.Valid, ""},
		"stopped for 1.5 s":          {0, 0, 1500e6, result.Valid, result.Suspect, "A closed loop stands still meanwhile: the rate is too low by up to 15 %, and the service times hold these waits."},
		"stopped for most of it":     {0, 0, 6e9, result.Valid, result.Suspect, "too low by up to 60 %"},
		"stopped, and a third taken": {9.5, 0, 1500e6, result.Suspect, result.Suspect, "too low by"},
	} {
		in := quietHost()
		in.Run.Loop, in.Run.MeasureS = result.LoopClosed, 10
		in.Host.Usage.CPUSeconds, in.Host.Usage.TakenS = ptr(19.0), &tt.taken
		in.Host.Hiccups.HeldNS = &tt.heldNS
		if tt.servers > 0 {
			in.Servers = &result.Servers{Processes: []host.ServerUsage{{Cores: &tt.servers}}}
		}
		for check, want := range map[string]result.Status{CheckCPU: tt.cpu, CheckHiccups: tt.hiccups} {
			c := statusOf(&in, check)
			if c.Status != want || want != result.Valid && !strings.Contains(c.Why, tt.says) {
				t.Errorf("%s: %+v; want it %s, and to say %q", name, c, want, tt.says)
			}
		}
	}
}

// TestWaitsAreHeldAgainstTheTimeInWhichMessagesCame: what counts for a whole run of five
// seconds says nothing of the few milliseconds in which messages came.
func TestWaitsAreHeldAgainstTheTimeInWhichMessagesCame(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode         string
		windowS      float64
		status       result.Status
		cpu, hiccups string
	}{
		"received in 5 ms": {
			result.ModeConsume, 0.005, result.NotRun, "Waits for cores are known for 5.00 s in all, and messages came in only 5.00 ms of that.",
			"weir receives nothing meanwhile: the rate is too low by up to 20 %. Use",
		},
		"received in 4 s": {
			result.ModeConsume, 4, result.Suspect, "weir receives only when its threads run: the rate is too low by up to 25 %. Stop",
			"weir receives nothing meanwhile: the rate is too low by up to 20 %. Use",
		},
		"filled": {
			result.ModeBacklog, 3, result.Suspect, "weir sends and receives only when its threads run: the rates are too low by up to 20 %, and the service times hold these waits. Stop",
			"weir sends nothing meanwhile: the sent rate is too low by up to 20 %, and the service times hold these waits. Use",
		},
	} {
		in := quietHost()
		in.Run.Loop, in.Run.Mode, in.Run.MeasureS = result.LoopClosed, tt.mode, tt.windowS
		if in.Consuming() {
			in.Latency = result.Latency{}
		}
		in.Host.Usage.SpanS, in.Host.Usage.CPUSeconds, in.Host.Usage.TakenS = 5, ptr(2.0), ptr(1.0)
		in.Host.Hiccups.HeldNS = ptr(int64(tt.windowS * 2e8))
		c, h := statusOf(&in, CheckCPU), statusOf(&in, CheckHiccups)
		if c.Status != tt.status || !strings.Contains(c.Why, tt.cpu) || h.Status != result.Suspect || !strings.Contains(h.Why, tt.hiccups) {
			t.Errorf("%s: %+v, %+v; want it %s, with %q and %q", name, c, h, tt.status, tt.cpu, tt.hiccups)
		}
		for _, c := range []result.Check{lateness(of(&in)).stored(), rate(of(&in)).stored()} {
			if in.Consuming() && c.Why != "This run sends no messages." {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

func TestACollectorsPauseAtTheOnlyPercentileLeavesNoneBelow(t *testing.T) {
	t.Parallel()
	in := quietHost()
	in.Host.Usage.GC.LongestNS = 4_000_000
	if why := statusOf(&in, CheckGC).Why; !strings.HasSuffix(why, "to show at p99.9; the percentiles below it hold. Use a host with free cores, fewer messages in flight, or smaller messages.") {
		t.Errorf("%q", why)
	}
	in.Latency.Send.Service.Percentiles = in.Latency.Send.Service.Percentiles[:1]
	in.Host.Usage.GC.Pauses = 100_000
	if why := statusOf(&in, CheckGC).Why; !strings.HasSuffix(why, "to show at p50. Use a host with free cores, fewer messages in flight, or smaller messages.") {
		t.Errorf("%q", why)
	}
}
