package rabbitmq

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
)

const (
	prefetch     = 500   // where the scenario leaves it open
	mostPrefetch = 65535 // that the protocol can say
	mostBatch    = 1000  // messages settled together
)

// A consumer has a channel to every queue of its, on one connection.
type consumer struct {
	conn     *conn
	name     string
	index    int
	settle   driver.Settle
	prefetch int
	queues   []string
	held     *atomic.Int64 // of the subscription
}

// Consumer makes the subscription's queues where they do not exist yet.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	sub := c.subscription(spec.Subscription)
	sub.durable.Store(spec.Durable)
	x := &consumer{
		conn: c, name: fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index), index: spec.Index,
		settle: spec.Settle, prefetch: spec.Prefetch, held: &sub.held,
	}
	if x.prefetch <= 0 {
		x.prefetch = prefetch
	}
	for _, d := range spec.Destinations {
		q, err := c.subscribe(ctx, spec, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.queues = append(x.queues, q)
	}
	return x, nil
}

// subscription returns what the consumers of a subscription share.
func (c *conn) subscription(name string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs[name] == nil {
		c.subs[name] = &subscription{}
	}
	return c.subs[name]
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	s, err := x.open(ctx, sink)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("subscribing: %w", err)
	}
	sink.Ready()
	for {
		err := s.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		sink.Fault(err)
		s, err = again(ctx, x.conn, func(ctx context.Context) (*session, error) { return x.open(ctx, sink) })
		switch {
		case err != nil:
			return fmt.Errorf("subscription lost: %w", err)
		case s == nil:
			return nil
		}
		x.conn.run.Tell("reconnect", x.name+" to "+s.address)
	}
}

// Close implements driver.Consumer. Run has ended the connection.
func (x *consumer) Close(context.Context) error { return nil }

// A session is one connection of a consumer.
type session struct {
	*link
	consumer *consumer
	sink     driver.Sink
	feeds    []*feed
	turn     sync.Mutex    // held by the feed that delivers
	stop     chan struct{} // closed when nothing more is to be delivered

	came    atomic.Int64 // deliveries that the server has sent
	settled atomic.Int64 // of them, those that it need not wait for
	room    chan struct{}
}

// A feed is a channel on which one queue is consumed.
type feed struct {
	session *session
	channel *client.Channel
	source  int32 // which of the destinations the queue is
	tag     string
	yields  <-chan client.Delivery
	over    chan *client.Error
	ds      []driver.Delivery
}

// open connects and subscribes to every queue.
func (x *consumer) open(ctx context.Context, sink driver.Sink) (*session, error) {
	s := &session{consumer: x, sink: sink, stop: make(chan struct{}), room: make(chan struct{}, 1)}
	l, err := x.conn.reach(ctx, x.name, x.index, overheard(s, nil))
	if err != nil {
		return nil, err
	}
	s.link = l
	l.tellBlocked(x.conn.run, x.name)
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	for i, q := range x.queues {
		f := &feed{session: s, source: int32(i), tag: "weir-" + strconv.Itoa(i), ds: make([]driver.Delivery, 0, 1)}
		if f.channel, err = l.Channel(); err == nil {
			err = f.consume(q)
		}
		if err != nil {
			s.abandon()
			if ctx.Err() != nil {
				return nil, unreachable(ctx.Err())
			}
			return nil, fmt.Errorf("queue %s: %w", q, words.Cause(err))
		}
		s.feeds = append(s.feeds, f)
	}
	return s, nil
}

// consume begins to consume a queue.
func (f *feed) consume(queue string) error {
	x := f.session.consumer
	share := min(max(1, x.prefetch/len(x.queues)), mostPrefetch)
	if err := f.channel.Qos(share, 0, false); err != nil {
		return err
	}
	f.over = f.channel.NotifyClose(make(chan *client.Error, 1))
	var err error
	f.yields, err = f.channel.ConsumeWithContext(context.Background(), queue, f.tag, x.settle == driver.SettleAuto, false, false, false, nil)
	return err
}

// delivered implements listener.
func (s *session) delivered() {
	if s.came.Add(1) > 0 { // else it is over
		s.consumer.held.Add(1)
	}
}

// reading implements listener. Without acknowledgements nothing but this keeps the
// server from filling the client's memory.
func (s *session) reading() {
	if s.consumer.settle != driver.SettleAuto {
		return
	}
	waited := false
	// One message of each queue may have come in part only.
	for s.came.Load()-s.settled.Load() > int64(s.consumer.prefetch+len(s.consumer.queues)) {
		select {
		case <-s.room:
			waited = true
		case <-s.stop:
			return
		}
	}
	if waited {
		// What the client has set may be over.
		_ = s.wire.SetReadDeadline(time.Time{})
	}
}

// count counts deliveries that the server need not wait for any more.
func (s *session) count(n int) {
	s.consumer.held.Add(int64(-n))
	s.settled.Add(int64(n))
	if s.consumer.settle == driver.SettleAuto {
		select {
		case s.room <- struct{}{}:
		default:
		}
	}
}

func (s *session) confirmed(uint64, bool, bool) {}
func (s *session) returned(uint16, []byte)      {}

// run delivers until ctx ends, and then settles what was delivered, or until the
// connection or one of its channels is lost, and then returns why.
func (s *session) run(ctx context.Context) error {
	ended := make(chan error, len(s.feeds))
	var feeding sync.WaitGroup
	for _, f := range s.feeds {
		feeding.Go(func() { ended <- f.run() })
	}
	var err error
	select {
	case <-ctx.Done():
		close(s.stop)
		feeding.Wait()
		late := time.AfterFunc(endLimit, s.kill)
		var unsure error
		for _, f := range s.feeds {
			// Its answer says that the acknowledgements before it have come.
			if err := f.channel.Cancel(f.tag, false); err != nil && unsure == nil {
				unsure = fmt.Errorf("last settlements: %w", words.Cause(err))
			}
		}
		if !late.Stop() {
			unsure = fmt.Errorf("last settlements: no answer within %v: %w", endLimit, driver.ErrTimeout)
		}
		if unsure != nil {
			s.sink.Fault(unsure)
		}
	case err = <-ended:
		close(s.stop)
		s.kill()
		feeding.Wait()
	}
	s.abandon()
	return err
}

// abandon ends the connection. What was delivered and not settled the server
// delivers again.
func (s *session) abandon() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.end()
	s.forget()
}

// forget has nothing be held by this session any more, whatever its connection has
// read and still tells of.
func (s *session) forget() {
	s.consumer.held.Add(s.settled.Load() - s.came.Swap(math.MinInt32))
}

// run delivers until the session stops, or returns why it cannot.
func (f *feed) run() error {
	for {
		select {
		case <-f.session.stop:
			return nil
		case d, ok := <-f.yields:
			if !ok {
				return f.why()
			}
			if f.session.consumer.settle == driver.SettleBatch {
				f.batch(d)
			} else {
				f.each(d)
			}
		}
	}
}

// why returns why the client yields nothing more.
func (f *feed) why() error {
	select {
	case e := <-f.over: // which comes before the end of what is yielded
		return lost(e)
	default:
		return fmt.Errorf("%w: the server has ended the consumer (basic.cancel)", driver.ErrDisconnected)
	}
}

// deliver hands over one message, in turn with the other feeds.
func (f *feed) deliver(d *client.Delivery) error {
	f.ds = append(f.ds[:0], driver.Delivery{Payload: d.Body, Partition: -1, Source: f.source, Redelivered: d.Redelivered})
	f.session.turn.Lock()
	defer f.session.turn.Unlock()
	return f.session.sink.Deliver(f.ds)
}

// each hands over one message and settles it. An acknowledgement that is lost is
// one of a connection that is, which is told of there.
func (f *feed) each(d client.Delivery) {
	switch err := f.deliver(&d); {
	case f.session.consumer.settle == driver.SettleAuto:
	case err == nil:
		_ = f.channel.Ack(d.DeliveryTag, false)
	default:
		_ = f.channel.Nack(d.DeliveryTag, false, true)
	}
	f.session.count(1)
}

// batch hands over what the client yields, each message as it comes, and settles
// together those that came without a wait.
func (f *feed) batch(d client.Delivery) {
	n, last := 0, uint64(0) // accepted and not settled
	for ok := true; ok; {
		if f.deliver(&d) == nil {
			n, last = n+1, d.DeliveryTag
		} else {
			f.accepted(last, n)
			_ = f.channel.Nack(d.DeliveryTag, false, true)
			f.session.count(1)
			n = 0
		}
		if n == mostBatch {
			break
		}
		d, ok = f.atHand()
	}
	f.accepted(last, n)
	clear(f.ds)
}

// accepted settles the n messages up to the one with the tag.
func (f *feed) accepted(last uint64, n int) {
	if n > 0 {
		_ = f.channel.Ack(last, true)
		f.session.count(n)
	}
}

// atHand returns what the client yields without a wait. It yields from a goroutine
// of its own, which gets a moment to come up with the next.
func (f *feed) atHand() (d client.Delivery, ok bool) {
	for waited := false; ; waited = true {
		select {
		case <-f.session.stop:
			return d, false
		default:
		}
		select {
		case d, ok = <-f.yields:
			return d, ok
		default:
		}
		if waited {
			return d, false
		}
		runtime.Gosched()
	}
}
