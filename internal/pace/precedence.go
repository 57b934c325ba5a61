package pace

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// How a waiter takes precedence; see Calibration.FIFO.
const (
	// fifoPriority is above nothing at all of the policy and far below what the
	// kernel's own threads have.
	fifoPriority = 10
	// fifoShare is how much of a core a waiter may use and keep its precedence.
	fifoShare = 0.5
	// fifoWindow, in ns, is how long it may use more than that in a row, and how
	// long it goes without precedence at the least when it did.
	fifoWindow = int64(50 * time.Millisecond)
)

// ErrNoFIFO is why CheckFIFO says no.
var ErrNoFIFO = errors.New("SCHED_FIFO is not available")

// CheckFIFO returns nil where waiters can take SCHED_FIFO. Otherwise the error,
// which is ErrNoFIFO, says what is needed. It tries on a thread of its own and
// leaves nothing changed.
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

// lockFirst is lockThread, with precedence; it is not locked where the error is
// that of precede.
func lockFirst() (p *precedence, unlock func(), err error) {
	release := lockThread()
	if p, err = precede(); err != nil {
		release()
		return nil, nil, err
	}
	return p, sync.OnceFunc(func() {
		// A thread that kept its precedence must serve no other goroutine: it would end
		// with the goroutine, which stays locked to it.
		if p.end() == nil {
			release()
		}
	}), nil
}

// CalibrateFIFO is Calibrate(lanes).At(perSecond) for waiters that are to take
// SCHED_FIFO, which is measured under that policy too. Where they must not, FIFO
// is not set, Why says why, and all is as without.
//
// They must not where they would leave no core to the rest, where it is not known
// how often they wait, and where they would spin for more than half of the time:
// nothing else gets the core of a thread under that policy but while it sleeps. It
// takes 0.3 s, or twice that where it was measured in vain.
func CalibrateFIFO(lanes int, perSecond float64) Calibration {
	why := barred(lanes, Cores(), perSecond)
	if why == "" {
		cal, err := calibrate(lanes, true)
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
	cal := Calibrate(lanes).At(perSecond)
	if !cal.virtual {
		cal.Why += "; takes no precedence (SCHED_FIFO), as " + why
	}
	return cal
}

// first is the calibration with precedence.
func (cal Calibration) first() Calibration {
	cal.FIFO = true
	cal.Why += "; takes precedence over all else (SCHED_FIFO)"
	return cal
}

// barred says why lanes must not have precedence whatever their margin; "":
// nothing bars it.
func barred(lanes, cores int, perSecond float64) string {
	switch {
	case cores-lanes < 1:
		return fmt.Sprintf("%s would take the last of %s", count(lanes, "lane"), count(cores, "core"))
	case perSecond <= 0:
		return "it is not known how often a lane would wait (closed loop, trace, or nothing to send)"
	}
	return ""
}

// tooBusy says why waiters of perSecond waits each must not have precedence; "":
// they may. The last sleepCost are spun whatever the margin.
func (cal Calibration) tooBusy(perSecond float64) string {
	spun := max(cal.Margin, sleepCost)
	share := float64(spun) * perSecond / 1e9
	if share <= fifoShare {
		return ""
	}
	return fmt.Sprintf("a lane that spins %v of each of %.0f waits a second would keep a core for over half of the time", time.Duration(spun), perSecond)
}

// A turn is a waiter's precedence while its goroutine is locked: taken at first,
// given up while its thread uses a core for more than fifoShare.
type turn struct {
	p     *precedence
	has   bool
	since int64 // the instant of the latest look, by the waiter's clock
	used  int64 // and what the thread had used of a core then
	lost  uint64
}

// lockFirst is Lock with precedence.
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

// Heed tells the waiter the time where its goroutine works on without waiting, so
// that one with precedence does not keep it for long: Until does that by itself.
// It costs a comparison, and two system calls every 50 ms where there is
// precedence to be given up.
func (w *Waiter) Heed(now int64) {
	if now >= w.review {
		w.look(now, false)
	}
}

// Yield gives up precedence until unlock, for work that does not wait any more.
// The goroutine that waits calls it.
func (w *Waiter) Yield() {
	if w.review == math.MaxInt64 {
		return
	}
	w.review = math.MaxInt64
	if w.turn.has {
		w.turn.has = false
		_ = w.turn.p.give() // giving up is not refused
	}
}

// Yielded is how many times precedence was given up because the thread used over
// half of a core. The goroutine that waits asks.
func (w *Waiter) Yielded() uint64 { return w.turn.lost }

// look, every fifoWindow, gives up precedence where the thread used a core for
// more than fifoShare since the last look, whatever for: it spun, it was behind,
// what it handed messages to was slow. It is taken again when a window was not
// like that and the next instant is yet to come, so that who never sleeps never
// has it for longer than a window.
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
