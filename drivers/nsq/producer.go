package nsq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/inflight"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// stopLimit is how long Close waits for the client's Producer to stop.
const stopLimit = 2 * time.Second

// A producer publishes to one server with the client's Producer.
type producer struct {
	conn    *conn
	node    *node
	topics  *driver.Targets[string]
	gate    *gate.Gate
	answers chan *client.ProducerTransaction // room for everything in flight, so the client never waits
	*inflight.Set[*driver.Message]

	now       *retry.Kept[link]
	listening sync.WaitGroup // to answers
	ends      sync.WaitGroup // of links

	one [1]*driver.Message // used only by the publishing goroutine
}

// Producer connects, within ctx and 10 s.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	n, topics, err := c.meant(ctx, spec)
	if err != nil {
		return nil, err
	}
	p := &producer{
		conn: c, node: n, topics: topics,
		Set: inflight.New[*driver.Message](done), answers: make(chan *client.ProducerTransaction, spec.Room()),
	}
	l, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	name := spec.Name()
	p.now = retry.Connection[link]{
		Connect: p.connect,
		Hold: func(ctx context.Context, l *link) error {
			select {
			case <-ctx.Done():
			case <-l.down:
			}
			return driver.ErrDisconnected
		},
		Made: func(lost, _ *link, _ error) {
			c.run.Tell(driver.Reconnect, name+" to "+n.address)
			p.ends.Go(lost.kill)
		},
		Wait: c.cfg.ReconnectWait, For: math.MaxInt64,
	}.Start(l, c.run, name)
	p.gate = gate.New(func() { p.now.Now().kill() })
	p.listening.Go(p.listen)
	return p, nil
}

// meant returns a producer's server, and its topics by destination.
func (c *conn) meant(ctx context.Context, spec driver.ProducerSpec) (*node, *driver.Targets[string], error) {
	nodes := c.nodes
	topics, err := driver.NewTargets(spec.Destinations, func(d string) (string, error) {
		name, err := c.topic(d)
		if err == nil && c.run.Existing {
			nodes, err = c.having(ctx, nodes, name)
		}
		return name, err
	})
	if err != nil {
		return nil, nil, err
	}
	n := nodes[spec.Index%len(nodes)]
	return n, topics, n.takesSize(int64(spec.Largest))
}

// having returns the given servers that have a topic.
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

// A link is a client Producer with one connection. The client would reconnect, but only within the
// next call, and with a data race.
type link struct {
	*client.Producer
	lost func() // closes down, once
	down chan struct{}
	kill func() // ends the Producer, and waits, at most write-timeout, until it no longer reads messages
}

// Output receives the client's log lines. The client reports a lost connection in no other way, and
// does so before anybody can make it reconnect.
func (l *link) Output(_ int, line string) error {
	if !strings.Contains(line, "protocol error") { // otherwise it answers a message
		l.lost()
	}
	return nil
}

// connect makes the client connect. That call takes no context, but ends by itself.
func (p *producer) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	x, err := client.NewProducer(p.node.address, p.conn.settings)
	if err != nil {
		return nil, fmt.Errorf("settings of the client: %w", err)
	}
	l := &link{Producer: x, down: make(chan struct{})}
	l.lost = sync.OnceFunc(func() { close(l.down) })
	l.kill = sync.OnceFunc(func() { l.lost(); l.Stop() })
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

// listen completes messages that the client has answered, until the producer ends.
func (p *producer) listen() {
	for {
		select {
		case t := <-p.answers:
			err := cause(t.Error)
			for _, m := range t.Args {
				p.Ended(m.(*driver.Message), err)
			}
		case <-p.now.Life().Done():
			return
		}
	}
}

// cause maps the client's error for a message to the contract's.
func cause(err error) error {
	if err == nil {
		return nil
	}
	var said client.ErrProtocol
	if errors.As(err, &said) {
		return refusal(said.Reason)
	}
	return words.Lost(err)
}

// Publish implements driver.Producer. The client writes the payload on its own goroutine, which is
// also the one that answers: no message completes while it is being written.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	p.one[0] = m
	p.send(ctx, p.one[:], func(l *link, topic string) error {
		return l.PublishAsync(topic, m.Payload, p.answers, m)
	})
}

// PublishBatch implements driver.BatchProducer. The client copies the payloads within the call.
func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	if len(ms) == 0 {
		return
	}
	bodies, args := make([][]byte, len(ms)), make([]any, len(ms))
	for i, m := range ms {
		bodies[i], args[i] = m.Payload, m
	}
	p.send(ctx, ms, func(l *link, topic string) error {
		return l.MultiPublishAsync(topic, bodies, p.answers, args...)
	})
}

// send passes messages of one topic to the client with call, or completes them on failure.
func (p *producer) send(ctx context.Context, ms []*driver.Message, call func(l *link, topic string) error) {
	l := p.now.Now()
	topic, err := p.topics.Of(ctx, ms[0])
	if err == nil {
		select {
		case <-l.down:
			err = fmt.Errorf("%w: not connected again", driver.ErrDisconnected)
		default:
			err = p.node.takes(ms)
		}
	}
	taken := false
	for _, m := range ms {
		taken = p.Begin(m, m, err)
	}
	if !taken {
		return
	}
	p.gate.Enter(ctx)
	err = call(l, topic)
	p.gate.Leave()
	if err == nil {
		return
	}
	l.lost()
	err = cause(err)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	for _, m := range ms {
		p.Ended(m, err)
	}
}

// takes returns an error for messages that exceed a server's limits.
func (n *node) takes(ms []*driver.Message) error {
	body := int64(4) // the count of an MPUB; each message's size takes as many bytes
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

// takesSize returns an error for a message size that exceeds a server's limit.
func (n *node) takesSize(size int64) error {
	return driver.CheckSize(int(size), n.maxMessage.Load(), "the server's max-msg-size")
}

// Close implements driver.Producer. It waits at most 2 s for outstanding answers, and as long again
// for the client's Producer to stop.
func (p *producer) Close(ctx context.Context) error {
	return p.Set.Close(ctx, func() error {
		p.gate.Close()
		p.now.End()
		p.listening.Wait()
		p.ends.Go(p.now.Now().kill)
		return gate.End(context.Background(), stopLimit, p.ends.Wait)
	})
}
