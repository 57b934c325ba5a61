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

// A Scenario is one run, complete and checked: every default is filled in, and the values are
// compatible. It is not safe for concurrent use.
type Scenario struct {
	Name       string
	System     System
	Topology   Topology
	Load       Load
	Message    Message
	Consume    Consume
	Mode       engine.Mode
	WarmUp     time.Duration
	Measure    time.Duration // 0 if Messages or a profile is set
	Messages   uint64        // 0 if Measure or a profile is set
	Drain      time.Duration
	AfterDrain time.Duration // how long consumers keep listening
	Repeat     int           // number of repetitions, 1 to 100; each folder of a series has the scenario with 1
	Objectives []judge.Objective
	Until      bool           // end once the objectives about percentiles are decided
	Faults     []fault.Fault  // on the servers that weir starts
	Network    Network        // between the clients and those servers
	Watch      []int          // pids on this host to meter as servers of the system; watch_pid
	Price      float64        // of an hour of the system, in the user's unit; 0: not given
	Placement  placement.Spec // on which agents; zero value: on all
	Fleet      Fleet          // how many agents, and how many clients each
	Memory     int64          // bytes, limits.memory
	Failed     float64        // share of sent messages that may fail or stay unconfirmed, 0 to 1; limits.failed
	Processors int            // GOMAXPROCS, limits.processors; 0: the engine's choice
	Seed       uint64
	Search     Search // for weir capacity; not part of a run

	of        *result.Result     // of the run in Consume.Of; nil: not given
	schedule  *schedule.Schedule // of Plan, created once
	sources   map[string]string  // origin of each path's value
	connected []string           // options set by Connect
}

// A System is what is measured and how to obtain it.
type System struct {
	Definition driver.Definition
	Config     driver.Config // with the options set
	Options    []Option      // options given by the scenario, sorted by name
	FromURL    []string      // options also set by the URL in the option address: user, password …
	Start      Start
	Recipe     *broker.Recipe    // of Definition, for StartProcess
	ForRecipe  map[string]string // given settings of Recipe
	Nodes      int
	Guarantee  driver.Guarantee // minimum; 0: any
}

// An Option is a driver option as given by the scenario.
type Option struct {
	Name      string
	Values    []string // one text or a list; nil for a secret or a reference
	Reference string   // text that names the source, "${env:X}" or a file's path
	File      bool     // whether Reference is a file's path
	Secret    bool
}

// Start is how weir obtains the system.
type Start uint8

// The ways to obtain it.
const (
	StartNone     Start = iota // already running, or inside the driver
	StartEmbedded              // weir runs it in a separate process
	StartProcess               // weir starts real servers from the driver's recipe
)

// String returns the word used in scenarios.
func (s Start) String() string { return starts[s] }

// A Topology holds the numbers of clients and destinations. Consumers is per subscription.
type Topology struct {
	Destinations, Partitions, Replication, Producers, Subscriptions, Consumers int
	Names                                                                      []string // existing; nil: created by the run
}

// Load describes when messages are sent.
type Load struct {
	Closed    bool          // rate: max
	Rate      schedule.Rate // 0 for a closed loop, a profile or a trace
	Arrival   schedule.Arrival
	TraceFile string // absolute path of a trace
	Profile   []schedule.Phase
	Batch     Batch
	InFlight  int  // per producer
	Received  bool // messages are in flight until received; in_flight_until
	WhenFull  engine.WhenFull
}

// A Batch is the minimum and maximum number of messages handed over at once.
type Batch struct{ Min, Max int }

// Message describes the messages sent.
type Message struct {
	Sizes   []schedule.WeightedSize
	Payload engine.Payload
	// Source is the absolute path of the file, or with SourceDir the folder, that Payload was read from;
	// "" if none.
	Source    string
	SourceDir bool
	Fitted    bool // Sizes are those of the contents, not given
	Keys      schedule.Keys
}

// Consume describes how messages are received.
type Consume struct {
	Batch      int // messages that a consumer takes and acknowledges together; 0: see Settle and Prefetch
	Settle     driver.Settle
	Prefetch   int           // 0: the driver's default
	Work       time.Duration // simulated processing time per delivery
	Fail       float64       // share of deliveries that consumers reject, 0 to 1
	DeadLetter int           // rejections after which a message is a dead letter; 0: never
	Churn      time.Duration // how often one consumer closes and another opens; 0: never
	Pause      engine.Pause  // of all consumers
	From       driver.Position
	Durable    string // name of a durable subscription; "": one for this run
	Of         string // absolute result folder of the run that sent the messages; "": not given
}

// Alone returns the key that requires a single process for the whole run; "" if none does.
func (c Consume) Alone() string {
	switch {
	case c.DeadLetter > 0:
		return "consume.dead_letter"
	case c.Of != "":
		return "consume.of"
	}
	return ""
}

// Largest returns the largest message size in bytes.
func (m Message) Largest() int {
	n := 0
	for _, s := range m.Sizes {
		n = max(n, s.Bytes)
	}
	return n
}
