// Package ledger keeps the books of one run: which messages were sent, confirmed
// or failed, and what became of each at every subscription: delivered,
// corrupted, missing, duplicated, out of order. All counts are exact, in memory
// that does not grow with the number of messages.
//
// A stream's messages are numbered from 0, so that what is known of them is a
// few spans of sequences: everything below some head, but for the holes. Many holes
// that are near to each other take a bit a message. Memory is bounded: beyond
// Config.MaxOpen the oldest holes close, counted as Evicted.
//
// Three parties work at once: senders (Sent, Confirmed, Failed), consumers, which append
// to a ring of their own each (Reader), and one goroutine that merges the rings, in
// Ledger.Merge. The first two never decide anything about a delivery; the last one alone
// does, so that nothing there needs a lock.
//
//	senders ──▶ fates of each stream ─────────────┐
//	consumers ─▶ rings ─▶ Merge ─▶ deliveries of each subscription and stream ─┴▶ Book
//
// Where several processes share a run, each has a ledger of all its streams and
// subscriptions, in which it enters what it sends and receives itself. What it knows is a
// Part, which travels; Join makes the books of the run from the parts of all. What
// arrived anywhere travels back (Joined.Deliveries, Ledger.Adopt), so that no process
// keeps a hole for what another received.
//
// Instants are ns since the run's epoch.
package ledger

import (
	"math"
	"sync/atomic"
)

// Config says how large a ledger is.
type Config struct {
	Streams   int   // numbered from 0
	Consumers []int // of each subscription; every subscription gets every stream
	From      int64 // where the measured window begins; see MeasureFrom
	MaxOpen   int   // most spans kept over all streams and subscriptions, the bits of 16,384 messages counting as 1024; 0: 1<<20
	RingBytes int   // most memory of all rings, but 256 events each at least; 0: 64 MiB
}

// The defaults of Config, and the bounds of what New makes.
const (
	defaultMaxOpen   = 1 << 20
	defaultRingBytes = 64 << 20

	minRing = 256     // events
	maxRing = 1 << 16 // events; 3 MiB, 65 ms at a million a second: more would only wear the cache
)

// A Ledger is the books of one run. Make it with New.
type Ledger struct {
	streams      []stream
	measuredFrom []atomic.Uint64 // by stream
	subs         []subscription
	wake         chan struct{}

	from    int64 // Config.From
	maxOpen int
	fates   [fateShards]counter // spans of the streams' fates, by stream modulo fateShards
	held    int                 // spans of the subscriptions' deliveries; Merge's

	closedBooks   [2]Book // of what the bound closed, the senders' side; Merge's
	closedFates   groups  // what of it was not confirmed
	closedUnknown uint64  // messages closed before their fate was known
}

// fateShards is over how many counters the number of spans is spread, so that
// senders of different streams do not share one.
const fateShards = 64

// A counter has a cache line for itself, and the one that is fetched with it.
type counter struct {
	n atomic.Int64
	_ [120]byte
}

// A subscription is what one group of consumers got.
type subscription struct {
	readers []*Reader
	streams []delivered // by stream

	// Merge's.
	counts  [2]counts // by phase
	foreign uint64    // events of a stream that the ledger has not
	queue   []next    // the k-way merge's heap
	reached uint64    // by how much deliveries moved the heads of all streams
	closed  [2]Book   // of what the bound closed, by phase
	damaged groups    // what of it arrived corrupted
	unknown groups    // what of it had not arrived: see Ledger.Unknown

	// Written by Merge at the end of a pass, read by anybody.
	distinct atomic.Uint64 // first deliveries, of whatever fate, the corrupted among them
	passed   atomic.Uint64 // messages below the head of a stream that were not delivered
	last     atomic.Int64  // latest At
}

// delivered is what one subscription got of one stream.
type delivered struct {
	newest   point    // of the message below the head
	measured uint64   // the lowest sequence of the window that arrived
	first    arrivals // first deliveries here, less those in the closed books
	set
	corrupted spans // of the set, those with a corrupted first delivery

	// floor is up to where closeArrivals closed: everything below is in the set, and
	// what of it arrived is known by number only.
	floor uint64
	since int64 // the latest At of the subscription when floor was first raised

	// Of what the bound closed here, how many messages had not arrived, and how many
	// deliveries came later that may be theirs.
	lacked, late uint64
}

// arrivals is how many messages arrived, by phase. Of one process it may be
// negative: the closed books have what others told it of (see Adopt).
type arrivals [2]struct{ good, corrupted int64 }

// add adds n times so many.
func (a *arrivals) add(o *arrivals, n int64) {
	for phase := range o {
		a[phase].good += n * o[phase].good
		a[phase].corrupted += n * o[phase].corrupted
	}
}

// count counts n messages.
func (a *arrivals) count(phase int, corrupted bool, n int64) {
	if corrupted {
		a[phase].corrupted += n
	} else {
		a[phase].good += n
	}
}

func (a *arrivals) total() (n int64) {
	for _, x := range a {
		n += x.good + x.corrupted
	}
	return n
}

// counts is what is counted as it happens.
type counts struct {
	first, duplicated, redelivered, reordered uint64
	misrouted                                 uint64
	late                                      uint64 // perhaps first, perhaps not: of a closed message
}

// all returns every count, in the order of the form.
func (c *counts) all() [6]*uint64 {
	return [...]*uint64{&c.first, &c.duplicated, &c.redelivered, &c.reordered, &c.misrouted, &c.late}
}

// The two phases, as indices.
const (
	warmUp = iota
	measured
)

// New returns an empty ledger. It panics where c is impossible: no streams, a
// negative number.
func New(c Config) *Ledger {
	if c.Streams <= 0 || c.MaxOpen < 0 || c.RingBytes < 0 {
		panic("ledger: impossible configuration")
	}
	if c.MaxOpen == 0 {
		c.MaxOpen = defaultMaxOpen
	}
	if c.RingBytes == 0 {
		c.RingBytes = defaultRingBytes
	}
	l := &Ledger{
		streams:      make([]stream, c.Streams),
		measuredFrom: make([]atomic.Uint64, c.Streams),
		subs:         make([]subscription, len(c.Consumers)),
		wake:         make(chan struct{}, 1),
		from:         c.From,
		maxOpen:      c.MaxOpen,
	}
	each := max(minPoints, maxPoints/c.Streams) &^ 1
	points := make([]point, each*c.Streams)
	for i := range l.streams {
		l.streams[i].line.init(points[i*each : i*each : (i+1)*each])
		l.measuredFrom[i].Store(math.MaxUint64)
	}
	consumers := 0
	for _, n := range c.Consumers {
		consumers += n
	}
	ring := ringSize(c.RingBytes, consumers)
	for i, n := range c.Consumers {
		sub := &l.subs[i]
		sub.streams = make([]delivered, c.Streams)
		for j := range sub.streams {
			sub.streams[j].measured = math.MaxUint64
		}
		sub.queue = make([]next, 0, n)
		for range n {
			sub.readers = append(sub.readers, newReader(l.wake, ring))
		}
	}
	return l
}

// MeasureFrom says that the measured window begins with the message seq of the
// stream: it and all after it are counted as measured. Without it none of the
// stream are. The stream's sender calls it once, before Sent of that message,
// which is the first that is due at Config.From or later: what is counted of
// deliveries (duplicated, redelivered, reordered) goes by their Due, because
// whoever receives need not be where the sender is. The two agree as dues grow
// along a stream. Without Config.From all deliveries are of the window.
func (l *Ledger) MeasureFrom(stream uint32, seq uint64) { l.measuredFrom[stream].Store(seq) }

// Reader returns the place where one consumer of a subscription puts what it
// receives; the same on every call.
func (l *Ledger) Reader(sub, consumer int) *Reader { return l.subs[sub].readers[consumer] }

// Wake is signalled when a reader's ring has become half full, and again while
// it stays so: time for a Merge before the periodic one. It is never closed.
func (l *Ledger) Wake() <-chan struct{} { return l.wake }

// LastDelivery returns the latest At of all events of the subscription that were
// merged, duplicates among them; 0 before the first. Any goroutine may call it.
func (l *Ledger) LastDelivery(sub int) int64 { return l.subs[sub].last.Load() }
