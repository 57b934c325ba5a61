package series

import (
	"context"
	"sync"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A measurement is one run from its folder to its result. What it needs beside the engine are
// its components.
type measurement struct {
	host        *Host
	observer    Observer
	note        func(format string, args ...any) // tells of what is not this run's alone
	scenario    *scenario.Scenario
	folder      *result.Folder
	dir         string // of the folder, absolute or from the process's working folder
	started     time.Time
	percentiles []float64 // asked for; see Options
	pages       Pages     // nil: no page is drawn
	entry       result.Entry
	fifo        bool // lanes of this host shall take precedence

	id   string
	run  uint32
	cfg  engine.Config // as the components complete it
	cost result.Cost
	told sync.Once // the first error of the folder

	mu    sync.Mutex // of the components, too
	epoch int64      // on the host's monotonic clock; 0 before it is known

	team    team
	link    link
	servers servers
	pacing  pacing
	record  record
	meter   meter
	logs    logs
	faults  faults
}

// newMeasurement is m with its components.
func newMeasurement(m *measurement) *measurement {
	m.team.measurement, m.link.measurement, m.servers.measurement, m.pacing.measurement = m, m, m, m
	m.record.measurement, m.meter.measurement, m.logs.measurement, m.faults.measurement = m, m, m, m
	return m
}

// A component is a part of a run that starts before the first message, and stops when the
// engine has ended, after those that started later.
type component interface {
	// start starts it. A closed stop ends that.
	start(ctx context.Context, stop <-chan struct{}) error
	// stop is given what the engine measured; nil: it did not.
	stop(ctx context.Context, raw *engine.Raw)
	// result adds what the component knows of a run that is over. Those that started later have
	// done so.
	result(raw *engine.Raw, r *result.Result)
}

// components returns those of the run in the order in which they start.
func (m *measurement) components() []component {
	return []component{&m.team, &m.link, &m.servers, &m.pacing, &m.record, &m.meter, &m.logs, &m.faults}
}

// idle is a component with nothing to stop and nothing to add.
type idle struct{}

func (idle) stop(context.Context, *engine.Raw)  {}
func (idle) result(*engine.Raw, *result.Result) {}
