package scenario

import (
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// A Scenario is one run, complete and checked: every default is filled in and
// everything in it goes together. It is a value of one goroutine.
type Scenario struct {
	Name       string
	System     System
	Topology   Topology
	Load       Load
	Message    Message
	Consume    Consume
	Mode       engine.Mode
	WarmUp     time.Duration
	Measure    time.Duration // 0 with Messages or a profile
	Messages   uint64        // 0 with Measure or a profile
	Drain      time.Duration
	AfterDrain time.Duration // that consumers listen on
	Repeat     int           // how often the run is done, 1 to 100; each folder of a series holds the scenario with 1
	Objectives []judge.Objective
	Until      bool           // ends once the objectives about percentiles are decided
	Faults     []fault.Fault  // to the servers that weir starts
	Network    Network        // between the clients and these servers
	Watch      []int          // processes of this host that are read as servers of the system; watch_pid
	Price      float64        // of an hour of what serves, in a unit of the user's; 0: not given
	Placement  placement.Spec // over which agents; its zero value: over all
	Fleet      Fleet          // how many agents, and how much of each
	Memory     int64          // bytes, limits.memory
	Failed     float64        // share of the sent messages that may fail or stay unconfirmed, 0 to 1; limits.failed
	Processors int            // that run weir's code at a time, limits.processors; 0: the engine's own choice
	Seed       uint64
	Search     Search // of weir capacity; no part of a run

	of        *result.Result     // of the run in Consume.Of; nil: none is given
	schedule  *schedule.Schedule // of Plan, made once
	sources   map[string]string  // where the value of a path came from
	connected []string           // options that Connect set
}

// A System is what is measured and how it is had.
type System struct {
	Definition driver.Definition
	Config     driver.Config // the options are set on it
	Options    []Option      // those that the scenario gives, sorted by name
	FromURL    []string      // options that the URL in the option address sets besides: user, password …
	Start      Start
	Recipe     *broker.Recipe    // of Definition, with StartProcess
	ForRecipe  map[string]string // settings of Recipe, those given
	Nodes      int
	Guarantee  driver.Guarantee // a minimum; 0: any
}

// An Option is one of the driver's own, as the scenario gives it.
type Option struct {
	Name      string
	Values    []string // one text, or those of a list; nil for a secret and a reference
	Reference string   // the words that name the source, "${env:X}" or a file's path
	File      bool     // Reference is the path of a file
	Secret    bool
}

// Start is how weir has the system.
type Start uint8

// The ways of starting.
const (
	StartNone     Start = iota // it runs already, or lives inside the driver
	StartEmbedded              // weir runs it, in a process of its own
	StartProcess               // weir starts real servers by the driver's recipe
)

// String returns the word that scenarios use.
func (s Start) String() string { return starts[s] }

// A Topology is how many of what there are. Consumers counts per subscription.
type Topology struct {
	Destinations, Partitions, Replication, Producers, Subscriptions, Consumers int
	Names                                                                      []string // existing destinations; nil: the run makes its own
}

// Load is when messages are sent.
type Load struct {
	Closed    bool          // rate: max
	Rate      schedule.Rate // 0 for a closed loop, a profile and a trace
	Arrival   schedule.Arrival
	TraceFile string // of a trace, absolute
	Profile   []schedule.Phase
	Batch     Batch
	InFlight  int  // per producer
	Received  bool // a message is in flight until it is received as well; in_flight_until
	WhenFull  engine.WhenFull
}

// A Batch is the fewest and the most messages that are handed over at once.
type Batch struct{ Min, Max int }

// Message is what is sent.
type Message struct {
	Sizes   []schedule.WeightedSize
	Payload engine.Payload
	// Source is the file, or with SourceDir the folder, that Payload was read
	// from, absolute; "" where it was not.
	Source    string
	SourceDir bool
	Fitted    bool // Sizes are those of the contents, not given
	Keys      schedule.Keys
}

// Consume is how it is received.
type Consume struct {
	Batch      int // most that a consumer takes and acknowledges together; 0: what Settle and Prefetch say
	Settle     driver.Settle
	Prefetch   int           // 0: the driver's own
	Work       time.Duration // processing that each delivery simulates
	Fail       float64       // share of deliveries that consumers refuse, 0 to 1
	DeadLetter int           // refusals of a message after which it is a dead letter; 0: it never is
	Churn      time.Duration // how often one consumer closes and another opens; 0: never
	Pause      engine.Pause  // of all consumers
	From       driver.Position
	Durable    string // name of a durable subscription; "": the run has one of its own
	Of         string // result folder of the run that sent the messages, absolute; "": it is not given
}

// Alone returns the key that needs one process for all of a run; "" where none does.
func (c Consume) Alone() string {
	switch {
	case c.DeadLetter > 0:
		return "consume.dead_letter"
	case c.Of != "":
		return "consume.of"
	}
	return ""
}

// Largest returns the largest size of a message in bytes.
func (m Message) Largest() int {
	n := 0
	for _, s := range m.Sizes {
		n = max(n, s.Bytes)
	}
	return n
}

// ModeName returns the word that scenarios use for m.
func ModeName(m engine.Mode) string { return modes[m] }
