package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func TestReportShowsFaultEffects(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	r := &result.Result{
		Intervals: []result.Interval{{TS: 0, Phase: "warmup"}, {TS: 2, Phase: "measure"}},
		Faults: []result.Fault{
			{Do: "kill", To: "leader", Processes: []string{"server-2"}, BeganNS: 10e9, UndoneNS: ns(14e9), Effect: &result.FaultEffect{
				UntilNS: 20e9, StepNS: 2e8, Unconfirmed: &result.Span{FromNS: 10e9, ToNS: 15.5e9}, Undelivered: &result.Span{FromNS: 10e9, ToNS: 15.6e9},
				Failed: 5703, WorstNS: ns(5.63e9), BandNS: ns(12e6), BackNS: ns(5.7e9),
			}},
			{Do: "stop", To: "all", Processes: []string{"a-1", "b-1", "a-2", "b-2"}, BeganNS: 20e9, UndoneNS: ns(21e9), Effect: &result.FaultEffect{UntilNS: 30e9, BandNS: ns(12e6)}},
			{Do: "kill", To: "server-1", Processes: []string{"server-1"}, BeganNS: 30e9, Effect: &result.FaultEffect{UntilNS: 40e9, BandNS: ns(12e6), BackNS: ns(0)}},
			{Do: "kill", To: "leader", BeganNS: 40e9, Error: "no node leads"},
			{Do: "disconnect", To: "consumers", From: "leader", Processes: []string{"server-1"}, Connections: 2, BeganNS: 50e9},
			{Do: "disconnect", To: "clients", Processes: []string{"server-1"}, Connections: 1, BeganNS: 60e9, Agents: []string{"c", "b"}, BoundNS: ns(80e3)},
			{Do: "kill", To: "1", Processes: []string{"server-1"}, BeganNS: 61e9, Agents: []string{"bk"}, BoundNS: ns(120e3)},
		},
	}
	page := &layout.Page{}
	(&single{Page: page, r: r}).faults()
	got := layout.Text{}.Page(page)
	want := `
    at  fault                                 lasted     unconfirmed     undelivered  failed  slowest  p99 back
 8.0 s  kill server-2 (leader)                4.00 s  5.50 to 5.90 s  5.60 to 6.00 s   5,703   5.63 s    5.70 s
18.0 s  stop all (4 processes)                1.00 s               -               -       0        -        no
28.0 s  kill server-1                              -               -               -       0        -      kept
38.0 s  kill leader failed                    failed               -               -       0        -         -
48.0 s  disconnect consumers (2) from leader       -               -               -       0        -         -
58.0 s  disconnect clients (1)                     -               -               -       0        -         -
59.0 s  kill server-1, host of bk                  -               -               -       0        -         -
By agents b, bk, c, at instants of their clocks: off by 120 µs at the most.
at: since the end of the warm-up. unconfirmed, undelivered: the longest time without a confirmation, without a delivery. A cell - means: at most twice the longest before the faults.
    A range: messages are counted in steps of 200 ms, so the time is somewhere between.
    slowest: the longest time of a message that came between this fault and the next. Failed messages do not count.
    p99 back: the time from the fault until p99 was at or below 12.0 ms again, and stayed there. That is the larger of twice its median and its highest value before the faults. It is to within 200 ms.
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.TrimPrefix(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Seconds of the run count from its start, and a warm-up of half a second ends within the first.
func TestFaultIsShownAtScenarioTime(t *testing.T) {
	page := &layout.Page{}
	(&single{Page: page, r: &result.Result{
		Run:       result.Run{WarmUpS: new(0.5)},
		Intervals: []result.Interval{{TS: 0, Phase: "measure"}, {TS: 1, Phase: "measure"}},
		Faults:    []result.Fault{{Do: "kill", To: "leader", Processes: []string{"server-2"}, BeganNS: 3_500_000_000}},
	}}).faults()
	if got := (layout.Text{}).Page(page); !strings.Contains(got, "3.0 s  kill server-2 (leader)") {
		t.Errorf("a fault at 3s of the window is told as\n%s", got)
	}
}

// The window ended before messages resumed.
func TestUnendedOutageIsLowerBound(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	r := &result.Result{
		Intervals: []result.Interval{{TS: 2, Phase: "measure"}},
		Faults: []result.Fault{
			{Do: "kill", To: "leader", Processes: []string{"server-2"}, BeganNS: 5e9, Effect: &result.FaultEffect{
				UntilNS: 10e9, StepNS: 1e8, Unconfirmed: &result.Span{FromNS: 5.5e9, ToNS: 10e9}, Undelivered: &result.Span{FromNS: 5.5e9, ToNS: 9e9}, Failed: 2258, BandNS: ns(12e6),
			}},
			{Do: "stop", To: "server-1", Processes: []string{"server-1"}, BeganNS: 10e9, Effect: &result.FaultEffect{
				UntilNS: 20e9, StepNS: 1e8, Unconfirmed: &result.Span{FromNS: 10e9, ToNS: 10.1e9}, BandNS: ns(12e6), BackNS: ns(14e9),
			}},
		},
	}
	page := &layout.Page{}
	r.System.Copies, r.System.Server.Nodes = "1", 3
	x := &single{Page: page, r: r}
	x.faults()
	x.outages()
	got := layout.Text{}.Page(page)
	mentions(t, got,
		">= 4.50 s  3.50 to 3.70 s   2,258", ">= at least: no message had come", "--measure",
		"kill server-2 (leader) at 3.0 s: nothing confirmed for >= 4.50 s, 2,258 failed, p99 was not back\n",
		"a confirmed message was on 1 of 3 nodes: --replication 3 keeps copies",
		"stop server-1 at 8.0 s: nothing confirmed for 100 to 300 ms, p99 back after 14.0 s\n",
	)
}
