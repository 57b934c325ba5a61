package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// Producer connects.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	only := isStored
	subjects, err := driver.NewTargets(spec.Destinations, func(d string) (string, error) {
		t, err := c.target(ctx, d)
		if t.replicated {
			only = nil
		}
		if err == nil {
			err = t.publishable(spec.Largest)
		}
		return t.subject, err
	})
	if err != nil {
		return nil, err
	}
	is := natsconn.Publishing{
		Name: spec.Name(), Spec: spec, Subjects: subjects, Done: done,
		Timeout: c.cfg.AckTimeout, Answered: answered, Only: only,
	}
	if c.cfg.Path == byVendor {
		return c.vendorProducer(ctx, is)
	}
	p, err := natsconn.NewPublisher(ctx, &c.cfg.Options, c.run, is)
	if err != nil {
		return nil, err
	}
	if err := reachable(ctx, p.Link, subjects); err != nil {
		_ = p.Close(ctx)
		return nil, err
	}
	return p, nil
}

// reachable waits until the connected server knows where to route messages of the subjects, which
// in a cluster takes a moment after a stream is created. It probes with a message that the stream
// must reject, as meant for another stream.
func reachable(ctx context.Context, link *natsconn.Link, subjects *driver.Targets[string]) error {
	if link.ConnectedClusterName() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, subject := range subjects.All() {
		err := retry.While(ctx, pullPause, noResponders, func() error {
			m := nats.NewMsg(subject)
			m.Header.Set(jetstream.ExpectedStreamHeader, "weir-asks-who-is-there")
			_, err := link.RequestMsgWithContext(ctx, m)
			return err
		})
		if noResponders(err) {
			return fmt.Errorf("no stream at %s: %w: %w", subject, driver.ErrTimeout, err)
		}
		if err != nil {
			return words.Cause(err)
		}
	}
	return nil
}

// noResponders reports whether err means that no service accepts a request.
func noResponders(err error) bool { return errors.Is(err, nats.ErrNoResponders) }

// stored begins the acknowledgement of every stored message (server/stream.go builds it from a
// template); an error acknowledgement begins with the error.
var stored = []byte(`{"stream":`)

// isStored reports whether a reply confirms a stored message. A single server confirms once. In a
// cluster, a new leader also confirms messages that the previous leader had stored, but not yet
// reported to it (server/stream.go, isLeaderNodeState).
func isStored(reply *nats.Msg) bool { return bytes.HasPrefix(reply.Data, stored) }

// answered returns the error in an acknowledgement, or err if there is no acknowledgement.
func answered(_ *driver.Message, reply *nats.Msg, err error) error {
	if err != nil || isStored(reply) {
		return err
	}
	if err := refused(reply); err != nil {
		return err
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return fmt.Errorf("jetstream: acknowledgement is not readable: %w", err)
	}
	if ack.Error != nil {
		return words.Cause(ack.Error)
	}
	if ack.Stream == "" {
		return jetstream.ErrInvalidJSAck
	}
	return nil
}

// refused returns the error of a reply from the server itself: it has no stream or consumer for the
// request.
func refused(m *nats.Msg) error {
	if natsconn.NoResponders(m) {
		return fmt.Errorf("no stream or consumer answers: %w", nats.ErrNoResponders)
	}
	return nil
}
