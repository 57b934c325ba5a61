package rabbitmq

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
)

const (
	prefetch     = 500   // if the scenario does not set it
	mostPrefetch = 65535 // the protocol's maximum
	mostBatch    = 1000  // messages settled together
)

// A consumer has a channel per queue, on one connection.
type consumer struct {
	conn   *conn
	name   string
	spec   driver.ConsumerSpec
	queues []string
}

// Consumer creates missing queues of the subscription.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	c.mu.Lock()
	c.durable[spec.Subscription] = spec.Durable
	c.mu.Unlock()
	if spec.Prefetch <= 0 {
		spec.Prefetch = prefetch
	}
	x := &consumer{conn: c, name: spec.Name(), spec: spec}
	for _, d := range spec.Destinations {
		q, err := c.subscribe(ctx, spec, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		x.queues = append(x.queues, q)
	}
	return x, nil
}

func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	open := func(ctx context.Context) (*session, error) { return x.open(ctx, sink) }
	s, err := open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("subscribing: %w", err)
	}
	sink.Ready()
	hold := func(ctx context.Context, s *session) error {
		why := s.run(ctx)
		if ctx.Err() == nil {
			sink.Fault(why)
		}
		return why
	}
	made := func(_, now *session, _ error) {
		x.conn.run.For(&x.spec).Tell(driver.Reconnect, x.name+" to "+now.address)
	}
	if err := reconnecting(x.conn, open, hold, made).Keep(ctx, s); err != nil {
		return fmt.Errorf("subscription lost: %w", err)
	}
	return nil
}

// Close implements driver.Consumer. Run has ended the connection.
func (x *consumer) Close(context.Context) error { return nil }

// A session is one connection of a consumer.
type session struct {
	*link
	consumer *consumer
	sink     driver.Sink
	feeds    []*feed
	turn     sync.Mutex      // held by the delivering feed
	life     context.Context // ends when deliveries should stop
	stop     context.CancelFunc

	came    atomic.Int64 // deliveries sent by the server
	settled atomic.Int64 // deliveries no longer counted as outstanding
	room    chan struct{}
}

// A feed is a channel that consumes one queue.
type feed struct {
	session *session
	channel *client.Channel
	source  int32 // index of the queue's destination
	tag     string
	yields  <-chan client.Delivery
	over    chan *client.Error
	ds      [1]driver.Delivery
}

// open connects and subscribes to every queue.
func (x *consumer) open(ctx context.Context, sink driver.Sink) (*session, error) {
	s := &session{consumer: x, sink: sink, room: make(chan struct{}, 1)}
	s.life, s.stop = context.WithCancel(context.Background())
	l, err := x.conn.reach(ctx, x.name, x.spec.Index, s)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.link = l
	x.conn.sessions.Note(s, x.spec.Subscription)
	l.reportBlocked(x.conn.run, x.name)
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	for i, q := range x.queues {
		f := &feed{session: s, source: int32(i), tag: "weir-" + strconv.Itoa(i)}
		if f.channel, err = l.Channel(); err == nil {
			err = f.consume(q)
		}
		if err != nil {
			s.abandon()
			if ctx.Err() != nil {
				return nil, unreachable(ctx.Err())
			}
			return nil, fmt.Errorf("queue %s: %w", q, errorMap.Cause(err))
		}
		s.feeds = append(s.feeds, f)
	}
	return s, nil
}

// consume starts to consume a queue.
func (f *feed) consume(queue string) error {
	x := f.session.consumer
	share := min(max(1, x.spec.Prefetch/len(x.queues)), mostPrefetch)
	if err := f.channel.Qos(share, 0, false); err != nil {
		return err
	}
	f.over = f.channel.NotifyClose(make(chan *client.Error, 1))
	var err error
	f.yields, err = f.channel.ConsumeWithContext(context.Background(), queue, f.tag, x.spec.Settle == driver.SettleAuto, false, false, false, nil)
	return err
}

func (s *session) delivered() { s.came.Add(1) }

// reading implements listener. Without acknowledgements, only this keeps the server from filling
// the client's memory.
func (s *session) reading() {
	if s.consumer.spec.Settle != driver.SettleAuto {
		return
	}
	// One message of each queue may have arrived partially.
	for s.came.Load()-s.settled.Load() > int64(s.consumer.spec.Prefetch+len(s.consumer.queues)) {
		select {
		case <-s.room:
		case <-s.life.Done():
			return
		}
	}
}

// count counts deliveries that are no longer outstanding.
func (s *session) count(n int) {
	s.settled.Add(int64(n))
	if s.consumer.spec.Settle == driver.SettleAuto {
		select {
		case s.room <- struct{}{}:
		default:
		}
	}
}

func (s *session) confirmed(uint64, bool, bool) {}
func (s *session) returned(uint16, []byte)      {}

// run delivers until ctx ends, and then settles what was delivered, or until the connection or a
// channel is lost, and then returns why.
func (s *session) run(ctx context.Context) error {
	ended := make(chan error, len(s.feeds))
	var feeding sync.WaitGroup
	for _, f := range s.feeds {
		feeding.Go(func() { ended <- f.run() })
	}
	var err error
	select {
	case <-ctx.Done():
		s.stop()
		feeding.Wait()
		late := time.AfterFunc(endLimit, s.kill)
		var unsure error
		for _, f := range s.feeds {
			// The answer implies that the earlier acknowledgements have arrived.
			if err := f.channel.Cancel(f.tag, false); err != nil && unsure == nil {
				unsure = fmt.Errorf("last settlements: %w", errorMap.Cause(err))
			}
		}
		if !late.Stop() {
			unsure = fmt.Errorf("last settlements: no answer within %v: %w", endLimit, driver.ErrTimeout)
		}
		if unsure != nil {
			s.sink.Fault(unsure)
		}
	case err = <-ended:
		s.stop()
		s.kill()
		feeding.Wait()
	}
	s.abandon()
	return err
}

// abandon closes the connection. The server redelivers unsettled messages.
func (s *session) abandon() {
	s.stop()
	s.end()
	s.consumer.conn.sessions.Forget(s)
}

// run delivers until the session stops, or returns why it cannot.
func (f *feed) run() error {
	for {
		select {
		case <-f.session.life.Done():
			return nil
		case d, ok := <-f.yields:
			if !ok {
				return f.why()
			}
			f.take(d)
		}
	}
}

// why returns why the client yields no more messages.
func (f *feed) why() error {
	select {
	case e := <-f.over: // sent before the deliveries end
		return lost(e)
	default:
		return fmt.Errorf("%w: the server has ended the consumer (basic.cancel)", driver.ErrDisconnected)
	}
}

// deliver delivers one message, taking turns with the other feeds.
func (f *feed) deliver(d *client.Delivery) error {
	f.ds[0] = driver.Delivery{Payload: d.Body, Partition: -1, Source: f.source, Redelivered: d.Redelivered}
	f.session.turn.Lock()
	defer f.session.turn.Unlock()
	return f.session.sink.Deliver(f.ds[:])
}

// take delivers a message and settles it. With settle batch, it continues with the messages that
// are immediately available, delivers each as it comes, and settles them together. An
// acknowledgement is lost only with its connection, which Run reports.
func (f *feed) take(d client.Delivery) {
	settle := f.session.consumer.spec.Settle
	n, last := 0, uint64(0) // accepted and not settled
	for ok := true; ok; {
		if err := f.deliver(&d); err == nil || settle == driver.SettleAuto {
			n, last = n+1, d.DeliveryTag
		} else {
			f.accepted(last, n)
			_ = f.channel.Nack(d.DeliveryTag, false, true)
			f.session.count(1)
			n = 0
		}
		if ok = settle == driver.SettleBatch && n < mostBatch; ok {
			d, ok = f.atHand()
		}
	}
	f.accepted(last, n)
}

// accepted settles the last n messages up to the tag.
func (f *feed) accepted(last uint64, n int) {
	if n == 0 {
		return
	}
	if f.session.consumer.spec.Settle != driver.SettleAuto {
		_ = f.channel.Ack(last, n > 1)
	}
	f.session.count(n)
}

// atHand returns an immediately available message. The client yields from its own goroutine, which
// gets a moment to produce the next one.
func (f *feed) atHand() (d client.Delivery, ok bool) {
	for waited := false; f.session.life.Err() == nil; waited = true {
		select {
		case d, ok = <-f.yields:
			return d, ok
		default:
		}
		if waited {
			break
		}
		runtime.Gosched()
	}
	return d, false
}
