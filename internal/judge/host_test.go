package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/result"
)

// quietHost is a run of 100,000 messages at 10,000/s on an undisturbed host: p50 100 µs, p99 1 ms, p99.9 5
// ms.
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

func TestQuietHostPassesAllChecks(t *testing.T) {
	in := quietHost()
	for _, c := range hostOf(&in) {
		if c.Status != result.Valid || c.Value == "" || c.Limit == "" || c.Why != "" {
			t.Errorf("%+v", c)
		}
	}
}

func TestHostLimitsAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		check string
		spoil func(*result.Result)
		part  float64 // 0: it does not matter
		codes string
	}{
		"a rate near the ceiling":          {CheckHeadroom, func(in *result.Result) { in.Evidence.HighestPerS = 600_000 }, 0.6, "headroom.value headroom.little"},
		"recording that takes a core":      {CheckRecording, func(in *result.Result) { in.Evidence.HighestPerS, in.Evidence.Cost.RecordNS = 400_000, 300 }, 0.12, "recording.value recording.delays"},
		"no core left":                     {CheckCPU, func(in *result.Result) { in.Host.Usage.CPUShare = new(0.85) }, 0, "cpu.value cpu.full"},
		"others on every core":             {CheckCPU, func(in *result.Result) { in.Host.Usage.HostBusyShare = new(0.99) }, 0, "cpu.value cpu.busy"},
		"a hypervisor with other guests":   {CheckSteal, func(in *result.Result) { in.Host.Usage.StealShare = new(0.02) }, 0.02, "steal.value steal.others"},
		"a quota":                          {CheckThrottling, func(in *result.Result) { *in.Host.Usage.ThrottledS, *in.Host.Usage.ThrottledPeriods = 0.05, 2 }, 0, "throttling.value throttling.quota"},
		"swapping":                         {CheckSwap, func(in *result.Result) { *in.Host.Usage.SwapOutBytes = 4096 }, 0, "swap.value swap.moved"},
		"a collector that is always there": {CheckGC, func(in *result.Result) { in.Host.Usage.GC.PauseNS = 200_000_000 }, 0.02, "gc.value gc.often"},
		"a pause as long as the tail":      {CheckGC, func(in *result.Result) { in.Host.Usage.GC.LongestNS = 4_000_000 }, 0, "gc.value gc.tail gc.long"},
		"one pause, which few messages meet": {CheckGC, func(in *result.Result) { // 40 of them, and 100 lie beyond p99.9
			in.Host.Usage.GC = host.GC{Cycles: 1, Pauses: 2, PauseNS: 4_000_100, LongestNS: 4_000_000}
		}, 0, ""},
		"stalls as long as the middle":      {CheckHiccups, func(in *result.Result) { in.Host.Hiccups.P50NS = 110_000 }, 0.6, "hiccups.value hiccups.stall"},
		"stalls as long as the finest tail": {CheckHiccups, func(in *result.Result) { in.Host.Hiccups.P999NS = 4_050_000 }, 0.8, "hiccups.value hiccups.stall"},
		"the way out of a sleep":            {CheckHiccups, func(in *result.Result) { asleep(in, 13_000) }, 0, ""}, // varies by as much
		"more than the way out of a sleep":  {CheckHiccups, func(in *result.Result) { asleep(in, 21_000) }, 14_300.0 / 9_000, "hiccups.value hiccups.stall"},
	} {
		in := quietHost()
		tt.spoil(&in)
		for _, c := range hostOf(&in) {
			if c.Name != tt.check || tt.codes == "" {
				if c.Status != result.Valid {
					t.Errorf("%s: %+v", name, c)
				}
			} else if got := strings.Join(c.Codes, " "); statusOrFound(c) != result.Suspect || got != tt.codes || tt.part > 0 && c.Values["part"] != tt.part {
				t.Errorf("%s: %+v; want it found, %v for %s", name, c, tt.part, tt.codes)
			}
		}
	}
	in := quietHost()
	in.Host.Usage.GC.LongestNS, in.Host.Usage.GC.Pauses = 4_000_000, 100_000
	in.Latency.Send.Service.Percentiles = in.Latency.Send.Service.Percentiles[:1]
	if c := statusOf(&in, CheckGC); c.Values["p"] != 50.0 || c.Values["standing"] != false {
		t.Errorf("the collector at the only percentile: %+v", c)
	}
}

// asleep is a system that takes no time, beside a thread that wakes so late at p99.
func asleep(in *result.Result, p99 int64) {
	in.Host.Calibration.P50 = 6_700
	in.Latency.Send.Service.Percentiles = []result.Percentile{{P: 50, NS: 495, Supported: true}, {P: 99, NS: 9_000, Supported: true}}
	in.Host.Hiccups = &result.Hiccups{Count: 1500, P50NS: 7_300, P99NS: p99, P999NS: 150_000, MaxNS: 180_000}
}

// The cost of recording bounds a pacer's work.
func TestALowRateNeedsNoCeiling(t *testing.T) {
	for name, tt := range map[string]struct {
		perS, recordNS float64
		pacers         int
		part           float64 // 0: it is not run
	}{
		"ten thousand":             {10_000, 100, 1, 0.02},
		"hardly any":               {10, 50, 1, 0.001},
		"the most":                 {50_000, 100, 1, 0.1},
		"more":                     {50_001, 100, 1, 0},
		"more, on two pacers":      {50_001, 100, 2, 0.051},
		"a host ten times as slow": {50_000, 1000, 1, 0},
		"nothing known":            {1000, 0, 1, 0},
	} {
		in := quietHost()
		in.Evidence.HighestPerS, in.Evidence.Cost, in.Host.Pacers = tt.perS, &result.Cost{RecordNS: tt.recordNS}, tt.pacers
		c := statusOf(&in, CheckHeadroom)
		light := Light(*in.Evidence.Cost, tt.perS/float64(tt.pacers))
		if part, _ := c.Values["part"].(float64); part != tt.part || (c.Status == result.Valid) != (part > 0) || light != (part > 0) {
			t.Errorf("%s: %+v, light %v; want %v of it", name, c, light, tt.part)
		}
	}
}

func TestMissingHostFactsAreNotJudged(t *testing.T) {
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

func TestClosedLoopJudgedByOtherProcesses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		taken, servers float64
		heldNS         int64
		cpu, hiccups   string // part that is too low; "" where it is valid
	}{
		"nothing":                    {0, 0, 0, "", ""},
		"little":                     {0.4, 0, 40e6, "", ""},
		"a third":                    {9.5, 0, 0, "33.3 %", ""},
		"most":                       {40, 0, 0, "67.8 %", ""},
		"by the servers of the run":  {9.5, 0.95, 0, "", ""},
		"stopped for 1.5 s":          {0, 0, 1500e6, "", "15 %"},
		"stopped for most of it":     {0, 0, 6e9, "", "60 %"},
		"stopped, and a third taken": {9.5, 0, 1500e6, "33.3 %", "15 %"},
	} {
		in := quietHost()
		in.Run.Loop, in.Run.MeasureS = result.LoopClosed, 10
		in.Host.Usage.CPUSeconds, in.Host.Usage.TakenS = new(19.0), &tt.taken
		in.Host.Hiccups.HeldNS = &tt.heldNS
		if tt.servers > 0 {
			in.Servers = &result.Servers{Processes: []host.ServerUsage{{Cores: &tt.servers}}}
		}
		for check, want := range map[string]string{CheckCPU: tt.cpu, CheckHiccups: tt.hiccups} {
			c := statusOf(&in, check)
			if (c.Status == result.Suspect) != (want != "") || want != "" && (finding.Share(c.Values["part"].(float64)) != want || c.Values["service"] != true) {
				t.Errorf("%s: %+v; want %q", name, c, want)
			}
		}
	}
}

// Waits of a whole run of five seconds say nothing about the few milliseconds in which messages arrived.
func TestWaitsAreRelativeToActiveTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode    string
		windowS float64
		cpu     string
		part    float64
	}{
		{result.ModeConsume, 0.005, "cpu.elsewhen", 0},
		{result.ModeConsume, 4, "cpu.taken cpu.others", 0.25},
		{result.ModeBacklog, 3, "cpu.taken cpu.others", 0.2},
	} {
		in := quietHost()
		in.Run.Loop, in.Run.Mode, in.Run.MeasureS = result.LoopClosed, tt.mode, tt.windowS
		if in.Consuming() {
			in.Latency = result.Latency{}
		}
		in.Host.Usage.SpanS, in.Host.Usage.CPUSeconds, in.Host.Usage.TakenS = 5, new(2.0), new(1.0)
		in.Host.Hiccups.HeldNS = new(int64(tt.windowS * 2e8))
		c, h := statusOf(&in, CheckCPU), statusOf(&in, CheckHiccups)
		if part, _ := c.Values["part"].(float64); strings.Join(c.Codes, " ") != tt.cpu || part != tt.part {
			t.Errorf("%s, %v s: %+v; want %s, %v", tt.mode, tt.windowS, c, tt.cpu, tt.part)
		}
		if !says(h, "hiccups.stopped") || finding.Share(h.Values["part"].(float64)) != "20 %" || h.Values["consuming"] != in.Consuming() || h.Values["filling"] == in.Consuming() || h.Values["service"] == in.Consuming() {
			t.Errorf("%s, %v s: %+v", tt.mode, tt.windowS, h)
		}
		for _, c := range []check{lateness(of(&in)), rate(of(&in))} {
			if in.Consuming() && whyOf(c) != "no.sending" {
				t.Errorf("%s: %+v", tt.mode, c)
			}
		}
	}
}
