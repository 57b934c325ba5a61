package driver

import (
	"fmt"
	"slices"
	"strings"
)

// Facts is what a running system says about itself.
type Facts struct {
	Name     string   // of the server: "nats-server"; the library's for a brokerless system
	Version  string   // as the server reports it
	Nodes    int      // servers that form the system; 0 where there is no server
	Confirms Confirms // what a confirmation means, from the settings in force
	// Leaders are host:port, as clients reach them, of the servers that lead the declared
	// destinations: one for each partition. nil without Capabilities.Leaders, and while none
	// leads.
	Leaders  []string
	Settings map[string]string // those that decide durability and delivery, by the vendor's names

	// Discards say by which settings in force the system drops messages that it confirmed and that
	// nobody has received, with the vendor's names and values: "messages expire after 300 ms
	// (policy ttl: message-ttl 300)". Empty: it has none, or does not say.
	Discards []string

	// Discarded are running totals of messages that were dropped. What a run adds to them may
	// explain what it lost. nil: nobody counts.
	Discarded []Discarded
}

// A Discarded is a running total of messages that were dropped.
type Discarded struct {
	Counter  string // the vendor's name for it: "$SYS/broker/publish/messages/dropped"
	Messages uint64
	Client   bool // the client libraries of this Conn count it, and those of other Conns add to it; no: the system, for all that it does
}

// Confirms is what a nil error given to Complete means.
type Confirms struct {
	Guarantee Guarantee
	Copies    Copies
	Stable    Stable
}

// Weaker returns what both promise: of each field the lesser. The zero Confirms leaves the
// other as it is, so that one can begin with it.
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

// A Guarantee is how safe a message is once it was confirmed. A level holds only
// if all of it holds; higher is safer.
type Guarantee uint8

// The guarantees, weakest first.
const (
	Buffered   Guarantee = iota + 1 // taken by the client library
	Written                         // handed to the operating system
	Received                        // in the memory of one node
	Replicated                      // in the memory of a quorum
	Persisted                       // on stable storage of a quorum, or of the only node
)

// String returns the word that scenarios and results use; "" for the zero value.
func (g Guarantee) String() string { return word(guarantees, int(g)) }

// ParseGuarantee is the inverse of String.
func ParseGuarantee(s string) (Guarantee, error) {
	i, err := parse("guarantee", guarantees, s)
	return Guarantee(i), err
}

// Copies is how many nodes hold a message when it is confirmed.
type Copies uint8

// The numbers of copies.
const (
	CopiesOne Copies = iota
	CopiesQuorum
	CopiesAll
)

// String returns the word that results use.
func (c Copies) String() string { return word(copies, int(c)) }

// Stable is where each copy is when a message is confirmed.
type Stable uint8

// The kinds of storage.
const (
	StableNone  Stable = iota // memory of a process
	StableOS                  // handed to the operating system, survives the process
	StableFsync               // synced to the device, survives the machine
)

// String returns the word that results use.
func (s Stable) String() string { return word(stables, int(s)) }

// Capabilities is what a driver declares. The conformance suite tests what is
// declared; what is not declared is refused before a run begins.
type Capabilities struct {
	Consume         bool // has a consumer side
	Partitions      bool // destinations may have more than one partition
	Replicas        bool // destinations may have more than one replica
	Keys            bool // messages carry keys
	Batch           bool // producers are BatchProducers
	Subscriptions   bool // several subscriptions each get every message
	Competing       bool // several consumers share one subscription
	Nack            bool // an error from Deliver makes the system deliver again
	DeadLetters     bool // Destination.Refusals is kept to
	SettleConfirmed bool // Sink.Settled is called
	Requests        bool // Conns are Requesters
	Leaders         bool // Facts.Leaders is told
	Retains         bool // what is sent between the opening of a consumer and its Run is kept for its subscription, as far as there is room
	PublishBlocks   bool // Publish may wait for the network, a lock held over it, or room
	InProcess       bool // producers and consumers must be in one process

	Resumes bool    // a subscription without consumers continues later at its earliest message that is not settled; ConsumerSpec.Durable
	Replays []Start // the positions that a ConsumerSpec.From may have; none: it must be zero

	Settle     []Settle    // the ways of settling it knows; the first is the default
	Guarantees []Guarantee // those that some setting gives
	Delivery   Promise
	Ordering   Ordering
	MaxPayload int // bytes; 0: no limit below 64 MiB
}

// With returns what the driver declares with some settings.
func (c Capabilities) With(cfg Config) Capabilities {
	if n, ok := cfg.(Narrowed); ok {
		c = n.Narrow(c)
	}
	return c
}

// A Promise is what the system promises about each confirmed message.
type Promise uint8

// The delivery promises.
const (
	AtMostOnce Promise = iota
	AtLeastOnce
	ExactlyOnce
)

// String returns the word that documents use.
func (d Promise) String() string { return word(deliveries, int(d)) }

// An Ordering is the scope in which a consumer sees messages as they were sent.
type Ordering uint8

// The scopes of order, narrowest first.
const (
	Unordered Ordering = iota
	PerKey
	PerPartition
	PerDestination
)

// String returns the word that documents use.
func (o Ordering) String() string { return word(orderings, int(o)) }

// Word tables: index is the value, "" is not a word.
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

func parse(what string, words []string, s string) (int, error) {
	if i := slices.Index(words, s); i >= 0 && s != "" {
		return i, nil
	}
	return 0, fmt.Errorf("unknown %s %q (%s)", what, s, strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", "))
}
