package mqtt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/paho/session/state"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// A consumer has a connection that subscribes to each of its topics, and a session that outlives
// the connection.
type consumer struct {
	conn    *conn
	run     driver.Run
	name    string
	plan    plan
	filters []string
	sources map[string]int32 // by topic: index of the destination
	echo    string           // its own topic, for round trips
	set     sockets.Set

	now    atomic.Pointer[line] // nil: Run has not begun
	forgot bool                 // the server no longer has the session
	asks   chan struct{}        // holds a token during a round trip
	sends  chan struct{}        // holds a token while the client sends a probe
	asked  uint64
	heard  chan uint64 // probes that came back

	mu      sync.Mutex
	sink    driver.Sink // nil: deliver nothing
	one     [1]driver.Delivery
	leaving atomic.Bool   // nor anything that waits for mu
	taken   atomic.Uint64 // deliveries started
	settled atomic.Uint64 // deliveries that need nothing more
}

// forgetLimit is how long Close waits for the server to forget a session.
const forgetLimit = 2 * time.Second

// Consumer connects, subscribes and disconnects: from then on, the session stores messages.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{
		conn: c, run: c.run.For(&spec), name: spec.Name(),
		sources: map[string]int32{}, asks: make(chan struct{}, 1), sends: make(chan struct{}, 1), heard: make(chan uint64, 1),
	}
	id := c.name("c" + names.Token(spec.Subscription))
	x.echo = c.own("echo/" + id)
	x.plan = plan{id: id, keep: true, memory: state.NewInMemory(), take: x.take, complete: func(*driver.Message, error) {}}
	if spec.Prefetch > 0 {
		x.plan.ahead = uint16(min(spec.Prefetch, math.MaxUint16))
	}
	for i, d := range spec.Destinations {
		t, err := c.topic(d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.sources[t] = int32(i)
		if c.cfg.Shared {
			t = "$share/" + names.Join(100, "weir", c.run.ID, spec.Subscription) + "/" + t
		}
		x.filters = append(x.filters, t)
	}
	l, err := x.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	x.now.Store(nil)
	l.close(false)
	c.ends.Note(x, spec.Subscription)
	return x, nil
}

func (x *consumer) connect(ctx context.Context) (*line, error) {
	l, err := x.conn.cfg.dial(ctx, &x.set, x.plan)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, x.conn.cfg.Timeout)
	defer cancel()
	if err := x.subscribe(ctx, l); err != nil {
		l.close(true)
		return nil, errorMap.Unreachable(err)
	}
	x.now.Store(l)
	return l, nil
}

// subscribe subscribes to the topics and to the consumer's own topic.
func (x *consumer) subscribe(ctx context.Context, l *line) error {
	granted, err := l.subscribe(ctx, byte(x.conn.cfg.QoS), x.filters...)
	if err != nil {
		return err
	}
	for i, level := range granted {
		if level >= refused {
			return fmt.Errorf("subscription to %s: %w", x.filters[i], reason(level))
		}
		if int(level) < x.conn.cfg.QoS {
			return fmt.Errorf("subscription to %s: qos %d: the server grants %d: %w", x.filters[i], x.conn.cfg.QoS, level, driver.ErrUnsupported)
		}
	}
	_, err = l.subscribe(ctx, 0, x.echo)
	return err
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	x.mu.Lock()
	x.sink = sink
	x.mu.Unlock()
	l, err := x.connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("subscribe: %w", err)
	}
	sink.Ready()
	k := retry.Connection[line]{
		Connect: x.connect,
		Hold: func(ctx context.Context, l *line) error {
			select {
			case <-l.life.Done():
			case <-ctx.Done():
				x.leave(l)
				return nil
			}
			why := context.Cause(l.life)
			sink.Fault(why)
			return why
		},
		Made: func(_, _ *line, why error) { x.run.Tell(driver.Reconnect, x.name+": "+why.Error()) },
		Wait: x.conn.cfg.ReconnectWait, For: math.MaxInt64, Final: failure.Hopeless,
	}
	if err := k.Keep(ctx, l); err != nil {
		return fmt.Errorf("subscription lost: %w", err)
	}
	return nil
}

// leave stops deliveries, and ends the session once accepted messages are settled.
func (x *consumer) leave(l *line) {
	x.leaving.Store(true) // messages in the client would otherwise keep taking mu before this goroutine
	x.mu.Lock()
	x.sink = nil
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	for range x.conn.cfg.QoS + 1 {
		_ = l.ask(ctx) // an unresponsive server notices the closed connection
	}
	l.close(true)
	x.forgot = x.conn.cfg.Version == version5
}

// take delivers a message, and reports whether to acknowledge it.
func (x *consumer) take(topic string, payload []byte, again bool) bool {
	if topic == x.echo {
		x.hear(payload)
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sink == nil || x.leaving.Load() {
		return false
	}
	source, ok := x.sources[topic]
	if !ok {
		source = -1
	}
	x.one[0] = driver.Delivery{Payload: payload, Partition: -1, Source: source, Redelivered: again}
	x.taken.Add(1)
	err := x.sink.Deliver(x.one[:])
	if err != nil && x.conn.cfg.QoS == 0 {
		x.sink.Fault(fmt.Errorf("not delivered again, QoS 0 has nothing to refuse with: %w", err))
	}
	if err == nil || x.conn.cfg.QoS == 0 {
		x.settled.Add(1)
	}
	return err == nil
}

// hear records a probe that came back.
func (x *consumer) hear(payload []byte) {
	if len(payload) != 8 {
		return
	}
	select {
	case <-x.heard: // an older probe
	default:
	}
	x.heard <- binary.BigEndian.Uint64(payload)
}

// left implements end. Messages that the server has for the consumer arrive before a probe, except
// those waiting for acknowledgements: with QoS 1, one packet from the client frees a slot, with QoS
// 2 two.
func (x *consumer) left(ctx context.Context) (uint64, error) {
	l := x.now.Load()
	if l == nil {
		return 0, nil // not subscribed
	}
	if n := x.open(); n > 0 {
		return n, nil
	}
	select {
	case x.asks <- struct{}{}:
		defer func() { <-x.asks }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	before := x.taken.Load()
	for range x.conn.cfg.QoS + 1 {
		if err := x.question(ctx, l); err != nil {
			return 0, err
		}
	}
	if n := x.open(); n > 0 || x.taken.Load() == before {
		return n, nil
	}
	return 1, nil // more may follow
}

// open returns the number of unsettled deliveries.
func (x *consumer) open() uint64 {
	settled := x.settled.Load() // load before taken, which is never smaller
	return x.taken.Load() - settled
}

// question sends a probe message to the consumer itself and waits for it.
func (x *consumer) question(ctx context.Context, l *line) error {
	select {
	case x.sends <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	x.asked++
	n := x.asked
	go func() { // may wait for the network
		defer func() { <-x.sends }()
		l.publish(x.echo, 0, &driver.Message{Payload: binary.BigEndian.AppendUint64(nil, n)})
		l.flush()
	}()
	for {
		select {
		case got := <-x.heard:
			if got == n {
				return nil
			}
		case <-l.life.Done():
			return context.Cause(l.life)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements driver.Consumer. If Run has not ended the session, Close reconnects without a
// session, so that the server drops it, and waits at most 2 s for that.
func (x *consumer) Close(ctx context.Context) error {
	x.conn.ends.Forget(x)
	defer x.set.Refuse()
	if x.forgot {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forgetLimit)
	defer cancel()
	forget := x.plan
	forget.keep = false
	l, err := x.conn.cfg.dial(ctx, &x.set, forget)
	if err != nil && !errors.Is(err, driver.ErrUnreachable) {
		return fmt.Errorf("ending the session: %w", err)
	}
	if err == nil {
		l.close(true)
	}
	return nil
}
