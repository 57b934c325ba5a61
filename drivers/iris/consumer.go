package iris

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// queued limits the requests that a feed has replied to and not yet delivered.
const queued = 1024

// A consumer has a feed for each of its destinations.
type consumer struct {
	conn    *conn
	feeds   []*feed
	missing atomic.Int32 // feeds that are not ready yet
}

// A feed is a member of one cluster, or the subscriber of one topic.
type feed struct {
	conn      *conn
	events    driver.Run
	name      string
	at        string
	target    string
	source    int32
	responds  bool // answers a request with its own bytes once Deliver has accepted it
	sockets   sockets.Set
	first     *session
	markers   markers
	queue     chan []byte          // answered requests
	arrivals  *fifo.Queue[arrival] // messages that came through tunnels
	owed      atomic.Int64         // arrivals that Deliver has not accepted
	count     atomic.Uint64        // messages
	busy      atomic.Bool          // in Deliver
	delivered [1]driver.Delivery
}

// Consumer connects once for each destination.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return c.consumer(ctx, spec, false)
}

// Responder is Consumer for requests, which are answered with their own bytes.
func (c requesting) Responder(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return c.consumer(ctx, spec, true)
}

func (c *conn) consumer(ctx context.Context, spec driver.ConsumerSpec, responds bool) (driver.Consumer, error) {
	x := &consumer{conn: c}
	for i, d := range spec.Destinations {
		target, err := c.place(d)
		f := &feed{
			conn: c, events: c.run.For(&spec), name: spec.Name(), at: c.cfg.at(spec.Index + i),
			target: target, source: int32(i), responds: responds, queue: make(chan []byte, queued), arrivals: fifo.New[arrival](),
		}
		x.feeds = append(x.feeds, f)
		if err == nil {
			f.first, err = f.connect(ctx)
		}
		if err != nil {
			_ = x.Close(ctx)
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
	}
	c.consumers.Note(x, spec.Subscription)
	return x, nil
}

// joinPause is the pause before a feed rejoins: a node drops a connection that joins a cluster
// while the last member leaves.
const joinPause = 50 * time.Millisecond

// connect starts a session and subscribes.
func (f *feed) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, f.conn.cfg.Timeout)
	defer cancel()
	cluster := f.target
	if f.conn.cfg.Pattern == patternPublish {
		cluster = ""
	}
	var s *session
	dropped := func(err error) bool { return errors.Is(err, io.EOF) }
	err := retry.While(ctx, joinPause, dropped, func() (err error) {
		s, err = f.conn.cfg.dial(ctx, &f.sockets, f.at, cluster)
		return err
	})
	if err == nil && cluster == "" {
		if err = s.subscribe(f.target); err != nil {
			_ = s.Close()
		}
	}
	if err != nil {
		return nil, unmade(err)
	}
	return s, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x.missing.Store(int32(len(x.feeds)))
	one := &turns{Sink: sink}
	var reaching sync.WaitGroup
	errs := make([]error, len(x.feeds))
	for i, f := range x.feeds {
		reaching.Go(func() {
			switch err := x.conn.reach(ctx, f); {
			case ctx.Err() != nil:
			case err != nil:
				errs[i] = err
				cancel()
			case x.missing.Add(-1) == 0:
				one.Ready()
			}
		})
	}
	err := blocking.Together(ctx, one, len(x.feeds), func(ctx context.Context, i int, sink driver.Sink) error {
		return x.feeds[i].run(ctx, sink)
	})
	cancel()
	reaching.Wait()
	return errors.Join(append(errs, err)...)
}

// turns serializes the calls of Ready and Deliver.
type turns struct {
	driver.Sink
	mu sync.Mutex
}

func (t *turns) Ready() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Sink.Ready()
}

func (t *turns) Deliver(ds []driver.Delivery) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Sink.Deliver(ds)
}

// run delivers until ctx ends, or the connection is permanently lost.
func (f *feed) run(ctx context.Context, sink driver.Sink) error {
	var delivering sync.WaitGroup
	defer delivering.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch {
	case f.conn.cfg.Pattern == patternTunnel:
		delivering.Go(func() { f.deliverArrivals(ctx, sink) })
	case f.conn.cfg.Pattern == patternRequest && !f.responds:
		delivering.Go(func() { f.deliverQueued(ctx, sink) })
	}
	line := retry.Connection[session]{
		Connect: f.connect,
		Hold:    func(ctx context.Context, s *session) error { return f.hold(ctx, s, sink) },
		Made:    func(_, _ *session, _ error) { f.events.Tell(driver.Reconnect, f.name) },
		Wait:    f.conn.cfg.ReconnectWait, For: math.MaxInt64, Final: failure.Hopeless,
	}
	if err := line.Keep(ctx, f.first); err != nil {
		return fmt.Errorf("subscription lost: %w", err)
	}
	return nil
}

// hold receives on a connection until it ends.
func (f *feed) hold(ctx context.Context, s *session, sink driver.Sink) error {
	leave := s.leave
	var in *inlets
	if f.conn.cfg.Pattern == patternTunnel {
		in = &inlets{f: f, s: s, open: map[uint64]*inlet{}}
		leave = in.end
	}
	defer context.AfterFunc(ctx, leave)()
	defer func() { _ = s.Close() }()
	var e event
	for {
		if err := s.next(&e); err != nil {
			err = failure.Map{}.Lost(err)
			if ctx.Err() == nil {
				sink.Fault(fmt.Errorf("what is sent until it is connected again is lost: %w", err))
			}
			return err
		}
		var err error
		switch {
		case in != nil:
			err = in.take(&e)
		case ctx.Err() == nil: // otherwise the relay releases the session soon
			err = f.take(ctx, s, &e, sink)
		}
		if err != nil && ctx.Err() == nil {
			sink.Fault(err)
		}
	}
}

// take handles one message from the relay.
func (f *feed) take(ctx context.Context, s *session, e *event, sink driver.Sink) error {
	number, marked := f.conn.number(e.body)
	switch {
	case marked && e.op == opRequest:
		return s.reply(e.id, []byte{1}, false)
	case marked:
		f.markers.add(number)
		return nil
	case e.op == opReply: // the feed has sent no requests
		return nil
	case e.op != opRequest:
		return f.deliver(sink, e.body)
	case f.responds:
		refused := f.deliver(sink, e.body)
		return errors.Join(refused, s.reply(e.id, e.body, refused != nil))
	}
	f.owed.Add(1)
	select {
	case f.queue <- bytes.Clone(e.body):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.reply(e.id, []byte{1}, false)
}

// deliverQueued delivers answered requests.
func (f *feed) deliverQueued(ctx context.Context, sink driver.Sink) {
	for {
		select {
		case body := <-f.queue:
			if err := f.deliver(sink, body); err != nil {
				sink.Fault(err)
			}
			f.owed.Add(-1)
		case <-ctx.Done():
			return
		}
	}
}

// deliver delivers one message. Only one goroutine of a feed calls it.
func (f *feed) deliver(sink driver.Sink, body []byte) error {
	f.busy.Store(true)
	defer f.busy.Store(false)
	f.delivered[0] = driver.Delivery{Payload: body, Partition: -1, Source: f.source}
	err := sink.Deliver(f.delivered[:])
	f.count.Add(1)
	if err != nil {
		return fmt.Errorf("not delivered again, Iris cannot: %w", err)
	}
	return nil
}

func (x *consumer) Close(context.Context) error {
	x.conn.consumers.Forget(x)
	for _, f := range x.feeds {
		f.sockets.Refuse()
	}
	return nil
}

// unmade maps the error of a failed connect to the contract's errors.
func unmade(err error) error {
	if errors.Is(err, errDenied) {
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	return failure.Map{}.Unreachable(err)
}
