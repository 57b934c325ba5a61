package driver

import (
	"fmt"
	"slices"
	"strings"
)

// Facts is what a running system says about itself.
type Facts struct {
	Name     string   // of the server: "nats-server"; of the library for a brokerless system
	Version  string   // as the server reports it
	Nodes    int      // servers that form the system; 0 if there are none
	Confirms Confirms // what a confirmation means, from the settings in force
	// Leaders are the addresses (host:port, as clients reach them) of the servers that lead the
	// declared destinations: one per partition. nil without Capabilities.Leaders, and while there
	// is no leader.
	Leaders  []string
	Settings map[string]string // those that decide durability and delivery, by the vendor's names

	// Discards lists the active settings by which the system drops messages that it confirmed and
	// nobody has received, with the vendor's names and values: "messages expire after 300 ms
	// (policy ttl: message-ttl 300)". Empty: none, or unknown.
	Discards []string

	// Discarded are running totals of dropped messages. What a run adds to them may explain its
	// losses. nil: not counted.
	Discarded []Discarded
}

// A Discarded is a running total of dropped messages.
type Discarded struct {
	Counter  string // the vendor's name for it: "$SYS/broker/publish/messages/dropped"
	Messages uint64
	Client   bool // counted by the client libraries of this Conn, and others add to it; false: by the system, over everything it does
}

// Confirms is what a nil error given to Complete means.
type Confirms struct {
	Guarantee Guarantee
	Copies    Copies
	Stable    Stable
}

// Weaker returns the weaker of both, field by field. The zero Confirms leaves the other unchanged,
// so that one can start with it.
func (c Confirms) Weaker(other Confirms) Confirms {
	if c == (Confirms{}) {
		return other
	}
	w := Confirms{min(c.Guarantee, other.Guarantee), min(c.Copies, other.Copies), min(c.Stable, other.Stable)}
	if w.Guarantee == Replicated && w.Copies == CopiesOne {
		w.Guarantee = Received // one is on the disk of its only node, the other in the memory of a quorum
	}
	return w
}

// A Guarantee is how safe a message is once it was confirmed. A level holds only if all of it
// holds; higher is safer.
type Guarantee uint8

// The guarantees, weakest first.
const (
	Buffered   Guarantee = iota + 1 // accepted by the client library
	Written                         // handed to the operating system
	Received                        // in the memory of one node
	Replicated                      // in the memory of a quorum
	Persisted                       // on stable storage of a quorum, or of the only node
)

// String returns the name in scenarios and results; "" for the zero value.
func (g Guarantee) String() string { return word(guarantees, int(g)) }

// ParseGuarantee is the inverse of String.
func ParseGuarantee(s string) (Guarantee, error) {
	if i := slices.Index(guarantees, s); i >= 0 && s != "" {
		return Guarantee(i), nil
	}
	return 0, fmt.Errorf("unknown guarantee %q (%s)", s, strings.Join(guarantees[1:], ", "))
}

// Copies is how many nodes hold a message when it is confirmed.
type Copies uint8

// The numbers of copies.
const (
	CopiesOne Copies = iota
	CopiesQuorum
	CopiesAll
)

// String returns the name in results.
func (c Copies) String() string { return word(copies, int(c)) }

// Stable is where each copy is when a message is confirmed.
type Stable uint8

// The kinds of storage.
const (
	StableNone  Stable = iota // memory of a process
	StableOS                  // handed to the operating system, survives the process
	StableFsync               // synced to the device, survives the machine
)

// String returns the name in results.
func (s Stable) String() string { return word(stables, int(s)) }

// Capabilities is what a driver supports. The conformance suite tests what is declared; what is not
// declared is rejected before a run begins.
type Capabilities struct {
	Consume         bool // has a consumer side
	Partitions      bool // destinations may have more than one partition
	Replicas        bool // destinations may have more than one replica
	Keys            bool // messages carry keys
	Batch           bool // producers are BatchProducers
	Subscriptions   bool // several subscriptions each get every message
	Competing       bool // several consumers share one subscription
	Nack            bool // an error from Deliver makes the system redeliver
	DeadLetters     bool // Destination.Refusals is honoured
	SettleConfirmed bool // Sink.Settled is called
	Requests        bool // Conns are Requesters
	Leaders         bool // Facts.Leaders is set
	Retains         bool // what is sent between the opening of a consumer and its Run is kept for its subscription, as space allows
	PublishBlocks   bool // Publish may wait for the network, a lock held over it, or space
	InProcess       bool // producers and consumers must be in one process

	Resumes bool    // a subscription without consumers later continues at its earliest unsettled message; ConsumerSpec.Durable
	Replays []Start // the positions that a ConsumerSpec.From may have; none: it must be zero

	Settle     []Settle    // supported ways of settling; the first is the default
	Guarantees []Guarantee // those that some setting provides
	Delivery   Promise
	Ordering   Ordering
	MaxPayload int // bytes; 0: no limit below 64 MiB
}

// With returns what the driver declares with the settings of cfg.
func (c Capabilities) With(cfg Config) Capabilities {
	if n, ok := cfg.(Narrowed); ok {
		c = n.Narrow(c)
	}
	return c
}

// A Promise is the system's delivery semantics for each confirmed message.
type Promise uint8

// The delivery semantics.
const (
	AtMostOnce Promise = iota
	AtLeastOnce
	ExactlyOnce
)

// String returns the name in documents.
func (d Promise) String() string { return word(deliveries, int(d)) }

// An Ordering is the scope in which a consumer sees messages in the order sent.
type Ordering uint8

// The scopes of order, narrowest first.
const (
	Unordered Ordering = iota
	PerKey
	PerPartition
	PerDestination
)

// String returns the name in documents.
func (o Ordering) String() string { return word(orderings, int(o)) }

// Name tables: index is the value, "" is not a name.
var (
	settles    = []string{"each", "batch", "auto", "none"}
	guarantees = []string{"", "buffered", "written", "received", "replicated", "persisted"}
	copies     = []string{"1", "quorum", "all"}
	starts     = []string{"", "earliest", "latest", "offset", "time"}
	stables    = []string{"none", "os", "fsync"}
	deliveries = []string{"at-most-once", "at-least-once", "exactly-once"}
	orderings  = []string{"none", "per key", "per partition", "per destination"}
)

func word(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return fmt.Sprintf("invalid(%d)", i)
	}
	return words[i]
}
