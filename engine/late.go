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

// What is delivered after the end of the drain enters no rate, and its instant enters no
// distribution, in which the message is censored: it is counted in a ledger of its own,
// as if another process had received it. Assemble compares it with the others.

// lateToken is the token of a delivery with a settlement that is not measured.
const lateToken = math.MaxUint64

// lateRing bounds the memory of the consumers' rings, in bytes.
const lateRing = 1 << 20

// expectLate makes room for what comes from now on. In mode Consume nothing does:
// it stays for the subscription's next consumer.
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

// enter puts deliveries into a ledger beside that of the run: none of them is in a
// distribution. flagged says whether it counts what the system delivered again, and
// isPlace whether a stream belongs to a source.
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

// listen takes what still comes for as long as the scenario says, or until the user
// wants the run to end, and returns how long that was.
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
		if r.crew.Orders(&st).Leave || listened >= r.cfg.AfterDrain || latch.Closed(stop) || ctx.Err() != nil {
			return min(listened, r.cfg.AfterDrain)
		}
		select {
		case <-tick.C:
		case <-stop:
		case <-ctx.Done():
		}
	}
}

// settle moves what came late, or to the dead letters, out of b, the book of a subscription
// at the end of the drain, after being the same book with that, and returns how many
// messages they were. Those of them that arrived damaged are corrupted.
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

// elsewhere is how many of a subscription's messages did not come to it in time.
type elsewhere struct {
	dead uint64 // came to the dead letters
	late uint64 // came after the end of the drain
}

// book returns a subscription's books, of the whole run and of the window, and what of each
// is in no count of them.
func (j *assembly) book(sub int) (all, window ledger.Book, of, ofWindow elsewhere) {
	all, window = j.ledger.Book(sub)
	if j.dead != nil {
		a, w := j.dead.Book(sub)
		of.dead, ofWindow.dead = settle(&all, &a), settle(&window, &w)
	}
	if j.after != nil { // with the dead letters
		a, w := j.after.Book(sub)
		of.late, ofWindow.late = settle(&all, &a), settle(&window, &w)
	}
	return all, window, of, ofWindow
}
