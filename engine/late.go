package engine

import (
	"context"
	"math"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/stamp"
)

// A message delivered after the end of the drain counts in no rate, and its instant in no
// distribution: there the message is censored. It is counted in a separate ledger, as if another
// process had received it, which Assemble compares with the others.

// lateToken is the token of a delivery whose settlement is not measured.
const lateToken = math.MaxUint64

// lateRing bounds the memory of the consumers' rings, in bytes.
const lateRing = 1 << 20

// expectLate prepares for late deliveries. In mode Consume nothing counts as late: it stays for the
// subscription's next consumer.
func (r *run) expectLate() {
	if r.cfg.Mode == Consume || len(r.receivers) == 0 {
		return
	}
	counts := make([]int, len(r.receivers))
	for sub := range r.receivers {
		counts[sub] = len(r.receivers[sub])
	}
	late := ledger.New(ledger.Config{Streams: r.plan.Streams(), Consumers: counts, From: r.from, RingBytes: lateRing})
	for sub := range r.receivers {
		for n, k := range r.receivers[sub] {
			k.late = late.Reader(sub, n)
		}
	}
	r.late.Store(late)
}

// takeLate accounts for deliveries that came after the end of the drain.
func (k *receiver) takeLate(ds []driver.Delivery, at int64) error {
	if k.late == nil {
		return errEnded
	}
	k.run.enter(k.late, ds, at, true, k.isPlace)
	return nil
}

// enter adds deliveries to a ledger beside the run's: none of them enters a distribution. flagged
// selects whether redeliveries flagged by the system count, and isPlace reports whether a stream
// belongs to a source.
func (r *run) enter(reader *ledger.Reader, ds []driver.Delivery, at int64, flagged bool, isPlace func(source int32, stream uint32) bool) {
	var st stamp.Stamp
	for i := range ds {
		d := &ds[i]
		d.Token = lateToken
		status := stamp.Read(d.Payload, r.cfg.Run, &st)
		if status == stamp.Foreign || int(st.Stream) >= r.plan.Streams() {
			reader.Foreign()
			continue
		}
		reader.Delivered(&ledger.Event{
			Stream: st.Stream, Partition: d.Partition, Seq: st.Seq, Due: st.Due, Start: st.Start, At: at,
			Bytes: uint32(len(d.Payload)), Corrupted: status == stamp.Corrupted, Redelivered: flagged && d.Redelivered,
			Misrouted: !isPlace(d.Source, st.Stream),
		})
	}
}

// listen takes late deliveries for as long as the scenario says, or until the user ends the run,
// and returns how long that was.
func (r *run) listen(ctx context.Context, stop <-chan struct{}) time.Duration {
	if r.cfg.AfterDrain == 0 || latch.Closed(stop) || ctx.Err() != nil || r.late.Load() == nil {
		return 0
	}
	r.event("phase", "after the drain")
	began := r.now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var st Status
	for {
		r.status(&st, true)
		listened := time.Duration(r.now() - began)
		if r.peers.Orders(&st).Leave || listened >= r.cfg.AfterDrain || latch.Closed(stop) || ctx.Err() != nil {
			return min(listened, r.cfg.AfterDrain)
		}
		select {
		case <-tick.C:
		case <-stop:
		case <-ctx.Done():
		}
	}
}

// settle moves messages that came late or as dead letters out of b, the book of a subscription at
// the end of the drain; after is the same book including them. It returns the number of messages
// moved. Those that arrived damaged count as corrupted.
func settle(b, after *ledger.Book) (late uint64) {
	late = b.Missing - min(b.Missing, after.Missing)
	damaged := min(late, after.Corrupted-min(after.Corrupted, b.Corrupted))
	b.Missing -= late
	b.Corrupted += damaged
	b.Duplicated = max(b.Duplicated, after.Duplicated)
	b.Redelivered = max(b.Redelivered, after.Redelivered)
	b.Misrouted = max(b.Misrouted, after.Misrouted)
	b.Foreign = max(b.Foreign, after.Foreign)
	b.FailedDelivered = max(b.FailedDelivered, after.FailedDelivered)
	b.UnconfirmedDelivered = max(b.UnconfirmedDelivered, after.UnconfirmedDelivered)
	b.CorruptedUnconfirmed = max(b.CorruptedUnconfirmed, after.CorruptedUnconfirmed)
	return late - damaged
}

// elsewhere counts the messages of a subscription that did not reach it in time.
type elsewhere struct {
	dead uint64 // dead letters
	late uint64 // came after the end of the drain
}

// book returns a subscription's books, of the whole run and of the window, and for each what it
// does not include.
func (j *assembly) book(sub int) (all, window ledger.Book, of, ofWindow elsewhere) {
	all, window = j.ledger.Book(sub)
	if j.dead != nil {
		a, w := j.dead.Book(sub)
		of.dead, ofWindow.dead = settle(&all, &a), settle(&window, &w)
	}
	if j.after != nil { // including dead letters
		a, w := j.after.Book(sub)
		of.late, ofWindow.late = settle(&all, &a), settle(&window, &w)
	}
	return all, window, of, ofWindow
}
