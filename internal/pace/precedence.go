package pace

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

// Settings of a waiter's real-time priority; see Calibration.FIFO.
const (
	// fifoPriority is low within the policy and far below that of the kernel's own threads.
	fifoPriority = 10
	// fifoShare is how much of a core a waiter may use and keep its priority.
	fifoShare = 0.5
	// fifoWindow, in ns, is how long it may exceed that in a row, and the minimum time without
	// priority after it did.
	fifoWindow = int64(50 * time.Millisecond)
)

// ErrNoFIFO is wrapped by CheckFIFO's error.
var ErrNoFIFO = errors.New("SCHED_FIFO is not available")

// CheckFIFO returns nil if waiters can use SCHED_FIFO. Otherwise the error, which is ErrNoFIFO,
// says what is needed. It tries on a thread of its own and leaves nothing changed.
func CheckFIFO() error {
	tried := make(chan error)
	go func() {
		_, unlock, err := lockFirst()
		if err == nil {
			unlock()
		}
		tried <- err
	}()
	return <-tried
}

// lockFirst is lockThread with real-time priority; on the error of precede it does not lock.
func lockFirst() (p *precedence, unlock func(), err error) {
	release := lockThread()
	if p, err = precede(); err != nil {
		release()
		return nil, nil, err
	}
	return p, sync.OnceFunc(func() {
		// A thread that kept its priority must serve no other goroutine: it would end with the
		// goroutine, which stays locked to it.
		if p.end() == nil {
			release()
		}
	}), nil
}

// CalibrateFIFO is Calibrate(pacers).At(perSecond) for waiters that should use SCHED_FIFO, measured
// under that policy too. If they must not, FIFO is not set, Why says why, and the result is that
// without FIFO.
//
// They must not if they would leave no core to the rest, if it is unknown how often they wait, or
// if they would spin for more than half of the time: a thread under that policy yields its core
// only while it sleeps. It takes 0.3 s, or twice that if the measurement with FIFO was in vain.
func CalibrateFIFO(pacers int, perSecond float64) Calibration {
	why := barred(pacers, Cores(), perSecond)
	if why == "" {
		cal, err := calibrate(pacers, true)
		cal = cal.At(perSecond)
		switch {
		case cal.virtual:
			return cal
		case err != nil:
			why = err.Error()
		default:
			if why = cal.tooBusy(perSecond); why == "" {
				return cal.first()
			}
		}
	}
	cal := Calibrate(pacers).At(perSecond)
	if !cal.virtual {
		cal.Why += "; takes no precedence (SCHED_FIFO), as " + why
	}
	return cal
}

// first is the calibration with real-time priority.
func (cal Calibration) first() Calibration {
	cal.FIFO = true
	cal.Why += "; takes precedence over all else (SCHED_FIFO)"
	return cal
}

// barred returns why pacers must not have real-time priority whatever their margin; "": they may.
func barred(pacers, cores int, perSecond float64) string {
	switch {
	case cores-pacers < 1:
		return fmt.Sprintf("%s would take the last of %s", quantity.Plural(pacers, "pacer"), quantity.Plural(cores, "core"))
	case perSecond <= 0:
		return "it is not known how often a pacer would wait (closed loop, trace, or nothing to send)"
	}
	return ""
}

// tooBusy returns why waiters of perSecond waits each must not have real-time priority; "": they
// may. The last sleepCost are spun whatever the margin.
func (cal Calibration) tooBusy(perSecond float64) string {
	spun := max(cal.Margin, sleepCost)
	share := float64(spun) * perSecond / 1e9
	if share <= fifoShare {
		return ""
	}
	return fmt.Sprintf("a pacer that spins %v of each of %.0f waits a second would keep a core for over half of the time", time.Duration(spun), perSecond)
}

// A turn is a waiter's real-time priority while its goroutine is locked: taken initially, given up
// while its thread uses a core for more than fifoShare.
type turn struct {
	p     *precedence
	has   bool
	since int64 // the instant of the latest check, by the waiter's clock
	used  int64 // core time of the thread by then
	lost  uint64
}

// lockFirst is Lock with real-time priority.
func (w *Waiter) lockFirst() (unlock func()) {
	p, release, err := lockFirst()
	if err != nil {
		return lockThread() // it was allowed when the host was calibrated
	}
	now := w.clock.Now()
	w.turn = turn{p: p, has: true, since: now, used: p.used(), lost: w.turn.lost}
	w.review = now + fifoWindow
	return sync.OnceFunc(func() {
		w.review = math.MaxInt64
		release()
	})
}

// Observe passes the time to the waiter while its goroutine works without waiting, so that one with
// real-time priority does not keep it for long; Until does that itself. It costs a comparison, and
// two system calls every 50 ms if there is a priority to be given up.
func (w *Waiter) Observe(now int64) {
	if now >= w.review {
		w.look(now, false)
	}
}

// Yield gives up real-time priority until unlock, for work that no longer waits. The waiting
// goroutine calls it.
func (w *Waiter) Yield() {
	if w.review == math.MaxInt64 {
		return
	}
	w.review = math.MaxInt64
	if w.turn.has {
		w.turn.has = false
		_ = w.turn.p.give() // lowering it cannot be refused
	}
}

// Yielded returns how many times the priority was given up because the thread used over half of a
// core. The waiting goroutine calls it.
func (w *Waiter) Yielded() uint64 { return w.turn.lost }

// look, every fifoWindow, gives up the priority if the thread used a core for more than fifoShare
// since the last check, for any reason: it spun, it was behind, its receiver was slow. It takes it
// again after a window below that, if the next instant is still in the future, so that a thread
// that never sleeps has it for at most a window.
func (w *Waiter) look(now int64, onTime bool) {
	t := &w.turn
	used := t.p.used()
	busy := used-t.used > int64(fifoShare*float64(now-t.since))
	t.since, t.used = now, used
	w.review = now + fifoWindow
	switch {
	case t.has && busy:
		t.has = t.p.give() != nil
		t.lost++
	case !t.has && !busy && onTime:
		t.has = t.p.take() == nil
	}
}
