package series

import (
	"context"
	"sync"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A measurement is one run from its folder to its result. Its components supply what it needs besides the
// engine.
type measurement struct {
	host        *Host
	observer    Observer
	note        func(format string, args ...any) // reports what concerns more than this run
	scenario    *scenario.Scenario
	folder      *result.Folder
	dir         string // absolute or relative to the working directory
	started     time.Time
	percentiles []float64 // requested; see Options
	pages       Pages     // nil: no page is drawn
	entry       result.Entry
	fifo        bool // pacers of this host get real-time priority
	wire        Wire

	id       string
	run      uint32
	cfg      engine.Config // completed by the components
	cost     result.Cost
	reported sync.Once // guards the report of the folder's first error

	mu    sync.Mutex // also for the components
	epoch int64      // on the host's monotonic clock; 0: unknown yet

	team    team
	link    link
	servers servers
	pacing  pacing
	record  record
	meter   meter
	logs    logs
	faults  faults
}

// newMeasurement adds the components to m.
func newMeasurement(m *measurement) *measurement {
	m.team.measurement, m.link.measurement, m.servers.measurement, m.pacing.measurement = m, m, m, m
	m.record.measurement, m.meter.measurement, m.logs.measurement, m.faults.measurement = m, m, m, m
	return m
}

// A component is a part of a run that starts before the first message, and stops when the engine has ended,
// in reverse order of start.
type component interface {
	// start starts the component. Closing stop aborts it.
	start(ctx context.Context, stop <-chan struct{}) error
	// stop gets the engine's measurements; nil: there are none.
	stop(ctx context.Context, raw *engine.Raw)
	// result adds what the component knows to a finished run. It is called for components that started
	// later first.
	result(raw *engine.Raw, r *result.Result)
}

// components returns the run's components in start order.
func (m *measurement) components() []component {
	return []component{&m.team, &m.link, &m.servers, &m.pacing, &m.record, &m.meter, &m.logs, &m.faults}
}

// idle is an embeddable component with nothing to stop or add.
type idle struct{}

func (idle) stop(context.Context, *engine.Raw)  {}
func (idle) result(*engine.Raw, *result.Result) {}
