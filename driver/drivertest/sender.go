package drivertest

import (
	"context"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// A fate is the outcome of one message so far.
type fate struct {
	completions int
	err         error
}

// inFlight is the limit that senders are opened with, and respect.
const inFlight = 64

// A sender is a producer with its completer.
type sender struct {
	e    *env
	p    driver.Producer
	room chan struct{} // holds a token for each message in flight

	mu       sync.Mutex
	fates    map[*driver.Message]*fate
	complete func(m *driver.Message, err error) // the check's hook in Complete; nil: none
}

// sender opens a producer to the destinations.
func (s *session) sender(destinations ...string) *sender {
	return s.senderBy(s.conn.Producer, destinations...)
}

// opener is Conn.Producer, or Requester.Requester.
type opener func(context.Context, driver.ProducerSpec, driver.Completer) (driver.Producer, error)

func (s *session) senderBy(open opener, destinations ...string) *sender {
	x := &sender{e: s.env, room: make(chan struct{}, inFlight), fates: map[*driver.Message]*fate{}}
	spec := driver.ProducerSpec{Destinations: destinations, InFlight: inFlight}
	s.must("open a producer", func(ctx context.Context) (err error) {
		x.p, err = open(ctx, spec, x)
		return err
	})
	s.later(x.p.Close)
	return x
}

func (x *sender) Complete(m *driver.Message, err error) {
	x.mu.Lock()
	hook := x.complete
	x.mu.Unlock()
	if hook != nil {
		hook(m, err) // before the check can see that m has completed
	}
	x.mu.Lock()
	f := x.fates[m]
	if f == nil {
		f = &fate{}
		x.fates[m] = f
	}
	f.completions++
	f.err = err
	x.mu.Unlock()
	select {
	case <-x.room:
	default: // one completion too many
	}
}

// fate returns the outcome of m so far.
func (x *sender) fate(m *driver.Message) fate {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f := x.fates[m]; f != nil {
		return *f
	}
	return fate{}
}

// completed returns how many of ms have completed at least times times.
func (x *sender) completed(ms []*driver.Message, times int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, m := range ms {
		if f := x.fates[m]; f != nil && f.completions >= times {
			n++
		}
	}
	return n
}

// reserve waits for a free slot for one more message in flight.
func (x *sender) reserve(ctx context.Context) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case x.room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}

// publish publishes ms, one by one, with at most inFlight of them under way. It ends the check if a
// call hangs.
func (x *sender) publish(ms ...*driver.Message) {
	var stuck *driver.Message
	returned := within(2*patience, func() {
		for _, m := range ms {
			if !x.reserve(x.e.ctx) {
				stuck = m
				return
			}
			x.p.Publish(x.e.ctx, m)
		}
	})
	if !returned {
		x.e.fatalf("publishing %d messages has not returned", len(ms))
	}
	if stuck != nil {
		x.e.fatalf("%d messages in flight, and none completes: %d of %d completed", inFlight, x.completed(ms, 1), len(ms))
	}
}

// await waits until all of ms have completed, and ends the check if they do not.
func (x *sender) await(ms ...*driver.Message) {
	if !eventually(func() bool { return x.completed(ms, 1) == len(ms) }) {
		x.e.fatalf("%d of %d messages completed within %v", x.completed(ms, 1), len(ms), patience)
	}
}

// send publishes ms, which must all be confirmed.
func (x *sender) send(ms ...*driver.Message) {
	x.publish(ms...)
	x.await(ms...)
	for _, m := range ms {
		if f := x.fate(m); f.err != nil {
			x.e.fatalf("a message of %d bytes was not confirmed: %v", len(m.Payload), f.err)
		}
	}
}
