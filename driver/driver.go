// Package driver defines the contract between weir and a messaging system.
//
// A driver only moves bytes. Timing, headers, pacing, counting and verification are done once,
// outside, in the same way for every system. A driver therefore never reads a clock to measure, and
// knows nothing of histograms and file formats.
//
// The life of a driver in a run: New returns a Config with the defaults, the options of the
// scenario are set on it (SetOptions), Validate checks it, Open connects. Then Conn.Declare creates
// the destinations, Conn.Consumer opens the consumers, which call Sink.Ready once each,
// Conn.Producer opens the producers, and only then is the first message published.
package driver

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// A Definition is what a driver package exports: everything needed to list, document, validate and
// open the driver without connecting to anything. It is a value without side effects; drivers/all
// collects them.
type Definition struct {
	Name         string        // as in scenarios: lower case, unique, "jetstream"
	Title        string        // as its vendor writes it: "NATS JetStream"
	Summary      string        // one sentence, shown by lists
	Client       string        // module path of the measured client library; empty if there is none
	Capabilities Capabilities  // what the conformance suite tests the driver for
	New          func() Config // a pointer to a struct holding the defaults

	Page // documentation and recipe

	// Serve runs the system inside the calling process until ctx ends; nil if weir does not embed
	// it. It is called in a process of its own, supervised, never in the measuring process.
	Serve func(ctx context.Context, s Service) error
	// Nodes rejects, with ErrUnsupported, a number of nodes that Serve does not support; nil: any
	// number.
	Nodes func(n int) error
}

// A Service configures Definition.Serve.
type Service struct {
	Dir   string                 // an existing empty folder; everything the system writes goes there
	Nodes int                    // 1 or more
	Port  int                    // of the first node; 0 picks a free one
	Bind  string                 // the IPv4 address to listen on and to be reached at; "": 127.0.0.1
	Ready func(address []string) // called once, when clients are answered; address as the option of that name
	Log   *slog.Logger

	// Options are the driver's options with names that begin with ServerPrefix, keyed by the rest
	// of the name: settings of the embedded server itself. An unknown name is an *OptionError.
	Options map[string]string
}

// ServerPrefix begins the names of a driver's options that configure the server it embeds. They
// have no effect if the server is not embedded.
const ServerPrefix = "server."

// A Config is a driver's own typed settings: a pointer to a struct. Its fields carry the
// tags documented at SetOptions.
type Config interface {
	// Validate reports every error in the settings, joined. It does no I/O.
	Validate() error
	// Open connects; callers use the function Open, which guards the Conn. ctx bounds only the
	// connecting, not the Conn's life. An unreachable system is ErrUnreachable, rejected
	// credentials are ErrAuth.
	Open(ctx context.Context, run Run) (Conn, error)
}

// A Bounded is a Config of a system that holds a limited number of messages until somebody
// receives: beyond it nothing is confirmed, however long one waits.
type Bounded interface {
	Config
	// Holds returns how many messages a subscription of one destination can hold, and the option
	// that sets it.
	Holds() (messages int, option string)
}

// An Intake bounds what one destination accepts: messages received and not confirmed. 0: no bound.
type Intake struct {
	Messages int
	Bytes    int64
	Besides  int // maximum overhead per message besides its payload, in bytes
}

// A Refusing is a Config of a system that rejects messages beyond an Intake. The default in-flight
// limit stays within it.
type Refusing interface {
	Config
	// Intake returns the system's default, which an administrator may have changed.
	Intake() Intake
}

// A Labelled is a Config of a driver that does not publish solely through its client library's own
// publisher, or that can be configured not to.
type Labelled interface {
	Config
	// ClientPath returns what carries messages to the system with these settings, in a few words
	// that follow the name of the client library.
	ClientPath() string
}

// A Narrowed is a Config with settings under which the driver supports less than its Definition
// declares.
type Narrowed interface {
	Config
	// Narrow returns the part of c that the driver supports with these settings.
	Narrow(c Capabilities) Capabilities
}

// A Run describes the run to the driver.
type Run struct {
	ID  string       // unique, [a-z0-9-]; begins every name that the driver creates, after "weir" where the system's names allow it
	Log *slog.Logger // never used per message

	// Existing says that the destinations belong to the user and outlive the run: their names are
	// the system's, Declare and Delete are not called, and whatever the driver creates beside them
	// (a durable subscription) is removed by Conn.Close, except for what ConsumerSpec.Durable
	// keeps. A producer or a consumer of a destination that the system does not have is
	// ErrUnsupported.
	Existing bool
	// Event, if not nil, receives what a reader of the result should know and is not a fault: kind
	// Reconnect, "reopen", "rebalance". Any goroutine may call it.
	Event func(kind, text string)
	// Back, if not nil, receives the subscription of a consumer that has reconnected: it gets the
	// messages from now on. Any goroutine may call it. Use For.
	Back func(subscription string)
	// Block, if not nil, is called when the system answers a client, who, such as "producer 0", but
	// accepts none of its messages for now; why is the system's own explanation. An empty why says
	// that it accepts them again, or that the connection has ended. Use Blocked and Unblocked. Any
	// goroutine may call it.
	Block func(who, why string)

	subscription string // of the consumer that this Run is for; see For
}

// Reconnect is the kind of the event that a lost connection is back. A consumer that continues
// after a driver.ErrDisconnected reports it by the Run that For returns: until then it counts as
// disconnected.
const Reconnect = "reconnect"

// For returns the Run for a consumer's connections: their Reconnect is that of the consumer.
func (r Run) For(spec *ConsumerSpec) Run {
	r.subscription = spec.Subscription
	return r
}

// Blocked reports that the system answers who but accepts none of its messages for now.
func (r Run) Blocked(who, why string) {
	if r.Block != nil {
		r.Block(who, why)
	}
}

// Unblocked reports that Blocked no longer holds.
func (r Run) Unblocked(who string) { r.Blocked(who, "") }

// Tell emits an event, if there is a receiver; see Event.
func (r Run) Tell(kind, text string) {
	if r.Event != nil {
		r.Event(kind, text)
	}
	if kind == Reconnect && r.subscription != "" && r.Back != nil {
		r.Back(r.subscription)
	}
}

// Logger returns Log, or one that discards.
func (r Run) Logger() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}

// A Conn is a driver's connection to one system for one run. Its methods may be called
// concurrently. Its producers and consumers each have a client connection of their own wherever the
// client library allows it.
type Conn interface {
	// Declare creates the destinations, and is idempotent. Delete removes what it created.
	Declare(ctx context.Context, ds ...Destination) error
	// Delete removes the destinations with everything in them, subscriptions
	// included, and is idempotent: what does not exist is not an error. Consumers may still be open.
	// If the system then keeps a name, Close removes it.
	Delete(ctx context.Context, ds ...Destination) error
	// Producer opens one producer. Its completions go to done.
	Producer(ctx context.Context, spec ProducerSpec, done Completer) (Producer, error)
	// Consumer opens one consumer; it receives nothing before Consumer.Run.
	Consumer(ctx context.Context, spec ConsumerSpec) (Consumer, error)
	// Facts reads from the running system its current identity and settings, and what a
	// confirmation of the declared destinations means. It fails with ErrUnreachable if the system
	// does not answer.
	Facts(ctx context.Context) (Facts, error)
	// Close ends the connection; producers and consumers must be closed before.
	Close(ctx context.Context) error
}

// A Producer hands messages to the system's client library. One goroutine at a
// time calls it.
type Producer interface {
	// Publish starts sending m and takes ownership of it until the Completer given at creation is
	// called with it, which happens exactly once, on any goroutine, possibly before Publish
	// returns. All failures, including immediate ones, are reported that way. A driver that has not
	// declared Capabilities.PublishBlocks returns without waiting for the network, a lock held over
	// it, or a full buffer. One that has may block for as long as its client accepts no more work,
	// but not after ctx ends: then m completes with ctx's error.
	Publish(ctx context.Context, m *Message)
	// Flush returns when every message published before it has completed, or
	// with ctx's error. It is called by the goroutine that publishes.
	Flush(ctx context.Context) error
	// Close completes what is outstanding, with ErrClosed if it must, before it returns, and is
	// idempotent. A message completes with ErrAbandoned if the client library may still read its
	// bytes.
	Close(ctx context.Context) error
}

// A BatchProducer has a native call for several messages. A driver with
// Capabilities.Batch set returns producers that are BatchProducers.
type BatchProducer interface {
	Producer
	// PublishBatch is Publish for all of ms, which share one destination, in
	// order. ms is the caller's again on return, the messages are not.
	PublishBatch(ctx context.Context, ms []*Message)
}

// A Requester is a Conn of a system with native request-reply. A driver with Capabilities.Requests
// set opens Conns that are Requesters. For other systems the caller sends the replies itself, as
// messages.
type Requester interface {
	// Requester opens a producer of requests: Publish sends m as a request, which completes with
	// nil when its reply came, with the reply's bytes in m.Reply, valid only during Complete. A
	// request without an answer, immediately or within the driver's own time limit (an option),
	// fails.
	Requester(ctx context.Context, spec ProducerSpec, done Completer) (Producer, error)
	// Responder opens a consumer that answers each request with the request's own bytes if Deliver
	// accepts it, and does not answer otherwise. Everything else is as in Consumer.
	Responder(ctx context.Context, spec ConsumerSpec) (Consumer, error)
}

// A Completer is told the fate of messages.
type Completer interface {
	// Complete reports that the system confirmed m (err is nil; what that means is Facts.Guarantee)
	// or that it did not. It does not block and may be called on any goroutine. After the call the
	// driver does not touch m. Nothing is ever published from inside Complete.
	Complete(m *Message, err error)
}

// A Backlogger is a Conn that reports the backlog of a subscription. Every Conn of a driver that
// declares Capabilities.Consume is one.
type Backlogger interface {
	// Backlog returns how many messages, of those that completed before the call, the
	// subscription's consumers have not accepted yet: what the system holds for them, what it has
	// sent and may send again, and what their client libraries hold. If the number is unknowable,
	// any number above 0 means that there are some. What the system says is gone, such as a stream
	// in memory after a restart, counts as empty.
	//
	// Each answer comes from the system, and is made for this call. A system that keeps nothing for
	// its subscribers has no number to give: there Backlog makes a round trip on the connection of
	// each producer and then of each of the subscription's consumers, behind everything sent on
	// them before. It fails with ErrUnreachable if a part of the system that it needs does not
	// answer before ctx ends. It returns when ctx ends.
	Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error)
}

// A Message is pooled by the caller and is its own correlation token.
type Message struct {
	Destination string        // a name given to Declare
	Key         []byte        // nil: none
	Payload     []byte        // with its header already written; the driver sends these bytes unchanged
	Token       uint64        // the caller's; the driver neither reads nor writes it
	Slot        any           // the driver's scratch, kept as long as the Message is pooled
	Took        time.Duration // for a message sent through another process: how long that process had it until its client's confirmation. Written before a Complete with nil
	Reply       []byte        // of a request that completes with nil: its reply; the driver's again when Complete returns
}

// A Consumer receives until stopped. Every Run has one subscription.
type Consumer interface {
	// Run delivers to sink until ctx ends, then settles what Deliver has accepted and returns nil;
	// or until the subscription is lost for good, then returns why. It is never silent: an error it
	// recovers from goes to Sink.Fault. It is called once.
	Run(ctx context.Context, sink Sink) error
	// Close frees the consumer, after Run has returned, and is idempotent.
	Close(ctx context.Context) error
}

// A Sink takes one consumer's deliveries. A driver calls it from one goroutine at a time, except
// for Settled and Fault, which any goroutine may call.
type Sink interface {
	// Ready is called once, when every message that the system accepts from now
	// on will reach this subscription: subscribed and flushed, partitions
	// assigned and positions resolved, channel created.
	Ready()
	// Deliver is called as soon as the client library yields messages, with everything that one
	// client call yielded. ds and all it points to are the driver's again on return, except what
	// the driver passes to Settled. A nil error settles every delivery in ds; any other nacks them.
	// Deliver may block: that is a slow consumer.
	Deliver(ds []Delivery) error
	// Settled reports that the system confirmed (or with err rejected) the settlement of ds, as
	// given to Deliver with Token as Deliver left it. Only drivers with
	// Capabilities.SettleConfirmed call it.
	Settled(ds []Delivery, err error)
	// Fault reports an error that the consumer survived: a lost connection, a message that could
	// not be settled, an error of the client library.
	Fault(err error)
}

// A Delivery is one received message.
type Delivery struct {
	Key         []byte
	Payload     []byte
	Partition   int32  // -1 if the system has none
	Source      int32  // index in ConsumerSpec.Destinations of the destination that yielded it; -1: none of them. From the system, not from the message
	Redelivered bool   // the system itself flagged it as delivered before
	Token       uint64 // the sink's, written in Deliver; kept by the driver for Settled
}

// A Destination is what producers send to: a queue, topic, subject or stream.
type Destination struct {
	Name       string // unique to the run
	Partitions int    // 1 or more
	Replicas   int    // 1 or more

	// Refusals is how often consumers may nack a message: at the last time the system moves it to
	// the destination DeadLetters(Name), which was declared before. 0: any number. Only set with
	// Capabilities.DeadLetters.
	Refusals int
}

// DeadLetters returns the name of the destination for messages that consumers of another have
// nacked Destination.Refusals times.
func DeadLetters(destination string) string { return destination + "-dead" }

// A ProducerSpec describes one producer.
type ProducerSpec struct {
	Index        int      // of the run's producers
	Destinations []string // that it will send to
	InFlight     int      // maximum number of messages published and not completed
	Largest      int      // bytes of the largest message; 0: unknown. More than the system accepts is ErrTooLarge
}

// Name returns what events, logs and connections call the producer: "producer 3".
func (s ProducerSpec) Name() string { return fmt.Sprintf("producer %d", s.Index) }

// room is a producer's queue size if the scenario sets no in-flight limit.
const room = 10_000

// Room returns the queue size of a producer that queues messages: InFlight, or 10,000 if that is 0.
func (s ProducerSpec) Room() int {
	if s.InFlight > 0 {
		return s.InFlight
	}
	return room
}

// A ConsumerSpec describes one consumer of one subscription.
type ConsumerSpec struct {
	Index        int      // of the subscription's consumers
	Subscription string   // unique to the run; its consumers share the messages
	Destinations []string // that it receives from
	Prefetch     int      // maximum number of messages delivered and not settled; 0: the driver's default
	Settle       Settle

	// From is where the subscription begins, if it has not begun before. Only what
	// Capabilities.Replays lists is requested; the zero value leaves it to the driver, which then
	// keeps what Sink.Ready says.
	From Position
	// Durable says that Subscription is the system's own name for it, as given by the user: it is
	// created if it does not exist, continues if it does, and stays when the Conn closes. Only set
	// with Run.Existing, and if Capabilities.Resumes is set. A name that the system uses for
	// something else is ErrUnsupported.
	Durable bool
}

// Name returns what events, logs and connections call the consumer: "consumer orders 3".
func (s ConsumerSpec) Name() string {
	return fmt.Sprintf("consumer %s %d", s.Subscription, s.Index)
}

// A Position is a place in the messages of a destination.
type Position struct {
	At     Start
	Offset string    // with AtOffset: the first message, in the system's own notation, the same in each partition
	Time   time.Time // with AtTime: the first message is the first that the system accepted at or after it
}

// A Start is a kind of Position.
type Start uint8

// The kinds of position.
const (
	AtDefault  Start = iota // the driver's
	AtEarliest              // the first message that is still there
	AtLatest                // after the last message that was there when the consumer was opened
	AtOffset                // Position.Offset
	AtTime                  // Position.Time
)

// String returns the name in scenarios; "" for AtDefault.
func (s Start) String() string { return word(starts, int(s)) }

// Settle selects how a consumer acknowledges.
type Settle uint8

// The ways of settling.
const (
	SettleEach  Settle = iota // one acknowledgement per message
	SettleBatch               // one acknowledgement for everything a client call yielded
	SettleAuto                // the client library or the system acknowledges on delivery
	SettleNone                // the system has no acknowledgements
)

// String returns the name in scenarios.
func (s Settle) String() string { return word(settles, int(s)) }
