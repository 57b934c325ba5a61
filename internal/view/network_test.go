package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func TestReportShowsNetworkConditions(t *testing.T) {
	share := func(p float64) *float64 { return &p }
	bits := func(n int64) *int64 { return &n }
	r := &result.Result{Network: &result.Network{
		Means: "weir's own link between two TUN devices", Profile: "3g-lossy", BareRoundTripNS: 98_700, RoundTripNS: 30_400_000,
		ToSystem: result.Direction{
			Asked:    result.Conditions{LatencyNS: 20e6, JitterNS: 2e6, Distribution: "normal", Loss: share(0.01), Corrupt: share(0.001)},
			Measured: result.Conditions{LatencyNS: 20_200_000, JitterNS: 2_100_000, Loss: share(0.0125)},
			Carried:  result.PacketsDone{Packets: 12_345, Bytes: 1e6, Lost: 120, Corrupted: 11, Cut: 40},
		},
		FromSystem: result.Direction{
			Asked:    result.Conditions{LatencyNS: 10e6, BitsPerS: bits(1_600_000)},
			Measured: result.Conditions{LatencyNS: 10_200_000, BitsPerS: bits(1_592_000)},
			Carried:  result.PacketsDone{Packets: 9_000, Bytes: 1e6, Queue: 3, Overflow: 1},
		},
	}}
	page := &layout.Page{}
	(&single{Page: page, r: r}).network()
	got := layout.Text{}.Page(page)
	want := `
network     weir's own link between two TUN devices, profile 3g-lossy; round trip 30.4 ms before the run (98.7 µs of it is the link's own)
            to the system: latency 20.0 ms (measured 20.2 ms), jitter 2.00 ms normal (standard deviation 2.10 ms), loss 1 % (1.25 %), corruption 0.1 %; 12,345 packets, 120 lost, 11 corrupted, 40 cut off
            from the system: latency 10.0 ms (measured 10.2 ms), bandwidth 1.6 Mbit/s (1.592 Mbit/s); 9,000 packets, 3 dropped by the full queue, 1 dropped by the link, not asked for
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
