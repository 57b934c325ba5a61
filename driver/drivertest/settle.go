package drivertest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// settleChecks test acknowledging.
func settleChecks() []check {
	return []check{
		{
			name: "NackRedelivers", rule: "A nil error settles every delivery; any other returns them unsettled, and the system delivers them again",
			lacks: lacks("Nack", func(c driver.Capabilities) bool { return c.Nack }),
			run:   nackRedelivers,
		},
		{
			name: "DeadLetters", rule: "With the last of Destination.Refusals refusals the system moves a message to the dead letters",
			lacks: lacks("DeadLetters", func(c driver.Capabilities) bool { return c.DeadLetters }),
			run:   deadLetters,
		},
		{
			name: "SettledNotRedelivered", rule: "A nil error from Deliver settles every delivery, and Run settles what Deliver has accepted before it returns",
			lacks: lacksConsume, run: settledNotRedelivered,
		},
		{
			name: "SettleConfirmed", rule: "Settled reports the settlement of what Deliver accepted, once, with Token as Deliver left it",
			lacks: lacks("SettleConfirmed", func(c driver.Capabilities) bool { return c.SettleConfirmed }),
			run:   settleConfirmed,
		},
	}
}

func nackRedelivers(e *env) {
	for _, settle := range acknowledged(e.caps) {
		s := e.open()
		d := "d-" + settle.String()
		s.declare(d)
		refused := map[string]bool{} // used by the consumer's goroutine only
		spec := e.spec("s", d)
		spec.Settle = settle
		r := s.receive(spec, func(ds []driver.Delivery) error {
			var err error
			for _, d := range ds {
				if !refused[string(d.Payload)] {
					refused[string(d.Payload)] = true
					err = errors.New("refused for the first time")
				}
			}
			return err
		})
		ms := messages(d, "nack", 20, 64)
		s.sender(d).send(ms...)
		if !eventually(func() bool { return contains(r.texts(), payloads(ms)) }) {
			missing, _ := difference(payloads(ms), r.texts())
			e.fatalf("settle %v: of %d messages that were refused at first, %d did not come again%s%s",
				settle, len(ms), len(missing), sample(missing), lost([]*receiver{r}))
		}
	}
}

// refusals is how often a message of the check DeadLetters may be nacked.
const refusals = 3

func deadLetters(e *env) {
	for _, settle := range acknowledged(e.caps) {
		s := e.open()
		name := "d-" + settle.String()
		s.declare(driver.DeadLetters(name))
		d := plain(name)
		d.Refusals = refusals
		s.declareAs(d)
		var mu sync.Mutex
		refused := map[string]int{}
		spec := e.spec("s", name)
		spec.Settle, spec.Prefetch = settle, 1
		// Of every two messages one is nacked each time, the other one time less.
		r := s.receive(spec, func(ds []driver.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			var err error
			for _, d := range ds {
				text := string(d.Payload)
				if strings.HasPrefix(text, "dead") || refused[text] < refusals-1 {
					refused[text]++
					err = errors.New("refused")
				}
			}
			if err != nil {
				time.Sleep(10 * time.Millisecond) // a system may redeliver a nacked message at once, endlessly
			}
			return err
		})
		dead := s.receive(e.spec("letters", driver.DeadLetters(name)), nil)
		good, bad := messages(name, "good", 5, 64), messages(name, "dead", 5, 64)
		x := s.sender(name)
		for i := range good { // one by one: a call that yields several nacks them together
			x.send(good[i])
			if !eventually(func() bool { return slices.Contains(r.texts(), payloads(good)[i]) }) {
				e.fatalf("settle %v: a message that was refused %d times did not come again%s", settle, refusals-1, lost([]*receiver{r}))
			}
			x.send(bad[i])
			if !eventually(func() bool { return slices.Contains(dead.texts(), payloads(bad)[i]) }) { // another may have arrived twice
				e.fatalf("settle %v: a message that is always refused did not come to the dead letters%s", settle, lost([]*receiver{r, dead}))
			}
		}
		who := "settle " + settle.String() + ": "
		e.expect(who+"the subscription", payloads(good), r)
		if e.s.h.DeadTwice == "" {
			e.expect(who+"the dead letters", payloads(bad), dead)
		} else if missing, extra := difference(payloads(bad), slices.Compact(slices.Sorted(slices.Values(dead.texts())))); len(missing)+len(extra) > 0 {
			e.errorf("%sthe dead letters: %d are missing%s, %d should not have come%s", who, len(missing), sample(missing), len(extra), sample(extra))
		}
		mu.Lock()
		for _, text := range payloads(bad) {
			if n := refused[text]; n != refusals {
				e.errorf("settle %v: a message was refused %d times, and then it was a dead letter; want %d", settle, n, refusals)
				break
			}
		}
		mu.Unlock()
	}
}

// acknowledged returns the declared ways of settling in which Deliver's result reaches the system.
func acknowledged(c driver.Capabilities) []driver.Settle {
	var ss []driver.Settle
	for _, s := range c.Settle {
		if s == driver.SettleEach || s == driver.SettleBatch {
			ss = append(ss, s)
		}
	}
	return ss
}

func settledNotRedelivered(e *env) {
	for _, settle := range e.caps.Settle {
		s := e.open()
		d := "d-" + settle.String()
		s.declare(d)
		x := s.sender(d)
		spec := e.spec("s", d)
		spec.Settle = settle
		first := s.receive(spec, nil)
		ms := messages(d, "settled", 50, 64)
		x.send(ms...)
		if !eventually(func() bool { return len(first.texts()) >= len(ms) }) {
			e.fatalf("settle %v: %d of %d messages were delivered", settle, len(first.texts()), len(ms))
		}
		first.close()
		second := s.receive(spec, nil)
		e.quiet()
		more := messages(d, "alive", 1, 64)
		x.send(more...)
		who := "settle " + settle.String() + ": a second consumer of the subscription, opened when all had been settled"
		e.expect(who, payloads(more), second)
	}
}

func settleConfirmed(e *env) {
	for _, settle := range acknowledged(e.caps) {
		s := e.open()
		d := "d-" + settle.String()
		s.declare(d)
		spec := e.spec("s", d)
		spec.Settle = settle
		r := s.receive(spec, nil)
		ms := messages(d, "confirmed", 50, 64)
		s.sender(d).send(ms...)
		eventually(func() bool { return len(r.texts()) >= len(ms) && r.settlements() >= len(ms) })
		r.close()
		e.quiet()
		r.check(settle)
	}
}

// settlements returns how many deliveries Settled was called with.
func (r *receiver) settlements() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, times := range r.settled {
		n += times
	}
	return n
}

// check compares the settlements with the deliveries, which were all accepted.
func (r *receiver) check(settle driver.Settle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.refused {
		r.e.errorf("settle %v: a settlement failed: %v", settle, err)
		return
	}
	for token := uint64(1); token <= r.tokens; token++ {
		if n := r.settled[token]; n != 1 {
			r.e.errorf("settle %v: delivery %d of %d was reported settled %d times, with its token", settle, token, r.tokens, n)
			return
		}
	}
	if n := len(r.settled); uint64(n) != r.tokens {
		r.e.errorf("settle %v: %d tokens were reported settled, %d were given out", settle, n, r.tokens)
	}
}
