package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestChronyCanCastDoubtOnTheClocks: where chrony and the exchanges cannot both be
// right, the clocks are suspect, and the agents named; where it says nothing or agrees,
// nothing is said.
func TestChronyCanCastDoubtOnTheClocks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chrony *result.Chrony
		want   result.Status
	}{
		{"agrees", &result.Chrony{BoundNS: 1_000_000, Agrees: true}, result.Valid},
		{"says nothing", nil, result.Valid},
		{"differs", &result.Chrony{BoundNS: 1_000_000, ApartNS: 5_000_000}, result.Suspect},
	} {
		in := good()
		bound := int64(1000)
		in.Latency.E2E.Response = scaled(100_000, 1_000_000_000)
		in.Clock = &result.FleetClock{Crosses: true, BoundNS: &bound}
		for _, name := range []string{"near", "far"} {
			in.Agents = append(in.Agents, result.Agent{Name: name, Clock: result.AgentClock{BoundNS: &bound}})
		}
		in.Agents[1].Clock.Chrony = tt.chrony
		c := clocks(of(&in)).stored()
		if c.Status != tt.want || strings.Contains(c.Value, "chrony contradicts this for far") != (tt.want == result.Suspect) {
			t.Errorf("%s: %+v; want %s", tt.name, c, tt.want)
		}
	}
}
