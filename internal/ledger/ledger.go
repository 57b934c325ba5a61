// Package ledger does the message accounting of one run: which messages were sent, confirmed or
// failed, and what became of each at every subscription: delivered, corrupted, missing, duplicated,
// out of order. All counts are exact, in memory that does not grow with the number of messages.
//
// A stream's messages are numbered from 0, so that the knowledge about them is a few spans of
// sequences: everything below some head, except for holes. Many holes close to each other take one
// bit per message. Memory is bounded: beyond Config.MaxOpen the oldest holes are closed, counted as
// Evicted.
//
// Three parties work concurrently: senders (Sent, Confirmed, Failed), consumers, which append to a
// ring of their own each (Reader), and one goroutine that merges the rings, in Ledger.Merge. Only
// the last one classifies deliveries, so that this needs no lock.
//
//	senders ──▶ fates of each stream ─────────────┐
//	consumers ─▶ rings ─▶ Merge ─▶ deliveries of each subscription and stream ─┴▶ Book
//
// If several processes share a run, each has a ledger of all its streams and subscriptions, in
// which it enters what it sends and receives itself. Its knowledge is a Part, which can be encoded;
// Join combines the parts of all into the books of the run. What arrived anywhere is sent back
// (Joined.Deliveries, Ledger.Adopt), so that no process keeps a hole for what another received.
//
// Instants are ns since the run's epoch.
package ledger

import (
	"math"
	"sync/atomic"
)

// Config is the size of a ledger.
type Config struct {
	Streams   int   // numbered from 0
	Consumers []int // per subscription; every subscription gets every stream
	From      int64 // where the measured window begins; see MeasureFrom
	MaxOpen   int   // maximum number of spans over all streams and subscriptions, the bits of 16,384 messages counting as 1024; 0: 1<<20
	RingBytes int   // maximum memory of all rings, but at least 256 events each; 0: 64 MiB
}

// The defaults of Config, and the bounds of ring sizes.
const (
	defaultMaxOpen   = 1 << 20
	defaultRingBytes = 64 << 20

	minRing = 256     // events
	maxRing = 1 << 16 // events; 3 MiB, 65 ms at a million a second: more would only hurt the cache
)

// A Ledger is the message accounting of one run. Create it with New.
type Ledger struct {
	streams      []stream
	measuredFrom []atomic.Uint64 // by stream
	subs         []subscription
	wake         chan struct{}

	from    int64 // Config.From
	maxOpen int
	fates   [fateShards]counter // spans of the streams' fates, by stream modulo fateShards
	held    int                 // spans of the subscriptions' deliveries; owned by Merge

	closedBooks   [2]Book // the senders' side of what the bound closed; owned by Merge
	closedFates   groups  // the part of it that was not confirmed
	closedUnknown uint64  // messages closed with unknown fate
}

// fateShards is the number of counters for the spans, so that senders of different streams do not
// share one.
const fateShards = 64

// A counter occupies its own cache line and the adjacent one that is prefetched with it.
type counter struct {
	n atomic.Int64
	_ [120]byte
}

// A subscription is what one group of consumers received.
type subscription struct {
	readers []*Reader
	streams []delivered // by stream

	// Owned by Merge.
	counts  [2]counts // by phase
	foreign uint64    // events of a stream unknown to the ledger
	queue   []next    // the k-way merge's heap
	reached uint64    // how far deliveries moved the heads of all streams
	closed  [2]Book   // closed by the bound, by phase
	damaged groups    // the part of it that arrived corrupted
	unknown groups    // the part of it that had not arrived: see Ledger.Unknown

	// Written by Merge at the end of a pass, read by anyone.
	distinct atomic.Uint64 // first deliveries, of whatever fate, including corrupted ones
	passed   atomic.Uint64 // messages below the head of a stream that were not delivered
	last     atomic.Int64  // latest At
}

// delivered is what one subscription received of one stream.
type delivered struct {
	newest   point    // of the message below the head
	measured uint64   // the lowest sequence of the window that arrived
	first    arrivals // first deliveries here, without those in the closed books
	set
	corrupted spans // members of the set with a corrupted first delivery

	// floor is up to where closeArrivals closed: everything below is in the set, but its arrivals
	// are known only as a number.
	floor uint64
	since int64 // the latest At of the subscription when floor was first raised

	// Of what the bound closed here: how many messages had not arrived, and how many later
	// deliveries may be theirs.
	lacked, late uint64
}

// arrivals counts the messages that arrived, by phase. For one process it may be negative: the
// closed books include what others reported (see Adopt).
type arrivals [2]struct{ good, corrupted int64 }

// add adds o times n.
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

// counts are incremented as events happen.
type counts struct {
	first, duplicated, redelivered, reordered uint64
	misrouted                                 uint64
	late                                      uint64 // possibly first: of a closed message
}

// all returns every count, in the order of the encoded form.
func (c *counts) all() [6]*uint64 {
	return [...]*uint64{&c.first, &c.duplicated, &c.redelivered, &c.reordered, &c.misrouted, &c.late}
}

// The two phases, as indices.
const (
	warmUp = iota
	measured
)

// New returns an empty ledger. It panics on an impossible c: no streams, a negative number.
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

// MeasureFrom sets the start of the measured window in a stream: message seq and all after it count
// as measured. Without it none of the stream do. The stream's sender calls it once, before Sent of
// that message, which is the first that is due at Config.From or later: counts of deliveries
// (duplicated, redelivered, reordered) go by Due, because the receiver may be in another process
// than the sender. The two agree because dues increase along a stream. Without Config.From all
// deliveries belong to the window.
func (l *Ledger) MeasureFrom(stream uint32, seq uint64) { l.measuredFrom[stream].Store(seq) }

// Reader returns the ring for the deliveries of one consumer of a subscription; the same on every
// call.
func (l *Ledger) Reader(sub, consumer int) *Reader { return l.subs[sub].readers[consumer] }

// Wake is signalled when a reader's ring becomes half full, and again while it stays so: time for
// an early Merge. It is never closed.
func (l *Ledger) Wake() <-chan struct{} { return l.wake }

// LastDelivery returns the latest At of all merged events of the subscription, including
// duplicates; 0 before the first. Any goroutine may call it.
func (l *Ledger) LastDelivery(sub int) int64 { return l.subs[sub].last.Load() }
