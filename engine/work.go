package engine

import (
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
)

// madeUp is the minimum overshoot that later works compensate: timers end up to a millisecond late,
// so that shorter works would take several times too long. What exceeds both this and one work is a
// stall of the host, after which a real worker does not hurry either.
const madeUp = 2 * time.Millisecond

// A worker simulates the work of one consumer by sleeping. The overshoot of one sleep shortens the
// next, so that n works take n times as long as one.
type worker struct {
	timer *time.Timer // nil: no work
	over  int64       // overshoot of the last work
}

func newWorker(work time.Duration) worker {
	if work == 0 {
		return worker{}
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return worker{timer: t}
}

// simulateWork is Deliver with simulated work per delivery: the k-th delivery of a client call
// begins when the one before is done, and all are settled together.
func (k *receiver) simulateWork(ds []driver.Delivery) error {
	work := int64(k.run.cfg.Work)
	at := k.run.now()
	var st stamp.Stamp
	for i := range ds {
		if k.run.ended.Load() {
			return k.takeLate(ds[i:], at)
		}
		k.worked.Store(never)
		ours := k.take(&ds[i], at, &st)
		done := at + work - k.worker.over
		if done > at {
			k.worker.timer.Reset(time.Duration(done - at))
			select {
			case <-k.worker.timer.C:
			case <-k.run.receiving.Done():
				k.worker.timer.Stop()
				return errEnded
			}
		}
		if ours && k.echo != nil {
			k.echo.reply(ds[i].Payload, st.Stream)
		}
		at = k.run.now()
		k.worker.over = min(max(0, at-done), max(work, int64(madeUp)))
		k.worked.Store(at)
	}
	return nil
}

// lastWork returns when the latest work of a subscription's consumers ended: now if one is working,
// 0 if no work is simulated.
func (r *run) lastWork(sub int, now int64) (last int64) {
	if r.cfg.Work == 0 {
		return 0
	}
	for _, k := range r.receivers[sub] {
		last = max(last, min(now, k.worked.Load()))
	}
	return last
}
