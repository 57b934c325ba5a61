// Package driver is the contract between weir and one messaging system.
//
// A driver moves bytes. It never times, stamps, paces, counts or verifies:
// that is done once, outside, the same way for every system. It therefore
// never reads a clock to measure with, knows no histogram and no file format.
//
// The life of a driver in a run: New gives a Config holding the defaults, the options of
// the scenario are set on it (SetOptions), Validate checks it, Open connects. Then
// Conn.Declare makes the destinations, Conn.Consumer opens the consumers, which call
// Sink.Ready once each, Conn.Producer opens the producers, and only then is the first
// message published.
package driver

import (
	"context"
	"log/slog"
	"time"
)

// A Definition is what a driver package exports: all that is needed to list,
// document, validate and open the driver without connecting to anything. It is
// a value without side effects; drivers/all collects them.
type Definition struct {
	Name         string        // as in scenarios: lower case, unique, "jetstream"
	Title        string        // as its makers write it: "NATS JetStream"
	Summary      string        // one sentence, shown by lists
	Client       string        // module path of the client library measured; empty where there is none
	Capabilities Capabilities  // what the conformance suite holds the driver to
	New          func() Config // a pointer to a struct holding the defaults

	Page // what it says to a reader

	// Serve runs the system inside the calling process until ctx ends; nil
	// where weir does not embed it. It is called in a process of its own, under
	// the guard, never in the measuring one.
	Serve func(ctx context.Context, s Service) error
	// Nodes refuses, with ErrUnsupported, a number of nodes that Serve cannot make a
	// system from; nil: it takes any.
	Nodes func(n int) error

	// Recipe says how real servers of the system are had and started, in the YAML of
	// docs/formats/recipe.md; nil where there is none yet. Where it holds several
	// documents the first is the one meant if none is named. Drivers that share a
	// recipe have the same of its name.
	Recipe []byte
}

// A Service tells Definition.Serve how to run an embedded system.
type Service struct {
	Dir   string                 // an existing empty folder; everything the system writes goes there
	Nodes int                    // 1 or more
	Port  int                    // of the first node; 0 picks a free one
	Bind  string                 // the IPv4 address to listen at, and to be reached at; "": 127.0.0.1
	Ready func(address []string) // called once, when clients are answered; address as the option of that name
	Log   *slog.Logger

	// Options are the driver's options with names that begin with ServerPrefix, by the
	// rest of the name: settings of the embedded server itself. An unknown name is an
	// *OptionError.
	Options map[string]string
}

// ServerPrefix begins the names of those options of a driver that set up the
// server it embeds. They mean nothing where the server is not embedded.
const ServerPrefix = "server."

// A Config is a driver's own typed settings: a pointer to a struct. Its fields carry the
// tags documented at SetOptions.
type Config interface {
	// Validate reports every fault in the settings, joined. It does no I/O.
	Validate() error
	// Open connects; callers use the function Open, which guards the Conn. ctx
	// bounds the connecting only, not the Conn's life. An
	// unreachable system is ErrUnreachable, refused credentials ErrAuth.
	Open(ctx context.Context, run Run) (Conn, error)
}

// A Bounded is a Config of a system that has room for so many messages and no more
// until somebody receives: then nothing is confirmed, whatever the time given.
type Bounded interface {
	Config
	// Holds returns how many messages a subscription of one destination has room
	// for, and the option that says so.
	Holds() (messages int, option string)
}

// An Intake bounds what one destination takes in: messages that have come and are not
// confirmed. 0: no bound.
type Intake struct {
	Messages int
	Bytes    int64
	Besides  int // bytes that count for each message besides its payload, at most
}

// A Refusing is a Config of a system that refuses messages beyond an Intake. What is in
// flight by default stays within it.
type Refusing interface {
	Config
	// Intake returns the system's, as it is unless its administrator has set another.
	Intake() Intake
}

// A Labelled is a Config of a driver that does not publish by its client library's
// own publisher alone, or that can be told not to.
type Labelled interface {
	Config
	// ClientPath returns what carries messages to the system with these settings,
	// in a few words that follow the name of the client library.
	ClientPath() string
}

// A Narrowed is a Config with settings under which the driver does less than its
// Definition declares.
type Narrowed interface {
	Config
	// Narrow returns what of c the driver does with these settings.
	Narrow(c Capabilities) Capabilities
}

// A Run is what a driver is told about the run that it serves.
type Run struct {
	ID  string       // unique, [a-z0-9-]; prefix of every name that the driver creates
	Log *slog.Logger // never used per message

	// Existing says that the destinations are the user's own, there before the
	// run and after it: their names are the system's, Declare and Delete are not
	// called, and what the driver creates beside them (a durable subscription)
	// goes with Conn.Close, but for what ConsumerSpec.Durable keeps.
	Existing bool
	// Event, where it is not nil, takes what a reader of the result should know
	// and is not a fault: kind Reconnect, "reopen", "rebalance". Any goroutine may call it.
	Event func(kind, text string)
	// Back, where it is not nil, takes the subscription of a consumer that is connected again:
	// it gets what comes from now on. Any goroutine may call it. Use For.
	Back func(subscription string)
	// Block, where it is not nil, takes that the system answers who, such as "producer 0",
	// and takes none of its messages for now, and why, in the system's words. An empty why
	// says that it takes them again, or that its connection has ended. Use Blocked and
	// Unblocked. Any goroutine may call it.
	Block func(who, why string)

	subscription string // of the consumer that it is for; see For
}

// Reconnect is the kind of the event that a connection which was lost is there again. A consumer
// that goes on after a driver.ErrDisconnected tells it by the Run that For returns: until then it
// counts as away.
const Reconnect = "reconnect"

// For returns the Run for a consumer's connections: their Reconnect is that of the consumer.
func (r Run) For(spec *ConsumerSpec) Run {
	r.subscription = spec.Subscription
	return r
}

// Blocked reports that the system answers who, and takes none of its messages for now.
func (r Run) Blocked(who, why string) {
	if r.Block != nil {
		r.Block(who, why)
	}
}

// Unblocked reports that Blocked no longer holds.
func (r Run) Unblocked(who string) { r.Blocked(who, "") }

// Tell gives a reader of the result an event, if there is one; see Event.
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

// A Conn is a driver's hold on one system for one run. Its methods may be
// called concurrently. Producers and consumers made by it each have a client
// connection of their own wherever the client library allows it.
type Conn interface {
	// Declare makes the destinations, and is idempotent. What it made, Delete
	// removes.
	Declare(ctx context.Context, ds ...Destination) error
	// Delete removes the destinations with everything in them, subscriptions
	// included, and is idempotent: what does not exist is not an error.
	Delete(ctx context.Context, ds ...Destination) error
	// Producer opens one producer. Its completions go to done.
	Producer(ctx context.Context, spec ProducerSpec, done Completer) (Producer, error)
	// Consumer opens one consumer; it receives nothing before Consumer.Run.
	Consumer(ctx context.Context, spec ConsumerSpec) (Consumer, error)
	// Facts reads from the running system, as it is now, what it is and what a
	// confirmation of the declared destinations means. It fails with
	// ErrUnreachable when the system does not answer.
	Facts(ctx context.Context) (Facts, error)
	// Close ends the connection; producers and consumers are closed before.
	Close(ctx context.Context) error
}

// A Producer hands messages to the system's client library. One goroutine at a
// time calls it.
type Producer interface {
	// Publish starts sending m and takes ownership of it until the Completer
	// given at creation is called with it, which happens exactly once, on any
	// goroutine, possibly before Publish returns. All failures, those known at
	// once included, arrive that way. A driver that has not declared
	// Capabilities.PublishBlocks returns without waiting for the network, a
	// lock held over it, or a full buffer. One that has may block for as long
	// as its client refuses more work, but not after ctx ends: then m completes
	// with ctx's error.
	Publish(ctx context.Context, m *Message)
	// Flush returns when every message published before it has completed, or
	// with ctx's error. It is called by the goroutine that publishes.
	Flush(ctx context.Context) error
	// Close completes what is outstanding, with ErrClosed if it must, before it returns,
	// and is idempotent. A message completes with ErrAbandoned where the client library
	// may still read its bytes.
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

// A Requester is a Conn of a system that knows requests with replies. A driver with
// Capabilities.Requests set opens Conns that are Requesters. Where a system has none the
// caller sends the replies itself, as messages.
type Requester interface {
	// Requester opens a producer of requests: Publish sends m as a request, which
	// completes with nil when its reply came, m.Reply holding the bytes of that, valid
	// only during Complete. A request without an answer, at once or within the driver's
	// own time limit (an option), fails.
	Requester(ctx context.Context, spec ProducerSpec, done Completer) (Producer, error)
	// Responder opens a consumer that answers each request with the request's
	// own bytes when Deliver has accepted it, and with nothing when it has not.
	// Everything else is as in Consumer.
	Responder(ctx context.Context, spec ConsumerSpec) (Consumer, error)
}

// A Completer learns the fate of messages.
type Completer interface {
	// Complete reports that the system confirmed m (err is nil; what that means
	// is Facts.Guarantee) or that it did not. It does not block and may be
	// called on any goroutine. Once called with m the driver does not touch m.
	// Nothing is ever published from inside Complete.
	Complete(m *Message, err error)
}

// A Backlogger is a Conn that says what a subscription has still to get. Every
// Conn of a driver that declares Capabilities.Consume is one.
type Backlogger interface {
	// Backlog returns how many messages, of those that completed before the call, the
	// subscription's consumers have not accepted yet: what the system holds for
	// them, what it has sent and may send again, and what their client libraries
	// hold. Where weir cannot know a number, any number above 0 says that there is
	// something. What the system says is not there, such as a stream in memory after a
	// restart, holds nothing.
	//
	// Each answer comes from the system, and is made for this call. A system that
	// keeps nothing for its subscribers has no number to give: there Backlog makes a
	// round trip on the connection of each producer and then of each of the
	// subscription's consumers, behind all that was sent on them before. It fails
	// with ErrUnreachable where a part of the system that it needs does not answer
	// before ctx ends. It returns when ctx ends.
	Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error)
}

// A Message is pooled by the caller and is its own correlation token.
type Message struct {
	Destination string        // a name given to Declare
	Key         []byte        // nil: none
	Payload     []byte        // already stamped; the driver sends these bytes unchanged
	Token       uint64        // the caller's; the driver neither reads nor writes it
	Slot        any           // the driver's scratch, kept for the Message's pooled life
	Took        time.Duration // of what passes through another process on its way: how long that process had it until its client's confirmation. Written before a Complete with nil
	Reply       []byte        // of a request that completes with nil: its reply; the driver's again when Complete returns
}

// A Consumer receives until told to stop. Every Run has one subscription.
type Consumer interface {
	// Run delivers to sink until ctx ends, then settles what Deliver has
	// accepted and returns nil, or until the subscription is lost for good,
	// then returns why. It is never silent: an error it recovers from goes to
	// Sink.Fault. It is called once.
	Run(ctx context.Context, sink Sink) error
	// Close frees the consumer, after Run has returned, and is idempotent.
	Close(ctx context.Context) error
}

// A Sink takes one consumer's deliveries. A driver calls it from one goroutine
// at a time, but for Settled and Fault, which any goroutine may call.
type Sink interface {
	// Ready is called once, when every message that the system accepts from now
	// on will reach this subscription: subscribed and flushed, partitions
	// assigned and positions resolved, channel created.
	Ready()
	// Deliver is called as soon as the client library yields messages, with all
	// that one client call yielded. ds and all it points to are the driver's
	// again on return, but for what the driver hands to Settled. A nil error
	// settles every delivery in ds; any other returns them unsettled. Deliver
	// may block: that is a slow consumer.
	Deliver(ds []Delivery) error
	// Settled reports that the system confirmed (or with err refused) the
	// settlement of ds, as given to Deliver with Token as Deliver left it.
	// Only drivers with Capabilities.SettleConfirmed call it.
	Settled(ds []Delivery, err error)
	// Fault reports what the consumer survived: a lost connection, a message
	// that could not be settled, an error of the client library.
	Fault(err error)
}

// A Delivery is one received message.
type Delivery struct {
	Key         []byte
	Payload     []byte
	Partition   int32  // -1 where the system has none
	Source      int32  // which of ConsumerSpec.Destinations yielded it, as an index; -1: none of them. The system says so, not the message
	Redelivered bool   // the system itself said that it delivered this before
	Token       uint64 // the sink's, written in Deliver; kept by the driver for Settled
}

// A Destination is what producers send to: a queue, topic, subject or stream.
type Destination struct {
	Name       string // unique to the run
	Partitions int    // 1 or more
	Replicas   int    // 1 or more

	// Refusals is how often consumers may refuse a message: with the last of them the system
	// moves it to the destination DeadLetters(Name), which was declared before. 0: any
	// number. Only asked for with Capabilities.DeadLetters.
	Refusals int
}

// DeadLetters returns the name of the destination for what consumers of another have
// refused Destination.Refusals times.
func DeadLetters(destination string) string { return destination + "-dead" }

// A ProducerSpec describes one producer.
type ProducerSpec struct {
	Index        int      // of the run's producers
	Destinations []string // the ones that it will send to
	InFlight     int      // most messages published and not completed
	Largest      int      // bytes of the largest message; 0: not known. More than the system takes is ErrTooLarge
}

// room is what a producer has room for where a scenario does not say how much is in flight.
const room = 10_000

// Room returns how many messages a producer has room for that queues them: InFlight, or
// 10,000 where that is open.
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
	Destinations []string // the ones that it receives from
	Prefetch     int      // most messages delivered and not settled; 0 leaves it to the driver
	Settle       Settle

	// From is where the subscription begins, if it has not begun before. Only
	// what Capabilities.Replays lists is asked for; the zero value leaves it to
	// the driver, which keeps Sink.Ready's promise.
	From Position
	// Durable says that Subscription is the system's own name for it, as the
	// user gave it: it is made where it does not exist, continues where it does,
	// and stays when the Conn closes. Only asked for with Run.Existing, and where
	// Capabilities.Resumes is set. A name that the system has in use for
	// something else is ErrUnsupported.
	Durable bool
}

// A Position is a place in what a destination holds.
type Position struct {
	At     Start
	Offset string    // with AtOffset: the first message, in the system's own notation, the same in each partition
	Time   time.Time // with AtTime: the first message is the first that the system took then or later
}

// A Start is a kind of Position.
type Start uint8

// The kinds of position.
const (
	AtDefault  Start = iota // the driver's
	AtEarliest              // the first message that is still there
	AtLatest                // behind the last message that was there when the consumer was opened
	AtOffset                // Position.Offset
	AtTime                  // Position.Time
)

// String returns the word that scenarios use; "" for AtDefault.
func (s Start) String() string { return word(starts, int(s)) }

// ParseStart is the inverse of String.
func ParseStart(s string) (Start, error) {
	i, err := parse("position", starts, s)
	return Start(i), err
}

// Settle says how a consumer acknowledges.
type Settle uint8

// The ways of settling.
const (
	SettleEach  Settle = iota // one acknowledgement a message
	SettleBatch               // one acknowledgement for all that a client call yielded
	SettleAuto                // the client library or the system does it on delivery
	SettleNone                // the system knows none
)

// String returns the word that scenarios use.
func (s Settle) String() string { return word(settles, int(s)) }

// ParseSettle is the inverse of String.
func ParseSettle(s string) (Settle, error) {
	i, err := parse("settle", settles, s)
	return Settle(i), err
}
