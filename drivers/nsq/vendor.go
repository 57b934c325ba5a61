package nsq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/clientpath"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// stopLimit is how long Close waits for the client's Producer to stop.
const stopLimit = 2 * time.Second

// A vendorProducer publishes by the client's own Producer.
type vendorProducer struct {
	conn    *conn
	name    string
	node    *node
	topics  *driver.Targets[topic]
	gate    *gate.Gate
	answers chan *client.ProducerTransaction // room for all that is in flight: the client never waits
	*clientpath.Sent[*driver.Message]

	now     atomic.Pointer[vendorLink] // the latest
	stop    context.CancelFunc
	threads sync.WaitGroup // keep and listen

	one [1]*driver.Message // touched by the publishing goroutine only
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
	p := &vendorProducer{
		conn: c, name: name, node: n, topics: topics, Sent: clientpath.NewSent[*driver.Message](done),
		answers: make(chan *client.ProducerTransaction, inFlight),
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
	if !gate.Within(ctx, func() { err = x.Ping() }, l.kill) {
		return nil, fmt.Errorf("%w: connecting to %s: %w", driver.ErrUnreachable, p.node.address, ctx.Err())
	}
	if err != nil {
		go l.kill()
		return nil, connecting(err)
	}
	return l, nil
}

// keep makes a new connection whenever one is lost, until life ends.
func (p *vendorProducer) keep(life context.Context) {
	k := retry.Connection[vendorLink]{
		Connect: p.connect,
		Hold: func(ctx context.Context, l *vendorLink) error {
			select {
			case <-ctx.Done():
			case <-l.down:
			}
			return driver.ErrDisconnected
		},
		Made: func(lost, now *vendorLink, _ error) {
			p.now.Store(now)
			p.conn.run.Tell("reconnect", p.name+" to "+p.node.address)
			go lost.kill() // it may be waiting in a write
		},
		Wait: p.conn.cfg.ReconnectWait, For: math.MaxInt64,
	}
	_ = k.Keep(life, p.now.Load()) // nothing but the end of life ends it
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
		p.End(m.(*driver.Message), err)
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
	topic, ok := p.begin(ctx, l, p.one[:])
	if !ok {
		return
	}
	p.gate.Enter(ctx)
	err := l.PublishAsync(topic, bytes.Clone(m.Payload), p.answers, m)
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
	topic, ok := p.begin(ctx, l, ms)
	if !ok {
		return
	}
	bodies, args := make([][]byte, len(ms)), make([]any, len(ms))
	for i, m := range ms {
		bodies[i], args[i] = m.Payload, m
	}
	p.gate.Enter(ctx)
	err := l.MultiPublishAsync(topic, bodies, p.answers, args...)
	p.gate.Leave()
	p.taken(ctx, l, ms, err)
}

// begin notes messages in flight, and returns their topic, or completes them where they
// cannot be sent.
func (p *vendorProducer) begin(ctx context.Context, l *vendorLink, ms []*driver.Message) (name string, ok bool) {
	for _, m := range ms {
		ok = p.Begin(m, m)
	}
	if !ok {
		return "", false
	}
	topic, err := p.topics.Of(ctx, ms[0])
	if err == nil {
		select {
		case <-l.down:
			err = fmt.Errorf("%w: not connected again", driver.ErrDisconnected)
		default:
			err = p.node.takes(ms)
		}
	}
	if err != nil {
		p.fail(ms, err)
	}
	return topic.name, err == nil
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
		p.End(m, err)
	}
}

// Close implements driver.Producer. It waits for answers under way, at most 2 s.
// The client's Producer stops behind it: it may wait for a write, for write-timeout
// at most. Where answers come while it stops, it leaves a goroutine behind.
func (p *vendorProducer) Close(ctx context.Context) error {
	return p.Sent.Close(ctx, p.end)
}

// end ends the client's Producer.
func (p *vendorProducer) end() error {
	p.gate.Close()
	p.stop()
	p.threads.Wait()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.now.Load().kill()
	}()
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	for {
		select {
		case <-p.answers: // its message is one of those left
		case <-stopped:
			return nil
		case <-late.C:
			return nil
		}
	}
}

var (
	_ driver.Labelled      = (*Config)(nil)
	_ driver.BatchProducer = (*vendorProducer)(nil)
)
