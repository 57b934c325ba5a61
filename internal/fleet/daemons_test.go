package fleet

import (
	"testing"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/offset"
)

// They agree if their intervals overlap; otherwise the gap is reported.
func TestDaemonsAreComparedWithMeasurement(t *testing.T) {
	const ms = int64(time.Millisecond)
	// The agent's monotonic clock is 25 ms ahead of the coordinator's; both wall clocks are right.
	own := []host.Daemon{{Name: "chrony", Source: "a", AheadNS: 1000 * ms, BoundNS: 2 * ms}, {Name: "chrony", Source: "a", AheadNS: 1000 * ms, BoundNS: 3 * ms}}
	measured := Watch{Course: offset.Course{Lines: []offset.Line{{Offset: -25 * ms, Bound: ms / 10}}}}
	theirs := func(first, second int64) []host.Daemon {
		return []host.Daemon{{Name: "chrony", Source: "b", AheadNS: first, BoundNS: ms}, {Name: "chrony", Source: "b", AheadNS: second, BoundNS: ms}}
	}
	for _, c := range []struct {
		name   string
		watch  Watch
		theirs []host.Daemon
		want   *Checked
	}{
		{"both are right", measured, theirs(975*ms, 975*ms), &Checked{By: "chrony", Agrees: true, BoundNS: 4 * ms}},
		{"as far as the bounds allow", measured, theirs(978*ms, 971*ms), &Checked{By: "chrony", Agrees: true, BoundNS: 4 * ms}},
		{"the wall was set in mid-run", measured, theirs(975*ms, 985*ms), &Checked{By: "chrony", BoundNS: 4 * ms, ApartNS: 59 * ms / 10}},
		{"it was asked once", measured, theirs(965*ms, 0)[:1], &Checked{By: "chrony", BoundNS: 3 * ms, ApartNS: 69 * ms / 10}},
		{"there is none", measured, []host.Daemon{{Why: "chrony does not run here"}}, nil},
		{"it follows nothing", measured, []host.Daemon{{Unsynchronised: true}}, nil},
		{"it says what cannot be", measured, []host.Daemon{{Name: "chrony", Source: "b", BoundNS: 1 << 62}}, nil},
		{"another daemon", measured, []host.Daemon{{Name: "ptp4l", Source: "a", AheadNS: 975 * ms, BoundNS: ms}}, nil},
		{"one clock", Watch{Same: true, Course: measured.Course}, theirs(975*ms, 975*ms), nil},
		{"nothing was measured", Watch{}, theirs(975*ms, 975*ms), nil},
	} {
		got := c.watch.checked(c.theirs, own)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
}
