package selftest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
)

// step bounds how long the simulated system waits before it checks whether it is closed.
const step = int64(20 * time.Millisecond)

// A behaviour says when a simulated system answers. The turn is the instant at which it changes:
// turnIn after it took message turnAfter (messages count from 0, by their index in the schedule). A
// behaviour with a negative turnAfter never turns.
type behaviour struct {
	service   func(i int, turned bool) int64 // service time of message i, ns
	oneServer bool                           // a message waits for the previous one
	turnAfter int
	turnIn    int64 // ns
	frozen    int64 // ns after the turn during which its client blocks
}

// A visit is what the simulated system records about one message, in instants of its own clock except
// start, which is the run's.
type visit struct {
	start     int64 // from the header: the engine's hand-over instant
	departure int64 // intended
	after     int64 // clock reading after the completion returned
}

// A simulatedSystem is a simulated system that answers each message at an instant computed when it takes the
// message. It answers from its own goroutine on a locked thread, in order of departure; it never
// sleeps one service time after another, because the errors would add up. As a system rather than a
// driver it may read the clock. It is its own driver.Config and driver.Conn.
type simulatedSystem struct {
	clock     *pace.Clock
	cal       pace.Calibration
	producers int // message i is from producer i % producers (constant arrival)
	behaviour

	turn      atomic.Int64
	tardiness *measure.Histogram // answer minus departure
	inside    chan job           // in order of departure; with room for every message of the run
	closing   chan struct{}      // closed by Close
	once      sync.Once
	ended     chan struct{} // closed when answer has returned

	mu     sync.Mutex
	visits []visit // by index in the schedule
	last   int64   // last departure
}

// never is the instant of a turn that has not happened.
const never = int64(1) << 62

func newSimulatedSystem(clock *pace.Clock, cal pace.Calibration, producers, messages int, b behaviour) *simulatedSystem {
	s := &simulatedSystem{
		clock: clock, cal: cal, producers: producers, behaviour: b, visits: make([]visit, messages), tardiness: measure.NewHistogram(),
		inside: make(chan job, messages), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	s.turn.Store(never)
	return s
}

func (s *simulatedSystem) definition() driver.Definition {
	return driver.Definition{
		Name: "simulated", Title: "a simulated system", Summary: "Answers at instants that are known beforehand.",
		Capabilities: driver.Capabilities{PublishBlocks: s.frozen > 0, InProcess: true, Guarantees: []driver.Guarantee{driver.Buffered}},
		New:          func() driver.Config { return s },
	}
}

// Validate implements driver.Config.
func (s *simulatedSystem) Validate() error { return nil }

// Open implements driver.Config. It is called once.
func (s *simulatedSystem) Open(context.Context, driver.Run) (driver.Conn, error) {
	go s.answer()
	return s, nil
}

// Declare implements driver.Conn.
func (s *simulatedSystem) Declare(context.Context, ...driver.Destination) error { return nil }

// Delete implements driver.Conn.
func (s *simulatedSystem) Delete(context.Context, ...driver.Destination) error { return nil }

// Consumer implements driver.Conn: there is nothing to consume.
func (s *simulatedSystem) Consumer(context.Context, driver.ConsumerSpec) (driver.Consumer, error) {
	return nil, driver.ErrUnsupported
}

// Facts implements driver.Conn.
func (s *simulatedSystem) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{Name: "simulated", Version: "1", Confirms: driver.Confirms{Guarantee: driver.Buffered}}, nil
}

// Close implements driver.Conn: messages inside are never answered.
func (s *simulatedSystem) Close(context.Context) error {
	s.once.Do(func() { close(s.closing) })
	<-s.ended
	return nil
}

// Producer implements driver.Conn.
func (s *simulatedSystem) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &client{simulatedSystem: s, index: spec.Index, done: done, refusal: pace.NewWaiter(s.clock, s.cal)}, nil
}

// A job is a message inside the system.
type job struct {
	message *driver.Message
	done    driver.Completer
	visit   *visit
}

// answer completes each message at its departure, until Close.
func (s *simulatedSystem) answer() {
	defer close(s.ended)
	w := pace.NewWaiter(s.clock, s.cal)
	defer w.Lock()()
	for {
		select {
		case <-s.closing:
			s.refuse()
			return
		case j := <-s.inside:
			now := s.clock.Now()
			for now < j.visit.departure {
				if s.closed() {
					j.done.Complete(j.message, driver.ErrClosed)
					break
				}
				now = w.Until(min(j.visit.departure, now+step))
			}
			if now < j.visit.departure {
				continue
			}
			s.tardiness.Record(now - j.visit.departure)
			j.done.Complete(j.message, nil)
			j.visit.after = s.clock.Now()
		}
	}
}

func (s *simulatedSystem) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// refuse completes the messages inside as unanswered.
func (s *simulatedSystem) refuse() {
	for {
		select {
		case j := <-s.inside:
			j.done.Complete(j.message, driver.ErrClosed)
		default:
			return
		}
	}
}

// A client is a producer of the simulated system.
type client struct {
	*simulatedSystem
	index   int
	taken   int
	done    driver.Completer
	refusal *pace.Waiter
}

// Publish implements driver.Producer.
func (c *client) Publish(ctx context.Context, m *driver.Message) {
	s := c.simulatedSystem
	var st stamp.Stamp
	i := c.taken*s.producers + c.index
	if i >= len(s.visits) || stamp.Read(m.Payload, runNumber, &st) != stamp.Good {
		c.done.Complete(m, driver.ErrUnsupported)
		return
	}
	at := s.clock.Now()
	turn := s.turn.Load()
	if end := turn + s.frozen; at >= turn && at < end {
		for at < end { // the client blocks
			if ctx.Err() != nil {
				c.done.Complete(m, ctx.Err())
				return
			}
			at = c.refusal.Until(min(end, at+step))
		}
	}
	c.taken++
	if i == s.turnAfter {
		turn = at + s.turnIn
		s.turn.Store(turn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := at
	if s.oneServer {
		begin = max(begin, s.last)
	}
	// Departures are monotonic: answers leave in order.
	s.last = max(s.last, begin+s.service(i, at >= turn))
	v := &s.visits[i]
	v.start, v.departure = st.Start, s.last
	s.inside <- job{m, c.done, v}
}

// Flush implements driver.Producer.
func (c *client) Flush(ctx context.Context) error {
	for len(c.inside) > 0 && ctx.Err() == nil {
		c.refusal.Until(c.clock.Now() + int64(time.Millisecond))
	}
	return ctx.Err()
}

// Close implements driver.Producer. It ends the whole simulated system, since producers are closed
// together.
func (c *client) Close(ctx context.Context) error { return c.simulatedSystem.Close(ctx) }
