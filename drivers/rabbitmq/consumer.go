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
	x := &consumer{
		conn: c, name: fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index), index: spec.Index,
		settle: spec.Settle, prefetch: spec.Prefetch, held: c.holds(spec.Subscription),
	}
	fail := func(err error) (driver.Consumer, error) { return nil, fmt.Errorf("rabbitmq: %s: %w", x.name, err) }
	switch {
	case spec.Settle > driver.SettleAuto:
		return fail(fmt.Errorf("settle %v: there are each, batch and auto: %w", spec.Settle, driver.ErrUnsupported))
	case spec.From != driver.Position{}:
		return fail(fmt.Errorf("a queue is read from where it is: %w", driver.ErrUnsupported))
	case x.prefetch <= 0:
		x.prefetch = prefetch
	}
	for _, d := range spec.Destinations {
		q, err := c.subscribe(ctx, spec, d)
		if err != nil {
			return fail(fmt.Errorf("destination %s: %w", d, err))
		}
		x.queues = append(x.queues, q)
	}
	return x, nil
}

// holds returns the count of what a subscription's consumers have.
func (c *conn) holds(subscription string) *atomic.Int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[subscription] == nil {
		c.held[subscription] = new(atomic.Int64)
	}
	return c.held[subscription]
}

// subscribe returns the queue of a subscription of a destination, which keeps what
// comes from then on.
func (c *conn) subscribe(ctx context.Context, spec driver.ConsumerSpec, destination string) (string, error) {
	p, err := c.place(destination)
	if err != nil {
		return "", err
	}
	if p.exchange == "" {
		if spec.Durable && spec.Subscription != p.queue {
			return "", fmt.Errorf("the durable subscription of a queue is the queue itself, %s, and not %s: %w", p.queue, spec.Subscription, driver.ErrUnsupported)
		}
		if err := c.alone(spec.Subscription, destination); err != nil {
			return "", err
		}
		return p.queue, c.there(ctx, destination, p)
	}
	if err := c.there(ctx, destination, p); err != nil {
		return "", err
	}
	q := c.subscription(spec, destination)
	k := c.kindOf(ctx, destination, p)
	if c.run.Existing {
		if k, err = c.kind(driver.Destination{Name: destination, Partitions: 1, Replicas: 1}); err != nil {
			return "", err
		}
		c.mu.Lock()
		c.declared[destination] = k
		c.durable[spec.Subscription] = spec.Durable
		if !spec.Durable {
			c.unsubs[q] = true // before: an answer may be lost
		}
		c.mu.Unlock()
	} else {
		c.note(destination, q)
	}
	return q, c.ask(ctx, func(ch *client.Channel) error {
		if err := c.declareQueue(ch, q, k); err != nil {
			return err
		}
		return ch.QueueBind(q, p.binding, p.exchange, false, nil)
	})
}

// alone refuses a second subscription of a destination that is one queue.
func (c *conn) alone(subscription, destination string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch have := c.only[destination]; have {
	case "", subscription:
		c.only[destination] = subscription
		return nil
	default:
		return fmt.Errorf("a queue has one subscription, which is %s (another kind of exchange: option exchange): %w", have, driver.ErrUnsupported)
	}
}

// Run implements driver.Consumer.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	s, err := x.open(ctx, sink)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("rabbitmq: subscribing: %w", err)
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
			return fmt.Errorf("rabbitmq: subscription lost: %w", err)
		case s == nil:
			return nil
		}
		x.conn.event("reconnect", x.name+" to "+s.address)
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
			return nil, fmt.Errorf("queue %s: %w", q, meaning(err))
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
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		blocked := s.blocked
		for blocked != nil {
			select {
			case b, ok := <-blocked:
				if ok {
					s.consumer.conn.blocked(s.consumer.name, b)
				} else {
					blocked = nil
				}
			case <-s.stop:
				return
			}
		}
	}()
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
				unsure = fmt.Errorf("last settlements: %w", meaning(err))
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
	<-watched
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

// delivery is what came, for the sink.
func (f *feed) delivery(d *client.Delivery) driver.Delivery {
	return driver.Delivery{Payload: d.Body, Partition: -1, Source: f.source, Redelivered: d.Redelivered}
}

// deliver hands over what is in ds, in turn with the other feeds.
func (f *feed) deliver() error {
	f.session.turn.Lock()
	defer f.session.turn.Unlock()
	return f.session.sink.Deliver(f.ds)
}

// each hands over one message and settles it. An acknowledgement that is lost is
// one of a connection that is, which is told of there.
func (f *feed) each(d client.Delivery) {
	f.ds = append(f.ds[:0], f.delivery(&d))
	switch err := f.deliver(); {
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
		f.ds = append(f.ds[:0], f.delivery(&d))
		if f.deliver() == nil {
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
