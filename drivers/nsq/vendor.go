package nsq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// vendorRoom is how many answers wait where the scenario leaves in-flight open.
const vendorRoom = 10_000

// A vendorProducer publishes by the client's own Producer.
type vendorProducer struct {
	conn        *conn
	name        string
	node        *node
	done        driver.Completer
	topics      *driver.Targets[topic]
	gate        *gate.Gate
	answers     chan *client.ProducerTransaction // room for all that is in flight: the client never waits
	outstanding *blocking.Outstanding

	now     atomic.Pointer[vendorLink] // the latest
	stop    context.CancelFunc
	threads sync.WaitGroup // keep and listen

	mu   sync.Mutex
	sent map[*driver.Message]struct{}

	// Touched by the publishing goroutine only.
	closed bool
	one    [1]*driver.Message
}

// A vendorLink is a Producer of the client with one connection. The client would
// connect again, but within the next call, and not without a race of its own.
type vendorLink struct {
	*client.Producer
	lost func() // closes down, once
	down chan struct{}
}

// Output takes a line that the client logs. It tells of a lost connection in no
// other way, and does so before anybody can make it connect again.
func (l *vendorLink) Output(_ int, line string) error {
	if !strings.Contains(line, "protocol error") { // that is the answer to a message
		l.lost()
	}
	return nil
}

// kill ends what waits in the client: a write may go on for write-timeout.
func (l *vendorLink) kill() {
	l.lost()
	l.Stop()
}

// vendorProducer connects, within ctx and 10 s.
func (c *conn) vendorProducer(ctx context.Context, name string, n *node, topics *driver.Targets[topic], inFlight int, done driver.Completer) (*vendorProducer, error) {
	if inFlight <= 0 {
		inFlight = vendorRoom
	}
	p := &vendorProducer{
		conn: c, name: name, node: n, done: done, topics: topics,
		answers: make(chan *client.ProducerTransaction, inFlight), outstanding: blocking.NewOutstanding(),
		sent: map[*driver.Message]struct{}{},
	}
	p.gate = gate.New(func() { p.now.Load().kill() })
	l, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	p.now.Store(l)
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.threads.Go(func() { p.keep(life) })
	p.threads.Go(func() { p.listen(life) })
	return p, nil
}

// connect has the client connect. Its call takes no context; it ends by itself.
func (p *vendorProducer) connect(ctx context.Context) (*vendorLink, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	x, err := client.NewProducer(p.node.address, p.conn.settings)
	if err != nil {
		return nil, fmt.Errorf("settings of the client: %w", err)
	}
	l := &vendorLink{Producer: x, down: make(chan struct{})}
	l.lost = sync.OnceFunc(func() { close(l.down) })
	x.SetLogger(l, client.LogLevelError)
	came := make(chan error, 1)
	go func() { came <- x.Ping() }()
	select {
	case err = <-came:
		if err == nil {
			return l, nil
		}
		err = connecting(err)
	case <-ctx.Done():
		err = fmt.Errorf("%w: connecting to %s: %w", driver.ErrUnreachable, p.node.address, ctx.Err())
	}
	go l.kill() // waits for the call
	return nil, err
}

// keep makes a new connection whenever one is lost, until life ends.
func (p *vendorProducer) keep(life context.Context) {
	for {
		l := p.now.Load()
		select {
		case <-life.Done():
			return
		case <-l.down:
		}
		for {
			if !retry.Pause(life, p.conn.cfg.ReconnectWait) {
				return
			}
			if next, err := p.connect(life); err == nil {
				p.now.Store(next)
				p.conn.run.Tell("reconnect", p.name+" to "+p.node.address)
				go l.kill() // it may be waiting in a write
				break
			}
		}
	}
}

// listen completes what the client has an answer to, until life ends.
func (p *vendorProducer) listen(life context.Context) {
	for {
		select {
		case t := <-p.answers:
			p.answered(t)
		case <-life.Done():
			return
		}
	}
}

func (p *vendorProducer) answered(t *client.ProducerTransaction) {
	err := vendorCause(t.Error)
	for _, m := range t.Args {
		p.end(m.(*driver.Message), err)
	}
}

// vendorCause says in the contract's words what the client says of a message.
func vendorCause(err error) error {
	if err == nil {
		return nil
	}
	var said client.ErrProtocol
	if errors.As(err, &said) {
		return refusal(said.Reason)
	}
	return words.Lost(err)
}

// Publish implements driver.Producer. The client gets a copy of the payload, which
// it writes on a goroutine of its own, and perhaps after the message has ended.
func (p *vendorProducer) Publish(ctx context.Context, m *driver.Message) {
	p.one[0] = m
	l := p.now.Load()
	topic, err := p.begin(ctx, l, p.one[:])
	if err != nil {
		p.fail(p.one[:], err)
		return
	}
	p.gate.Enter(ctx)
	err = l.PublishAsync(topic, bytes.Clone(m.Payload), p.answers, m)
	p.gate.Leave()
	p.taken(ctx, l, p.one[:], err)
}

// PublishBatch implements driver.BatchProducer. The client copies the payloads
// within the call.
func (p *vendorProducer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	if len(ms) == 0 {
		return
	}
	l := p.now.Load()
	topic, err := p.begin(ctx, l, ms)
	if err != nil {
		p.fail(ms, err)
		return
	}
	bodies, args := make([][]byte, len(ms)), make([]any, len(ms))
	for i, m := range ms {
		bodies[i], args[i] = m.Payload, m
	}
	p.gate.Enter(ctx)
	err = l.MultiPublishAsync(topic, bodies, p.answers, args...)
	p.gate.Leave()
	p.taken(ctx, l, ms, err)
}

// begin notes messages under way, and returns their topic or why they cannot be
// sent.
func (p *vendorProducer) begin(ctx context.Context, l *vendorLink, ms []*driver.Message) (string, error) {
	p.outstanding.Add(len(ms))
	p.mu.Lock()
	for _, m := range ms {
		p.sent[m] = struct{}{}
	}
	p.mu.Unlock()
	if p.closed {
		return "", driver.ErrClosed
	}
	topic, err := p.topics.Of(ctx, ms[0])
	if err != nil {
		return "", err
	}
	select {
	case <-l.down:
		return "", fmt.Errorf("%w: not connected again", driver.ErrDisconnected)
	default:
		return topic.name, p.node.takes(ms)
	}
}

// taken says what became of a call of the client: with an error it has not taken
// the messages.
func (p *vendorProducer) taken(ctx context.Context, l *vendorLink, ms []*driver.Message, err error) {
	if err == nil {
		return
	}
	l.lost()
	err = vendorCause(err)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	p.fail(ms, err)
}

// fail completes messages with an error.
func (p *vendorProducer) fail(ms []*driver.Message, err error) {
	for _, m := range ms {
		p.end(m, err)
	}
}

// end completes a message, unless it has ended.
func (p *vendorProducer) end(m *driver.Message, err error) {
	p.mu.Lock()
	_, ok := p.sent[m]
	delete(p.sent, m)
	p.mu.Unlock()
	if ok {
		p.done.Complete(m, err)
		p.outstanding.Done(1)
	}
}

// Flush implements driver.Producer.
func (p *vendorProducer) Flush(ctx context.Context) error { return p.outstanding.Wait(ctx) }

// Close implements driver.Producer. It waits for answers under way, at most 2 s.
// The client's Producer stops behind it: it may wait for a write, for write-timeout
// at most. Where answers come while it stops, it leaves a goroutine behind.
func (p *vendorProducer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	wait, cancel := context.WithTimeout(ctx, closeWait)
	_ = p.Flush(wait) // what is left ends with ErrClosed
	cancel()
	p.gate.Close()
	p.stop()
	p.threads.Wait()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.now.Load().kill()
	}()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case <-p.answers: // its message is one of those left
		case <-stopped:
			waiting = false
		case <-late.C:
			waiting = false
		}
	}
	p.mu.Lock()
	left := make([]*driver.Message, 0, len(p.sent))
	for m := range p.sent {
		left = append(left, m)
	}
	p.mu.Unlock()
	for _, m := range left {
		p.end(m, driver.ErrClosed)
	}
	return nil
}

var (
	_ driver.Labelled      = (*Config)(nil)
	_ driver.BatchProducer = (*vendorProducer)(nil)
)
