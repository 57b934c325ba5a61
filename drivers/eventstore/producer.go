package eventstore

import (
	"context"
	"fmt"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// A producer appends one event at a time to preserve order, with its own client. Other messages in
// flight wait in the Pool.
type producer struct {
	*blocking.Pool
	link    *link
	streams *driver.Targets[string]
}

// Producer creates a client, which connects with the first event.
func (c *conn) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	const limit = "what the server takes by default, less what belongs to an event besides"
	streams, err := driver.NewTargets(spec.Destinations, c.stream)
	if err == nil {
		err = driver.CheckSize(spec.Largest, largest, limit)
	}
	if err != nil {
		return nil, err
	}
	streams.Limit(largest, limit)
	p := &producer{link: c.connect(c.run, fmt.Sprintf("producer %d", spec.Index)), streams: streams}
	p.Pool = blocking.New(1, spec.InFlight, p.send, done)
	return p, nil
}

// send appends an event and waits for the answer. The client assigns a random event ID.
func (p *producer) send(ctx context.Context, _ int, m *driver.Message) error {
	stream, err := p.streams.Of(ctx, m)
	if err != nil {
		return err
	}
	return p.link.do(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
		_, err := k.AppendToStream(ctx, stream, kurrentdb.AppendToStreamOptions{}, kurrentdb.EventData{EventType: "weir", Data: m.Payload})
		return err
	})
}

func (p *producer) Close(ctx context.Context) error {
	err := p.Pool.Close(ctx)
	p.link.close()
	return err
}
