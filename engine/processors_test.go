package engine

import (
	"runtime"
	"testing"

	"github.com/weirmq/weir/internal/pace"
)

// TestARunHasTheProcessorsThatItsConfigurationSays: those of Go, lanes among them; and as
// many as before when it is over.
func TestARunHasTheProcessorsThatItsConfigurationSays(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for want, cfg := range map[int]Config{1: {Processors: 1, Lanes: 1}, 3: {Processors: 3, Lanes: 2}, runtime.NumCPU() + 4: {Lanes: 4}} {
		cfg.Calibration = pace.Calibration{Samples: 1}
		r := &run{shape: &shape{cfg: cfg}}
		undo := r.hygiene()
		got := runtime.GOMAXPROCS(0)
		undo()
		if got != want || r.cfg.Procs() != want {
			t.Errorf("%d processors, said to be %d; want %d", got, r.cfg.Procs(), want)
		}
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("%d processors after runs; there were %d", after, before)
	}
}

// TestALaneDoesNotSpinOnTheLastProcessor: it would keep all else from running.
func TestALaneDoesNotSpinOnTheLastProcessor(t *testing.T) {
	cfg := Config{Processors: 1}
	cfg.Plan.Producers = 1
	cfg.Pace(8)
	if cfg.Lanes != 1 || cfg.Calibration.Spin {
		t.Errorf("%d lanes, spin %v: %s; want one that does not spin", cfg.Lanes, cfg.Calibration.Spin, cfg.Calibration.Why)
	}
}
