package eventstore

import (
	"context"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Producer creates a client, which connects with the first event. It appends one event at a time to
// preserve order; other messages in flight wait in the Pool. The client assigns a random event ID.
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
	l := c.connect(c.run, spec.Name())
	return blocking.New(1, spec.InFlight, func(ctx context.Context, _ int, m *driver.Message) error {
		stream, err := streams.Of(ctx, m)
		if err != nil {
			return err
		}
		return l.do(ctx, func(ctx context.Context, k *kurrentdb.Client) error {
			_, err := k.AppendToStream(ctx, stream, kurrentdb.AppendToStreamOptions{}, kurrentdb.EventData{EventType: "weir", Data: m.Payload})
			return err
		})
	}, done).Then(l.close), nil
}
