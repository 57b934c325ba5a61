package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// Mode is which sides of the system a run uses.
type Mode uint8

// The modes.
const (
	Stream  Mode = iota // producers and consumers
	Produce             // producers only
	Consume             // consumers only: the received rate; ends after IdleLimit without a delivery
	Request             // producers and consumers that answer them: the time there and back
	Backlog             // producers first, then consumers: how fast what lies there is drained
)

// String returns the mode's word in a scenario and a result.
func (m Mode) String() string {
	return [...]string{Stream: "stream", Produce: "produce", Consume: "consume", Request: "request", Backlog: "backlog"}[m]
}

// WhenFull is what happens to a message that is due while its producer has
// InFlight messages unconfirmed.
type WhenFull uint8

// The policies.
const (
	Wait WhenFull = iota // it waits in the producer's own backlog; the wait is in its response
	Drop                 // it is counted as dropped, and censored in the response
	Fail                 // the run ends at once
)

// String returns the word that scenarios and results use.
func (w WhenFull) String() string { return [...]string{Wait: "wait", Drop: "drop", Fail: "fail"}[w] }

// A Config is one run, and which part of it one process does. The caller has validated it: an
// Engine trusts it.
type Config struct {
	RunID      string // prefix of every name created, [a-z0-9-]
	Run        uint32 // identifies the run in stamps
	Definition driver.Definition
	Options    driver.Config
	Plan       schedule.Spec      // no phases: closed loop
	Schedule   *schedule.Schedule // of Plan, where the caller has made it; nil: it is made, which may take seconds (schedule.New)
	Worker     Worker             // what of it this process does

	Mode          Mode
	Names         []string // destinations that exist already: neither made nor removed; nil: the run makes its own
	Partitions    int
	Replicas      int
	Subscriptions int
	Consumers     int              // per subscription
	Guarantee     driver.Guarantee // a minimum; 0: any
	Settle        driver.Settle
	Prefetch      int
	Of            []result.Stream // what the run with the number Run sent to Names, by stream: mode Consume says what became of it, and this process does the whole run; nil: no run is named
	From          driver.Position // where the subscriptions begin; with Names
	Durable       string          // the one subscription's name in the system, where it outlives the run; with Names; "": none
	Work          time.Duration   // that a consumer spends on each delivery before it is settled; simulated by sleeping
	Refuse        float64         // share of deliveries that consumers return unsettled, 0 to 1, in whole client calls; mode Stream
	DeadLetter    int             // refusals of a message after which the system moves it to the dead letters; 0: it does not; with Refuse, one subscription and destinations of the run's own, and this process does the whole run
	Churn         time.Duration   // how often a consumer closes and another opens in its place, in the measured window; 0: never; mode Stream, and this process does the whole run
	Pause         Pause           // of all consumers; mode Stream with a schedule

	// InFlight is per producer, at least the largest batch. A closed loop with batches
	// that has just that room begins a batch when all of the one before it completed.
	InFlight int
	// Received has a message stay in flight until it was confirmed and its subscription
	// has it. InFlight is then at most MostAwaited, and this process does the whole run.
	Received bool
	WhenFull WhenFull
	Payload  Payload

	WarmUp   time.Duration // closed loop only: the plan has it otherwise
	Measure  time.Duration // closed loop only; 0 with Messages
	Messages uint64        // closed loop only: started after the warm-up
	Drain    time.Duration // at most
	// AfterDrain is how long consumers listen on when the drain is over, for what
	// comes late or again. Nothing of it is measured.
	AfterDrain time.Duration

	// Processors is how many threads run Go code at a time; 0: one for each core, and one
	// for each lane.
	Processors  int
	Lanes       int              // pacing threads; 0: as Pace
	Calibration pace.Calibration // of this host, for that many lanes
	FIFO        bool             // Pace has lanes take precedence over all else, where they may; see pace.CalibrateFIFO
	Clock       *pace.Clock

	// OnStart is called once with the run's epoch, some milliseconds ahead of it,
	// before OnInterval is.
	OnStart func(epoch pace.Epoch)
	// OnOpen is called once, when the system is open and its settings are read, by the part
	// that declares destinations, with what reads the driver's facts anew while the run
	// lasts; nil: not wanted.
	OnOpen func(facts func(context.Context) (driver.Facts, error))
	// OnInterval is called about once in Every with what happened since the last
	// call, from one goroutine; iv is the engine's again on return.
	OnInterval func(iv *measure.Interval)
	Every      time.Duration // a part of a second, which it divides; 0: a second
	// OnLedger is called about once a second, while a run drains LedgerEvery, from
	// one goroutine with what the ledger held at the instant at; the part is the
	// engine's again on return. nil: never.
	OnLedger func(at int64, p *ledger.Part)
	// Correct returns what is to be added to an instant at which a consumer here
	// yielded a message of the stream, so that it compares with instants of the
	// process that sent it. It is called for every first delivery, from one
	// goroutine, and must not block. nil: nothing is.
	Correct func(stream uint32, at int64) int64
	// OnEvent is called with whatever a reader of the result should know; from
	// any goroutine.
	OnEvent func(Event)
	Log     *slog.Logger
}

// LedgerEvery is how often, about, OnLedger is called while a run drains.
const LedgerEvery = 250 * time.Millisecond

// IdleLimit is how long a run that only consumes waits for a next delivery.
const IdleLimit = 5 * time.Second

// An Event is something that happened during a run.
type Event struct {
	At   int64  // ns since the epoch
	Kind string // "fault", "gc", "hiccup", "phase", "backlog-full", "drain", ...
	Text string
}

// Limits of the default in_flight, from the design: all slots of a run together
// take at most SlotBytes, and a producer never more than MaxInFlight.
const (
	SlotBytes   = 256 << 20
	MaxInFlight = 10_000
)

// MostAwaited is the most InFlight of a run with Received: for each delivery, as many slots
// are looked through.
const MostAwaited = 100

// InFlight returns the in-flight limit of each producer: want, or when want is 0 as many
// as fit in SlotBytes and in what the system takes in at one destination, and one batch in a
// closed loop with batches. It refuses a want that takes more than limit bytes over all
// producers, and names the product.
func InFlight(want, producers, largest, batch int, closed bool, limit int64, most driver.Intake) (int, error) {
	switch {
	case want > 0:
	case closed && batch > 1:
		want = batch
	case want == 0:
		n := min(MaxInFlight, SlotBytes/(producers*largest))
		if most.Messages > 0 {
			n = min(n, most.Messages/producers)
		}
		if most.Bytes > 0 {
			n = min(n, int(most.Bytes)/(producers*(largest+most.Besides)))
		}
		want = max(n, batch, 1)
	}
	if want < 1 {
		return 0, fmt.Errorf("must be at least 1, is %d", want)
	}
	if want < batch {
		return 0, fmt.Errorf("%d is less than the largest batch of %d", want, batch)
	}
	bytes := float64(producers) * float64(largest) * float64(want)
	if bytes > float64(limit) {
		return 0, fmt.Errorf("%d producers x %d in flight x %s = %s is over limits.memory (%s)",
			producers, want, driver.FormatSize(int64(largest)), driver.FormatSize(int64(math.Min(bytes, math.MaxInt64/2))), driver.FormatSize(limit))
	}
	return want, nil
}

// Pace sets Lanes to what a share of a run uses by default, and Calibration to what their
// waits need. There is a lane for each million messages a second of the highest rate. Where
// the client may block there is one for each producer, up to laneRate, since a goroutine
// behind a lane wakes late. There are never more lanes than half of the cores. Pace takes as
// long as pace.Calibrate, 0.3 s, with FIFO at most twice that.
func (c *Config) Pace(cores int) {
	if c.Processors > 0 {
		cores = min(cores, c.Processors)
	}
	c.Lanes = c.lanes(cores)
	waits := c.highest() / float64(c.Lanes)
	if c.FIFO {
		c.Calibration = pace.CalibrateFIFO(c.Lanes, waits)
	} else {
		c.Calibration = pace.Calibrate(c.Lanes).At(waits)
	}
	if c.Calibration.Spin && cores <= c.Lanes {
		c.Calibration.Spin = false
		c.Calibration.Why = fmt.Sprintf("does not spin, as it would take the last of limits.processors (%d)", c.Processors)
	}
}

// Procs is what GOMAXPROCS is during the run.
func (c *Config) Procs() int {
	if c.Processors > 0 {
		return c.Processors
	}
	return runtime.NumCPU() + c.Lanes
}

// laneRate is the most messages a second of a producer that has a lane of its own for the sole
// reason that its client may block. A lane of more spins most of the time. It and the client's
// own goroutines then disturb each other more than a wake-up costs (ADR 20).
const laneRate = 20_000

func (c *Config) lanes(cores int) int {
	own := c.producers()
	most := max(1, min(cores/2, own))
	if rate := c.highest(); c.Definition.Capabilities.PublishBlocks && most == own && rate > 0 && rate <= laneRate*float64(own) {
		return own
	}
	return max(1, min(int(math.Ceil(c.highest()/1e6)), most))
}

// highest is HighestRate of the process's own share.
func (c *Config) highest() float64 {
	return HighestRate(c.Plan) * float64(c.producers()) / float64(c.Plan.Producers)
}

// producers returns how many are the process's own.
func (c *Config) producers() int {
	return (&assigned{Worker: c.Worker, of: c.Plan.Producers}).producers()
}

// HighestRate returns the most messages per second that a plan offers at any
// time, those of a burst spread over the time until the next; 0 for a closed
// loop and a trace.
func HighestRate(plan schedule.Spec) float64 {
	var highest float64
	for _, p := range plan.Phases {
		highest = max(highest, p.From.PerSecond(), p.To.PerSecond())
		if p.Every > 0 {
			highest = max(highest, float64(p.Burst)/p.Every.Seconds())
		}
	}
	return highest
}
