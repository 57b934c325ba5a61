package series

import (
	"testing"

	"github.com/weirmq/weir/result"
)

// Scenarios count from the end of the warm-up.
func TestFaultIsDueAtScenarioTime(t *testing.T) {
	t.Parallel()
	r := &result.Result{
		Run:    result.Run{WarmUpS: new(2.0)},
		Faults: []result.Fault{{Do: "stop", To: "leader", DueNS: 3e9}, {Do: "kill", To: "all", DueNS: 5e9, Error: "no such process"}},
	}
	if err, want := undone(r), "the fault kill all, due at 3.0 s of the measurement: no such process"; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}
