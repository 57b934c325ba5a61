package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
)

// errEnded nacks a delivery that came after all counting ended.
var errEnded = errors.New("the run is over")

// errMisrouted is the text under which deliveries in the wrong place are tallied.
var errMisrouted = errors.New("a message came from a destination other than its own")

// anybody is the owner if there is no single one.
const anybody = -1

// A receiver is the sink of one consumer: it reads the clock, verifies the header, and leaves the
// rest to the merge.
type receiver struct {
	run      *run
	index    int // among its subscription's consumers
	consumer driver.Consumer
	reader   *ledger.Reader
	late     *ledger.Reader // of deliveries after the end of the drain; nil before, or if they do not count
	shard    *measure.Receiver
	echo     *echo // answers what it receives; nil: no replies
	owner    int   // the only producer with messages for it; anybody
	serves   []int // the destinations, in the order given to the driver
	ready    chan struct{}
	once     sync.Once
	running  bool         // Run was called
	shut     bool         // closed by closeConsumers
	first    atomic.Int64 // instant of the first delivery, of this run or not
	last     atomic.Int64 // instant of the latest
	cut      atomic.Int64 // when a connection was last reported lost
	worker   worker
	refusing refusing
	open     func(context.Context) (driver.Consumer, error) // opens another like it; set with Config.Churn
	leave    context.CancelFunc                             // ends its Run; set with Config.Churn
	worked   atomic.Int64                                   // when its latest simulated work ended; never: it is working
	apart    bool                                           // count deliveries here too: consumers have a window of their own
	since    int64                                          // start of that window
	received atomic.Uint64                                  // deliveries, of this run or not
	bytes    atomic.Uint64                                  // their size

	// The part that came at the first instant.
	atFirst, bytesAtFirst atomic.Uint64

	of ofRun // messages of other runs of weir; mode Consume

	done chan struct{} // Run has returned
}

// Ready implements driver.Sink.
func (k *receiver) Ready() { k.once.Do(func() { close(k.ready) }) }

// Deliver implements driver.Sink. One clock reading serves all deliveries of one client call,
// unless work is simulated.
func (k *receiver) Deliver(ds []driver.Delivery) error {
	if p := k.run.pausing; p != nil && !p.pass() {
		return errEnded
	}
	if k.refusing.share > 0 && !k.run.ended.Load() && k.refuses(ds) {
		return errRefused
	}
	if k.worker.timer != nil {
		return k.simulateWork(ds)
	}
	at := k.run.now()
	if k.run.ended.Load() {
		return k.takeLate(ds, at)
	}
	var st stamp.Stamp
	for i := range ds {
		if k.take(&ds[i], at, &st) && k.echo != nil {
			k.echo.reply(ds[i].Payload, st.Stream)
		}
	}
	return nil
}

// take accounts for one delivery at the instant at, and reports whether it belongs to this run and
// came from the right place; st is then its header.
func (k *receiver) take(d *driver.Delivery, at int64, st *stamp.Stamp) bool {
	if k.first.Load() == 0 {
		k.first.Store(at)
	}
	k.last.Store(at)
	if k.apart && at >= k.since {
		k.received.Add(1)
		k.bytes.Add(uint64(len(d.Payload)))
		if at == k.first.Load() {
			k.atFirst.Add(1)
			k.bytesAtFirst.Add(uint64(len(d.Payload)))
		}
	}
	status := stamp.Read(d.Payload, k.run.cfg.Run, st)
	if status != stamp.Foreign && int(st.Stream) >= k.run.plan.Streams() {
		status = stamp.Foreign
	}
	if status == stamp.Foreign {
		k.reader.Foreign()
		d.Token = token(at, measure.WarmUp)
		if k.run.cfg.Mode == Consume {
			k.shard.Received(at, 1, len(d.Payload))
			d.Token = token(at, measure.Measure)
			if k.run.cfg.Of == nil {
				k.of.take(d.Payload)
			}
		}
		return false
	}
	k.shard.Received(at, 1, len(d.Payload))
	astray := !k.isPlace(d.Source, st.Stream)
	e := k.reader.Next() // field by field: a whole Event would be built elsewhere and copied
	e.Stream, e.Partition, e.Seq = st.Stream, d.Partition, st.Seq
	e.Due, e.Start, e.Late, e.At = st.Due, st.Start, st.Share, at
	e.Bytes, e.Corrupted, e.Redelivered, e.Misrouted = uint32(len(d.Payload)), status == stamp.Corrupted, d.Redelivered, astray
	k.reader.Done()
	d.Token = token(at, k.run.recorder.Phase(st.Due))
	if k.run.cfg.Received {
		k.run.senders[int(st.Stream)%len(k.run.senders)].received(st.Stream, st.Seq)
	}
	if astray && k.run.errs.add(errMisrouted) {
		k.run.event("misrouted", fmt.Sprintf("%v: %s", errMisrouted, k.where(d.Source, st.Stream)))
	}
	return !astray
}

// isPlace reports whether the messages of a stream belong to the source of a delivery.
func (k *receiver) isPlace(source int32, stream uint32) bool {
	if k.owner != anybody {
		return source == 0 && k.run.owners[stream] == k.owner
	}
	return uint32(source) < uint32(len(k.serves)) && k.serves[source] == k.run.plan.DestinationOf(stream)
}

// where describes where a misrouted message came from, and where it should have gone.
func (k *receiver) where(source int32, stream uint32) string {
	if k.owner != anybody {
		return fmt.Sprintf("the reply to producer %d came to producer %d", k.run.owners[stream], k.owner)
	}
	to := k.run.names[k.run.plan.DestinationOf(stream)]
	if uint32(source) >= uint32(len(k.serves)) {
		return "one sent to " + to + " came from no destination of its consumer"
	}
	return "one sent to " + to + " came from " + k.run.names[k.serves[source]]
}

// token packs what Settled needs into a delivery's token.
func token(at int64, p measure.Phase) uint64 { return uint64(at)<<1 | uint64(p) }

// Settled implements driver.Sink.
func (k *receiver) Settled(ds []driver.Delivery, err error) {
	if err != nil {
		k.run.errs.add(err)
		return
	}
	now := k.run.now()
	for i := range ds {
		t := ds[i].Token
		if t == lateToken {
			continue
		}
		k.shard.Settled(int64(t>>1), now, measure.Phase(t&1))
	}
}

// Fault implements driver.Sink.
func (k *receiver) Fault(err error) {
	if errors.Is(err, driver.ErrDisconnected) {
		k.cut.Store(k.run.now())
	}
	// Each kind of fault is an event once, and then only counted; a lost connection is one each
	// time.
	if k.run.errs.add(err) || errors.Is(err, driver.ErrDisconnected) {
		k.run.event("fault", err.Error())
	}
}
