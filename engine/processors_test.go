package engine

import (
	"runtime"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/schedule"
)

// Includes the pacers; the previous value is restored after the run.
func TestRunUsesConfiguredGOMAXPROCS(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for want, cfg := range map[int]Config{1: {Processors: 1, Pacers: 1}, 3: {Processors: 3, Pacers: 2}, runtime.NumCPU() + 4: {Pacers: 4}} {
		cfg.Calibration = pace.Calibration{Samples: 1}
		r := &run{shape: &shape{cfg: cfg}}
		undo := r.tuneRuntime()
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

// A spinning pacer would keep everything else from running.
func TestPacerDoesNotSpinOnLastCore(t *testing.T) {
	cfg := Config{Processors: 1}
	cfg.Plan.Producers = 1
	cfg.Pace(8)
	if cfg.Pacers != 1 || cfg.Calibration.Spin {
		t.Errorf("%d pacers, spin %v: %s; want one that does not spin", cfg.Pacers, cfg.Calibration.Spin, cfg.Calibration.Why)
	}
}

// A goroutine behind a pacer wakes late. At high rates, and with more producers than half of the
// cores, a pacer serves several.
func TestPacerPerProducerGivenEnoughCores(t *testing.T) {
	for name, c := range map[string]struct {
		blocks           bool
		producers, cores int
		rate             schedule.Rate
		want             int
	}{
		"one core":                     {true, 4, 1, schedule.PerSecond(1000), 1},
		"two cores":                    {true, 4, 2, schedule.PerSecond(1000), 1},
		"half of the cores":            {true, 4, 8, schedule.PerSecond(1000), 4},
		"one producer more than that":  {true, 5, 8, schedule.PerSecond(1000), 1},
		"the highest rate of each":     {true, 4, 8, schedule.PerSecond(80_000), 4},
		"a higher rate":                {true, 4, 8, schedule.PerSecond(80_001), 1},
		"two millions":                 {true, 4, 8, schedule.PerSecond(2_000_000), 2},
		"a client that does not block": {false, 4, 8, schedule.PerSecond(1000), 1},
	} {
		cfg := Config{}
		cfg.Definition.Capabilities.PublishBlocks = c.blocks
		cfg.Plan.Producers = c.producers
		cfg.Plan.Phases = []schedule.Phase{{From: c.rate, To: c.rate, For: time.Second}}
		if got := cfg.pacers(c.cores); got != c.want {
			t.Errorf("%s: %d pacers; want %d", name, got, c.want)
		}
	}
}
