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

// Mode selects which sides of the system a run uses.
type Mode uint8

// The modes.
const (
	Stream  Mode = iota // producers and consumers
	Produce             // producers only
	Consume             // consumers only: receive rate; ends after IdleLimit without a delivery
	Request             // producers, and consumers that reply: round-trip time
	Backlog             // producers first, then consumers: how fast a backlog drains
)

// String returns the mode's name in scenarios and results.
func (m Mode) String() string {
	return [...]string{Stream: "stream", Produce: "produce", Consume: "consume", Request: "request", Backlog: "backlog"}[m]
}

// WhenFull selects what happens to a message that is due while its producer has InFlight messages
// unconfirmed.
type WhenFull uint8

// The policies.
const (
	Wait WhenFull = iota // it waits in the producer's own backlog; the wait is in its response
	Drop                 // it is counted as dropped, and censored in the response
	Fail                 // the run ends at once
)

// String returns the policy's name in scenarios and results.
func (w WhenFull) String() string { return [...]string{Wait: "wait", Drop: "drop", Fail: "fail"}[w] }

// A Config describes one run, and which part of it this process executes. The caller must have
// validated it.
type Config struct {
	RunID      string // prefix of every name created, [a-z0-9-]
	Run        uint32 // identifies the run in headers
	Definition driver.Definition
	Options    driver.Config
	Plan       schedule.Spec      // no phases: closed loop
	Schedule   *schedule.Schedule // of Plan, if the caller has built it; nil: Execute builds it, which may take seconds (schedule.New)
	Worker     Worker             // what this process carries

	Mode          Mode
	Names         []string // existing destinations: neither created nor removed; nil: the run creates its own
	Partitions    int
	Replicas      int
	Subscriptions int
	Consumers     int              // per subscription
	Guarantee     driver.Guarantee // a minimum; 0: any
	Settle        driver.Settle
	Prefetch      int
	Of            []result.Stream // what run number Run sent to Names, by stream: mode Consume reports what became of it, and this process executes the whole run; nil: no run is named
	From          driver.Position // where the subscriptions begin; requires Names
	Durable       string          // name in the system of the one subscription that outlives the run; requires Names; "": none
	Work          time.Duration   // simulated processing time of a consumer per delivery before it is settled
	Refuse        float64         // share of deliveries that consumers nack, 0 to 1, in whole client calls; mode Stream
	DeadLetter    int             // refusals of a message after which the system moves it to the dead letters; 0: never; requires Refuse, one subscription and the run's own destinations
	Churn         time.Duration   // how often a consumer closes and another replaces it, in the measured window; 0: never; mode Stream, and this process executes the whole run
	Pause         Pause           // of all consumers; mode Stream with a schedule

	// InFlight is per producer, and at least the largest batch. A closed loop whose limit is
	// exactly one batch starts a batch when the previous one is complete.
	InFlight int
	// Received keeps a message in flight until it is confirmed and its subscription has received
	// it. InFlight is then at most MostAwaited, and this process executes the whole run.
	Received bool
	WhenFull WhenFull
	Payload  Payload

	WarmUp   time.Duration // closed loop only: otherwise the plan has it
	Measure  time.Duration // closed loop only; 0 with Messages
	Messages uint64        // closed loop only: started after the warm-up
	Drain    time.Duration // at most
	// AfterDrain is how long consumers keep listening after the drain, for late and duplicate
	// messages. Nothing of it is measured.
	AfterDrain time.Duration

	// Processors is GOMAXPROCS during the run; 0: the cores plus one per pacer.
	Processors  int
	Pacers      int              // pacing threads; 0: as chosen by Pace
	Calibration pace.Calibration // of this host, for that many pacers
	FIFO        bool             // Pace gives pacers real-time priority if permitted; see pace.CalibrateFIFO
	Clock       *pace.Clock
	Wire        bool // record kernel instants where the host allows it

	// OnStart is called once with the run's epoch, some milliseconds before it, and before
	// OnInterval.
	OnStart func(epoch pace.Epoch)
	// OnOpen is called once, when the system is open and its settings have been read, by the worker
	// that declares destinations. Its argument reads the driver's facts again while the run lasts.
	// nil: not wanted.
	OnOpen func(facts func(context.Context) (driver.Facts, error))
	// OnInterval is called about once in Every with what happened since the last call, from one
	// goroutine; it must not keep iv.
	OnInterval func(iv *measure.Interval)
	Every      time.Duration // divides a second; 0: a second
	// OnLedger is called about once a second (while a run drains, every LedgerEvery), from one
	// goroutine, with the contents of the ledger at the instant at; it must not keep the part. nil:
	// never.
	OnLedger func(at int64, p *ledger.Part)
	// Correct returns what to add to an instant at which a consumer here yielded a message of the
	// stream, to make it comparable with instants of the process that sent it. It is called for
	// every first delivery, from one goroutine, and must not block. nil: no correction.
	Correct func(stream uint32, at int64) int64
	// OnEvent is called with whatever a reader of the result should know, from any goroutine.
	OnEvent func(Event)
	Log     *slog.Logger
}

// LedgerEvery is the approximate interval of OnLedger while a run drains.
const LedgerEvery = 250 * time.Millisecond

// IdleLimit is how long a run that only consumes waits for the next delivery.
const IdleLimit = 5 * time.Second

// An Event is something that happened during a run.
type Event struct {
	At   int64  // ns since the epoch
	Kind string // "fault", "gc", "hiccup", "phase", "backlog-full", "drain", ...
	Text string
}

// Limits of the default in_flight: all slots of a run take at most SlotBytes, and a producer has at
// most MaxInFlight.
const (
	SlotBytes   = 256 << 20
	MaxInFlight = 10_000
)

// MostAwaited is the largest InFlight of a run with Received: each delivery searches that many
// slots.
const MostAwaited = 100

// InFlight returns the in-flight limit of each producer: want, or if want is 0, as many as fit in
// SlotBytes and in the system's intake per destination, and one batch in a closed loop with
// batches. It rejects a want that takes more than limit bytes over all producers, with the product
// in the error.
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

// Pace sets Pacers to the default for this process, and Calibration to match. There is one pacer per
// million messages a second of the highest rate. If the client may block, there is one per
// producer, up to pacerRate, since a goroutine behind a pacer wakes late. There are never more
// pacers than half of the cores. Pace takes as long as pace.Calibrate, 0.3 s; with FIFO at most
// twice that.
func (c *Config) Pace(cores int) {
	if c.Processors > 0 {
		cores = min(cores, c.Processors)
	}
	c.Pacers = c.pacers(cores)
	waits := c.highest() / float64(c.Pacers)
	if c.FIFO {
		c.Calibration = pace.CalibrateFIFO(c.Pacers, waits)
	} else {
		c.Calibration = pace.Calibrate(c.Pacers).At(waits)
	}
	if c.Calibration.Spin && cores <= c.Pacers {
		c.Calibration.Spin = false
		c.Calibration.Why = fmt.Sprintf("does not spin, as it would take the last of limits.processors (%d)", c.Processors)
	}
}

// Procs returns GOMAXPROCS during the run.
func (c *Config) Procs() int {
	if c.Processors > 0 {
		return c.Processors
	}
	return runtime.NumCPU() + c.Pacers
}

// pacerRate is the highest rate, in messages a second, at which a producer gets its own pacer merely
// because its client may block. At higher rates the pacer spins most of the time and disturbs the
// client's own goroutines by more than a wake-up costs (ADR 20).
const pacerRate = 20_000

func (c *Config) pacers(cores int) int {
	own := c.producers()
	most := max(1, min(cores/2, own))
	if rate := c.highest(); c.Definition.Capabilities.PublishBlocks && most == own && rate > 0 && rate <= pacerRate*float64(own) {
		return own
	}
	return max(1, min(int(math.Ceil(c.highest()/1e6)), most))
}

// highest is HighestRate of what this process carries.
func (c *Config) highest() float64 {
	return HighestRate(c.Plan) * float64(c.producers()) / float64(c.Plan.Producers)
}

// producers returns how many producers this process carries.
func (c *Config) producers() int {
	return (&assigned{Worker: c.Worker, of: c.Plan.Producers}).producers()
}

// HighestRate returns the highest rate of a plan in messages per second, with bursts spread over
// the time until the next; 0 for a closed loop and for a trace.
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
