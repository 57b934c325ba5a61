package iris

import (
	"context"
	"errors"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// late is how much longer than the relay a requester waits for a reply: a relay answers when its
// own timeout expires.
const late = 2 * time.Second

// A requester is a producer of requests. It has one connection per worker, which handles one
// request at a time.
type requester struct {
	*blocking.Pool
	conn    *conn
	targets *driver.Targets[string]
	replies bool // are reported
	links   []*link
}

// Requester connects.
func (c requesting) Requester(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return c.requester(ctx, spec, done, true)
}

func (c *conn) requester(ctx context.Context, spec driver.ProducerSpec, done driver.Completer, replies bool) (driver.Producer, error) {
	targets, err := driver.NewTargets(spec.Destinations, c.place)
	if err != nil {
		return nil, err
	}
	q := &requester{conn: c, targets: targets, replies: replies}
	for range max(1, min(c.cfg.Workers, spec.InFlight)) {
		l, err := c.connect(ctx, spec.Name(), c.cfg.at(spec.Index))
		if err != nil {
			q.end()
			return nil, err
		}
		q.links = append(q.links, l)
	}
	q.Pool = blocking.New(len(q.links), spec.InFlight, q.send, done)
	c.producers.Note(q, "")
	return q, nil
}

// send sends a request and waits for its reply.
func (q *requester) send(ctx context.Context, worker int, m *driver.Message) error {
	to, err := q.targets.Of(ctx, m)
	if err != nil {
		return err
	}
	return q.links[worker].Do(ctx, func(s *session) error {
		reply, err := s.ask(to, m.Payload, q.conn.cfg.RequestTimeout)
		if err == nil && q.replies {
			m.Reply = reply
		}
		return err
	})
}

// behind implements asked: completed messages have reached a consumer.
func (q *requester) behind(ctx context.Context, _ string, _ []byte) error {
	return q.links[0].Ask(ctx, q.conn.asks)
}

// end closes the connections, which ends waiting requests.
func (q *requester) end() {
	for _, l := range q.links {
		l.Close()
	}
}

// Close implements driver.Producer. Requests without a reply fail, whereas a producer of messages
// waits for them.
func (q *requester) Close(ctx context.Context) error {
	q.conn.producers.Forget(q)
	if q.replies {
		q.end()
	}
	err := q.Pool.Close(ctx)
	q.end()
	return err
}

// asks makes a round trip to the relay with a request to a cluster without members, which the relay
// answers as not replied.
func (c *conn) asks(s *session) error {
	if _, err := s.ask("weir."+c.run.ID+"/empty", []byte{0}, time.Millisecond); !errors.Is(err, errNoReply) {
		return err
	}
	return nil
}
