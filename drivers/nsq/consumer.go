package nsq

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	prefetch = 500             // if the scenario does not set it
	endLimit = 5 * time.Second // for the last settlements
)

// A consumer has a connection per topic to every server.
type consumer struct {
	conn     *conn
	run      driver.Run
	name     string
	prefetch int
	places   []placed
}

// Consumer creates missing channels of the subscription.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c, run: c.run.For(&spec), name: spec.Name(), prefetch: spec.Prefetch}
	if x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	return x, each.Name(spec.Destinations, func(i int, d string) error {
		topic, err := c.topic(d)
		if err != nil {
			return err
		}
		nodes, err := c.serving(ctx, topic)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			c.meet(n)
			p := placed{n, topic, c.channel(spec.Subscription), int32(i)}
			if err := c.declareChannel(ctx, p); err != nil {
				return err
			}
			x.places = append(x.places, p)
		}
		return nil
	})
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	r := &running{
		consumer: x, sink: sink,
		queue: make(chan yielded, x.prefetch), failed: make(chan error, 1), ready: make(chan struct{}, len(x.places)),
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range x.places {
		r.add(life, p, true)
	}
	if len(x.conn.lookupds) > 0 {
		r.feeding.Go(func() { r.discover(life) })
	}
	err := r.deliver(ctx)
	cancel()
	r.finish()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Close implements driver.Consumer. Run has ended the connections.
func (x *consumer) Close(context.Context) error { return nil }

// A running is one call of Run.
type running struct {
	consumer *consumer
	sink     driver.Sink
	queue    chan yielded   // messages from the connections
	ready    chan struct{}  // holds a token for each initial feed that is subscribed
	failed   chan error     // holds the first reason why the subscription is permanently lost
	feeding  sync.WaitGroup // feeds, and discover
	ds       [1]driver.Delivery

	mu    sync.Mutex
	feeds []*feed
}

// A yielded is a message with the index of its destination.
type yielded struct {
	*client.Message
	source int32
}

// deliver delivers messages until ctx ends or the subscription is lost.
func (r *running) deliver(ctx context.Context) error {
	missing := len(r.consumer.places)
	late := time.NewTimer(readyLimit)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return fmt.Errorf("subscription lost: %w", err)
		case <-r.ready:
			if missing--; missing == 0 {
				late.Stop()
				r.sink.Ready()
			}
		case <-late.C:
			return fmt.Errorf("subscribing: %d connections are not subscribed after %v: %w", missing, readyLimit, driver.ErrTimeout)
		case m := <-r.queue:
			r.ds[0] = driver.Delivery{Payload: m.Body, Partition: -1, Source: m.source, Redelivered: m.Attempts > 1}
			if r.sink.Deliver(r.ds[:]) == nil {
				m.Finish()
			} else {
				m.RequeueWithoutBackoff(r.consumer.conn.cfg.RequeueDelay)
			}
		}
	}
}

// finish gives back undelivered messages, and returns when all settlements are written and the
// connections closed, or after endLimit.
func (r *running) finish() {
	ended := make(chan struct{})
	go func() {
		r.feeding.Wait()
		close(ended)
	}()
	given := make(chan struct{})
	go func() {
		defer close(given)
		for {
			select {
			case m := <-r.queue:
				m.RequeueWithoutBackoff(0)
			case <-ended:
				return
			}
		}
	}()
	late := time.NewTimer(endLimit)
	defer late.Stop()
	select {
	case <-given:
	case <-late.C:
		r.sink.Fault(fmt.Errorf("last settlements: not written within %v: %w", endLimit, driver.ErrTimeout))
	}
}

// add starts a feed.
func (r *running) add(life context.Context, p placed, first bool) {
	f := &feed{running: r, placed: p, first: first}
	r.mu.Lock()
	r.feeds = append(r.feeds, f)
	r.mu.Unlock()
	r.feeding.Go(func() { f.keep(life) })
}

// share returns how many messages may be in flight on each connection.
func (r *running) share() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(1, r.consumer.prefetch/len(r.feeds))
}

// discover asks lookupd for more servers of the topics.
func (r *running) discover(life context.Context) {
	c := r.consumer.conn
	wanted := map[string]placed{} // by topic
	for _, p := range r.consumer.places {
		wanted[p.topic] = p
	}
	for retry.Pause(life, c.cfg.LookupdPoll) {
		for topic, p := range wanted {
			nodes, err := c.lookup(life, topic)
			if err != nil && life.Err() == nil {
				r.sink.Fault(fmt.Errorf("looking for more servers: %w", err))
			}
			for _, n := range nodes {
				r.mu.Lock()
				known := slices.ContainsFunc(r.feeds, func(f *feed) bool { return f.node.address == n.address && f.topic == topic })
				r.mu.Unlock()
				if known {
					continue
				}
				c.meet(n)
				c.run.Tell("rebalance", r.consumer.name+" found "+n.address)
				p.node = n
				r.add(life, p, false)
				r.spread()
			}
		}
	}
}

// spread updates every connection's share.
func (r *running) spread() {
	r.mu.Lock()
	feeds := slices.Clone(r.feeds)
	r.mu.Unlock()
	share := r.share()
	for _, f := range feeds {
		if s := f.current(); s != nil {
			s.ask(share)
		}
	}
}

// A feed consumes one channel of one topic on one server.
type feed struct {
	placed
	running *running
	first   bool // Ready waits for it

	mu  sync.Mutex
	now *stream // nil: not subscribed
}

func (f *feed) current() *stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *feed) set(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = s
}

// keep subscribes, and resubscribes until life ends or the server refuses.
func (f *feed) keep(life context.Context) {
	r := f.running
	for again := false; ; again = true {
		s, err := f.subscribe(life)
		switch {
		case life.Err() != nil && s == nil:
			return
		case err != nil && (!again && f.first || failure.Hopeless(err)):
			f.fail(err)
			return
		case err != nil:
			if !retry.Pause(life, r.consumer.conn.cfg.ReconnectWait) {
				return
			}
			continue
		case again:
			r.consumer.run.Tell(driver.Reconnect, r.consumer.name+" to "+f.node.address)
		case f.first:
			r.ready <- struct{}{}
		}
		f.set(s)
		s.ask(r.share())
		select {
		case <-life.Done():
			s.leave()
			return
		case <-s.down:
		}
		f.set(nil)
		r.sink.Fault(words.Lost(s.why()))
		// The client is done with the connection when everything it yielded has been handled, which
		// may take long.
		r.feeding.Go(s.end)
		if !retry.Pause(life, r.consumer.conn.cfg.ReconnectWait) {
			return
		}
	}
}

func (f *feed) fail(err error) {
	select {
	case f.running.failed <- fmt.Errorf("%s: %w", f.node.address, err):
	default:
	}
}

// subscribe connects, subscribes, and waits for nsqd's answer: from then on the channel exists and
// receives messages.
func (f *feed) subscribe(ctx context.Context) (*stream, error) {
	s := &stream{feed: f, answer: make(chan error, 1), closing: make(chan struct{}), down: make(chan struct{}), gone: make(chan struct{})}
	wire, id, err := f.running.consumer.conn.dial(ctx, f.node.address, s)
	if err != nil {
		return nil, err
	}
	s.wire, s.most = wire, int(id.MaxRdyCount)
	// A server persists and syncs each channel it creates before it answers.
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	_ = wire.WriteCommand(client.Subscribe(f.topic, f.channel)) // an error ends the connection
	select {
	case err = <-s.answer:
	case <-s.down:
		err = words.Lost(s.why())
	case <-ctx.Done():
		err = fmt.Errorf("%w: no answer to SUB", driver.ErrTimeout)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// A stream is one connection of a feed. It receives the client's callbacks.
type stream struct {
	quiet
	feed   *feed
	wire   *client.Conn
	most   int        // in-flight limit of the server
	answer chan error // to SUB

	mu         sync.Mutex
	subscribed bool
	isClosing  bool
	ended      bool
	cause      error

	closing chan struct{} // closed when nsqd has stopped sending
	down    chan struct{} // closed when the connection is lost or ended
	gone    chan struct{} // closed when the client is done with it
}

// ask sets how many messages may be in flight.
func (s *stream) ask(n int) { _ = s.wire.WriteCommand(client.Ready(min(n, s.most))) }

// leave makes nsqd stop sending, and closes the connection when all messages sent before are
// settled.
func (s *stream) leave() {
	_ = s.wire.WriteCommand(client.StartClose())
	late := time.NewTimer(endLimit / 2)
	defer late.Stop()
	select {
	case <-s.closing:
	case <-s.down:
	case <-late.C:
	}
	s.end()
}

// end closes the connection and waits until the client is done with it: until everything that it
// yielded is settled, or can no longer be.
func (s *stream) end() {
	_ = s.wire.Close()
	<-s.gone
}

// OnMessage implements client.ConnDelegate. It waits if there is no room, which happens when nsqd
// resends messages that were not settled in time.
func (s *stream) OnMessage(_ *client.Conn, m *client.Message) {
	s.feed.running.queue <- yielded{m, s.feed.source}
}

func (s *stream) OnResponse(_ *client.Conn, answer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case string(answer) == "CLOSE_WAIT" && !s.isClosing:
		s.isClosing = true
		close(s.closing)
	case !s.subscribed:
		s.subscribed = true
		s.answer <- nil
	}
}

func (s *stream) OnError(_ *client.Conn, text []byte) {
	err := refusal(string(text))
	s.mu.Lock()
	first := !s.subscribed
	s.subscribed = true
	s.mu.Unlock()
	if first {
		s.answer <- err
		return
	}
	s.feed.running.sink.Fault(err)
}

func (s *stream) OnIOError(c *client.Conn, err error) {
	s.lose(err)
	_ = c.Close()
}

func (s *stream) OnClose(*client.Conn) {
	s.lose(nil)
	close(s.gone)
}

func (s *stream) lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended, s.cause = true, err
		close(s.down)
	}
}

func (s *stream) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}
