package nsq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A producer publishes to one server, on a connection of its own.
type producer struct {
	conn   *conn
	name   string
	node   *node
	done   driver.Completer
	topics *driver.Targets[topic]
	gate   *gate.Gate

	link        atomic.Pointer[link] // the latest
	outstanding *blocking.Outstanding
	stop        context.CancelFunc
	kept        chan struct{} // closed when keep has returned

	// Touched by the publishing goroutine only.
	closed  bool
	command client.Command
	one     [1]*driver.Message
	body    []byte // of a batch
}

// A topic is what a destination is to a producer.
type topic struct {
	name   string
	params [][]byte // of PUB and MPUB
}

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	name := fmt.Sprintf("producer %d", spec.Index)
	n, topics, err := c.meant(ctx, spec)
	if err != nil {
		return nil, err
	}
	if c.cfg.ByVendor() {
		v, err := c.vendorProducer(ctx, name, n, topics, spec.Room(), done)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
	p := &producer{
		conn: c, name: name, node: n, done: done,
		topics: topics, outstanding: blocking.NewOutstanding(), kept: make(chan struct{}),
	}
	l, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	p.link.Store(l)
	p.gate = gate.New(func() { p.link.Load().kill() })
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.keep(life)
	return p, nil
}

// meant returns the server of a producer, and its topics by destination.
func (c *conn) meant(ctx context.Context, spec driver.ProducerSpec) (*node, *driver.Targets[topic], error) {
	nodes := c.nodes
	topics, err := driver.NewTargets(spec.Destinations, func(d string) (topic, error) {
		name, err := c.topic(d)
		if err == nil && c.run.Existing {
			nodes, err = c.having(ctx, nodes, name)
		}
		return topic{name, [][]byte{[]byte(name)}}, err
	})
	if err != nil {
		return nil, nil, err
	}
	n := nodes[spec.Index%len(nodes)]
	return n, topics, n.takesSize(int64(spec.Largest))
}

// having returns those of some servers that have a topic.
func (c *conn) having(ctx context.Context, nodes []*node, topic string) ([]*node, error) {
	all, err := c.serving(ctx, topic)
	if err != nil {
		return nil, err
	}
	both := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool {
		return !slices.ContainsFunc(all, func(k *node) bool { return k.address == n.address })
	})
	if len(both) == 0 {
		return nil, fmt.Errorf("no server of this run has topic %s and the others: %w", topic, driver.ErrUnsupported)
	}
	return both, nil
}

func (p *producer) connect(ctx context.Context) (*link, error) {
	l := &link{producer: p, down: make(chan struct{})}
	wire, _, err := p.conn.dial(ctx, p.node.address, l)
	if err != nil {
		return nil, err
	}
	l.wire = wire
	return l, nil
}

// keep makes a new connection whenever one is lost, until life ends.
func (p *producer) keep(life context.Context) {
	defer close(p.kept)
	k := retry.Connection[link]{
		Connect: p.connect,
		Hold: func(ctx context.Context, l *link) error {
			select {
			case <-ctx.Done():
				return nil
			case <-l.down:
			}
			why := l.why()
			l.finish(why)
			return why
		},
		Made: func(_, now *link, _ error) {
			p.link.Store(now)
			p.conn.run.Tell("reconnect", p.name+" to "+p.node.address)
		},
		Wait: p.conn.cfg.ReconnectWait, For: math.MaxInt64,
	}
	_ = k.Keep(life, p.link.Load()) // nothing but the end of life ends it
}

var (
	pub  = []byte("PUB")
	mpub = []byte("MPUB")
)

// Publish implements driver.Producer. The payload is written, or copied by the
// client, before it returns.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.one[0] = m
	p.command.Name, p.command.Body = pub, m.Payload
	p.send(ctx, p.one[:])
	p.one[0], p.command.Body = nil, nil
}

// PublishBatch implements driver.BatchProducer.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	if len(ms) == 0 {
		return
	}
	b := binary.BigEndian.AppendUint32(p.body[:0], uint32(len(ms)))
	for _, m := range ms {
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Payload)))
		b = append(b, m.Payload...)
	}
	p.body = b
	p.command.Name, p.command.Body = mpub, b
	p.send(ctx, ms)
	p.command.Body = nil
}

// send writes the command that carries ms, or completes them with why not.
func (p *producer) send(ctx context.Context, ms []*driver.Message) {
	p.outstanding.Add(len(ms))
	if err := p.prepare(ctx, ms); err != nil {
		p.complete(ms, err)
		return
	}
	p.gate.Enter(ctx)
	err := p.link.Load().send(&p.command, ms)
	p.gate.Leave()
	if err != nil {
		p.complete(ms, err)
	}
}

// prepare refuses what cannot be sent: nsqd ends the connection of whoever tries.
func (p *producer) prepare(ctx context.Context, ms []*driver.Message) error {
	if p.closed {
		return driver.ErrClosed
	}
	topic, err := p.topics.Of(ctx, ms[0])
	if err != nil {
		return err
	}
	p.command.Params = topic.params
	return p.node.takes(ms)
}

// takes refuses what a server does not take.
func (n *node) takes(ms []*driver.Message) error {
	body := int64(4) // the count of an MPUB; each message's size has as many bytes
	for _, m := range ms {
		size := int64(len(m.Payload))
		if size == 0 {
			return fmt.Errorf("a message without a byte: %w", driver.ErrUnsupported)
		}
		if err := n.takesSize(size); err != nil {
			return err
		}
		body += 4 + size
	}
	if most := n.maxBody.Load(); len(ms) > 1 && body > most {
		return fmt.Errorf("%w: a batch of %s, the server takes up to %s (its max-body-size)", driver.ErrTooLarge, driver.FormatSize(body), driver.FormatSize(most))
	}
	return nil
}

// takesSize refuses a message of a size that a server does not take.
func (n *node) takesSize(size int64) error {
	return driver.CheckSize(int(size), n.maxMessage.Load(), "the server's max-msg-size")
}

func (p *producer) complete(ms []*driver.Message, err error) {
	for _, m := range ms {
		p.done.Complete(m, err)
	}
	p.outstanding.Done(len(ms))
}

// Flush implements driver.Producer.
func (p *producer) Flush(ctx context.Context) error { return p.outstanding.Wait(ctx) }

// Close implements driver.Producer. It waits for answers under way, at most 2 s.
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	_ = p.outstanding.WaitLast(ctx) // what is left fails below
	p.gate.Close()
	p.stop()
	<-p.kept
	l := p.link.Load()
	l.finish(driver.ErrClosed)
	l.kill()
	return nil
}

// A link is one connection of a producer, and what was sent on it and is not
// answered. It is told by the client what happens there.
type link struct {
	quiet
	producer *producer
	wire     *client.Conn

	// write is held while a command is written: until then the bytes of its
	// messages are not the caller's again, whatever becomes of the connection.
	write sync.Mutex

	mu    sync.Mutex
	sent  queue
	over  error // not nil: nothing is sent any more
	cause error // why the connection was lost
	down  chan struct{}
	ended bool // down is closed
}

// send writes a command, and keeps its messages until it is answered. An error
// says that nothing was kept: the messages are still the caller's to complete.
func (l *link) send(c *client.Command, ms []*driver.Message) error {
	l.write.Lock()
	defer l.write.Unlock()
	l.mu.Lock()
	if l.over != nil || l.ended {
		err := l.over
		if err == nil {
			err = words.Lost(l.cause)
		}
		l.mu.Unlock()
		return err
	}
	l.sent.push(ms)
	l.mu.Unlock()
	// Where this fails the client has told OnIOError, and the messages end with
	// the connection.
	_ = l.wire.WriteCommand(c)
	return nil
}

// answered completes the messages of the oldest command.
func (l *link) answered(err error) {
	for more := true; more; {
		var m *driver.Message
		l.mu.Lock()
		m, more = l.sent.pop()
		l.mu.Unlock()
		if m == nil {
			return
		}
		l.producer.done.Complete(m, err)
		l.producer.outstanding.Done(1)
	}
}

// OnResponse implements client.ConnDelegate.
func (l *link) OnResponse(_ *client.Conn, answer []byte) {
	if string(answer) != "OK" {
		l.answered(errors.New("nsqd answered what is not OK"))
		return
	}
	l.answered(nil)
}

// OnError implements client.ConnDelegate. After most errors nsqd ends the connection.
func (l *link) OnError(_ *client.Conn, text []byte) { l.answered(refusal(string(text))) }

// OnIOError implements client.ConnDelegate.
func (l *link) OnIOError(c *client.Conn, err error) {
	l.end(err)
	_ = c.Close()
}

// OnClose implements client.ConnDelegate.
func (l *link) OnClose(*client.Conn) { l.end(nil) }

// end says that the connection is lost.
func (l *link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended, l.cause = true, err
		close(l.down)
	}
}

func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return words.Lost(l.cause)
}

// finish completes what is not answered. It waits until nothing is being written.
func (l *link) finish(err error) {
	l.write.Lock()
	defer l.write.Unlock()
	l.mu.Lock()
	if l.over == nil {
		l.over = err
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		m, _ := l.sent.pop()
		l.mu.Unlock()
		if m == nil {
			return
		}
		l.producer.done.Complete(m, err)
		l.producer.outstanding.Done(1)
	}
}

// kill ends the connection, and with it a write that waits.
func (l *link) kill() { _ = l.wire.Close() }

// A queue holds messages in the order that their commands were sent in. It grows
// to what is in flight at most, and stays.
type queue struct {
	items   []item
	head, n int
}

// An item is one message.
type item struct {
	m    *driver.Message
	more bool // the next one was sent by the same command
}

func (q *queue) push(ms []*driver.Message) {
	if q.n+len(ms) > len(q.items) {
		grown := make([]item, max(64, 2*(q.n+len(ms))))
		for i := range q.n {
			grown[i] = q.items[(q.head+i)%len(q.items)]
		}
		q.items, q.head = grown, 0
	}
	for i, m := range ms {
		q.items[(q.head+q.n)%len(q.items)] = item{m, i < len(ms)-1}
		q.n++
	}
}

// pop returns the oldest message, nil where there is none.
func (q *queue) pop() (m *driver.Message, more bool) {
	if q.n == 0 {
		return nil, false
	}
	it := q.items[q.head]
	q.items[q.head] = item{}
	q.head = (q.head + 1) % len(q.items)
	q.n--
	return it.m, it.more
}
