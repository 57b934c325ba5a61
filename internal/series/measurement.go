package series

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// A measurement is one run from its folder to its result.
type measurement struct {
	host        *Host
	observer    Observer
	note        func(format string, args ...any) // tells of what is not this run's alone
	words       *Words
	scenario    *scenario.Scenario
	folder      *result.Folder
	dir         string // of the folder, absolute or from the process's working folder
	started     time.Time
	early       *judge.Early  // ends the run; nil: nothing does
	enough      chan struct{} // closed by it
	percentiles []float64     // asked for; see Options
	pages       Pages         // draws report.html; nil: it is not written
	entry       result.Entry  // what its folder holds

	running   *broker.Running      // the system, where weir started it
	installed *broker.Installation // what was started, with start: process
	subject   *subject             // the same, for faults
	servers   *host.ServerMeter    // of this host, its processes and weir's; nil: the host does not tell
	clock     *pace.Clock          // the meter's

	logs map[string][]*result.ServerLog // what servers said beside clusters of the slowest, by the distribution

	link    *network.Link   // between clients and servers; nil: the scenario wants none
	between *result.Network // the same, when the run is over
	broke   error           // why it was not there until then

	fleet   *fleet.Fleet      // that does the run; nil: this process
	agents  int               // how many of it
	chosen  []string          // the names of these, once they are
	startOn string            // the agent that starts the system on its host; "": here, or nowhere
	there   *fleet.System     // what was started there
	files   map[string][]byte // that the scenario read, by path
	done    *fleet.Done       // what the fleet's run came to
	config  engine.Config     // of that

	paused *fleet.Paused // the run, where it was begun by another coordinator
	fifo   bool          // lanes of this host shall take precedence

	procs       int             // of the Go scheduler during the run
	slices      judge.Slices    // of the measured samples
	faults      *disturbance    // nil: the scenario has none
	parts       measure.Seconds // what has come of the open second
	told        sync.Once
	id          string
	run         uint32
	calibration pace.Calibration
	cost        result.Cost

	mu        sync.Mutex
	epoch     int64 // on the host's monotonic clock; 0 before it is known
	ended     bool  // the system that weir started is being ended
	died      []death
	hostThere host.Series // of the host of startOn
	intervals []result.Interval
	backlogs  []backlogAt // at the ends of intervals
}

// begin writes what is known before the first message, so that a run that is
// killed leaves behind what it was. procs is what GOMAXPROCS will be.
func (m *measurement) begin(ctx context.Context, procs int) {
	m.procs = procs // as the engine sets it for the run
	m.keep(m.folder.WriteScenario(m.scenario.YAML()))
	m.keep(m.folder.WriteEnvironment(m.environment(ctx, nil)))
}

// keep tells of the first error of the result folder when it happens. The
// folder keeps every one, which are told at the end.
func (m *measurement) keep(err error) {
	if err != nil {
		m.told.Do(func() {
			m.observer.Complain(fmt.Errorf("%w; the run goes on", err))
		})
	}
}

// abandon leaves no folder behind where nothing was measured and nothing
// happened that could be read in it.
func (m *measurement) abandon() {
	if m.folder.Events() > 0 {
		_ = m.folder.Close() // the run's own error is the one to tell
		return
	}
	for _, name := range []string{result.FileScenario, result.FileEnvironment} {
		_ = os.Remove(filepath.Join(m.dir, name)) // ours, of begin
	}
	_ = syscall.Rmdir(m.dir) // empty, or it stays; so does a link
}

// start starts intervals.hlog.
func (m *measurement) start(epoch pace.Epoch) {
	m.procs = runtime.GOMAXPROCS(0) // what is in force now
	m.mu.Lock()
	m.epoch = epoch.MonotonicNS
	servers := m.servers
	m.mu.Unlock()
	servers.Mark()
	m.keep(m.folder.StartIntervals(epoch.Wall, buildinfo.Version()))
}

// event takes the engine's.
func (m *measurement) event(ev engine.Event) {
	if ev.Kind == "phase" {
		m.servers.Mark()
	}
	m.observer.Event(ev.At, ev.Kind, ev.Text)
	m.keep(m.folder.AppendEvent(result.Event{TNS: ev.At, Kind: ev.Kind, Text: ev.Text}))
}

// backlogAt is what waited at an instant.
type backlogAt struct {
	at int64
	measure.Backlog
}

// interval takes the engine's, which may be a part of a second.
func (m *measurement) interval(iv *measure.Interval) {
	m.slices.Add(iv)
	if m.faults != nil {
		m.faults.course.Add(iv, m.scenario.Load.Closed)
	}
	if second := m.parts.Add(iv); second != nil {
		m.second(second)
	}
	if m.early != nil && m.early.Add(iv) {
		m.early = nil
		m.event(engine.Event{At: iv.To, Kind: "decided", Text: "every objective about a percentile is decided: the run ends"})
		close(m.enough)
	}
}

// second takes a second of the run: a line for each distribution, an entry for
// result.json, the view.
func (m *measurement) second(iv *measure.Interval) {
	phase := m.phase((iv.From + iv.To) / 2)
	m.mu.Lock()
	m.intervals = append(m.intervals, judge.Interval(iv, phase, m.scenario.Load.Closed))
	m.backlogs = append(m.backlogs, backlogAt{iv.To, slices.Clone(iv.Backlog)})
	m.mu.Unlock()
	m.keep(m.folder.AppendInterval(iv))
	m.observer.Interval(iv)
}

// phase names the part of the run that an instant lies in, as planned.
func (m *measurement) phase(at int64) string {
	end := int64(m.scenario.Length())
	switch {
	case at < int64(m.scenario.WarmUp):
		return "warmup"
	case end == 0 || at < end:
		return "measure"
	}
	return "drain"
}
