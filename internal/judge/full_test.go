package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestAFullDiskIsNotTheAgentsFault: where the coordinator had no room for reports,
// agents whose last one never came are not blamed.
func TestAFullDiskIsNotTheAgentsFault(t *testing.T) {
	for _, full := range []bool{true, false} {
		in := quietHost()
		in.Evidence.DiskFull = full
		in.Agents = []result.Agent{{Name: "a", Missing: true}, {Name: "b"}}
		c := agents(of(&in)).stored()
		if strings.Contains(c.Value, "the coordinator's disk was full: a sent no figures") != full || strings.Contains(c.Why, "The agents did not cause this") != full {
			t.Errorf("full %v: %+v", full, c)
		}
		in.Agents[0].Missing = false
		if c := agents(of(&in)).stored(); c.Status != result.Valid {
			t.Errorf("full %v, and nothing is missing: %+v", full, c)
		}
	}
}
