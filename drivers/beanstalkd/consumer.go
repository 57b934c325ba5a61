package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// reserveWait is how long a reserve waits for a job before it is sent again. It is shorter than any
// option timeout, so that a silent server is detected.
const reserveWait = time.Second

// A feed takes the jobs of one tube, on its own connection.
type feed struct {
	link    *link
	cfg     *Config
	source  int32
	watched map[string]bool // the tube
	id      uint64          // of the job it holds
	ds      [1]driver.Delivery
}

// Consumer connects once for each destination.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	var x blocking.Feeds // a tube keeps its jobs for any consumer
	for i, d := range spec.Destinations {
		f, err := c.feed(ctx, &spec, d, int32(i))
		if err != nil {
			_ = x.Close(ctx)
			return nil, each.About(d, err)
		}
		x = append(x, f)
	}
	return x, nil
}

// feed connects for one destination.
func (c *conn) feed(ctx context.Context, spec *driver.ConsumerSpec, destination string, source int32) (*feed, error) {
	tube, err := c.tube(destination)
	if err != nil {
		return nil, err
	}
	l, err := c.cfg.connect(ctx, c.run.For(spec), fmt.Sprintf("consumer %s %d", spec.Subscription, spec.Index))
	return &feed{link: l, cfg: &c.cfg, source: source, watched: map[string]bool{tube: true}}, err
}

// Close implements blocking.Feed. The server gives a job that is still held to another consumer.
func (f *feed) Close() { f.link.Close() }

// Run implements blocking.Feed. It ends when the connection is permanently lost.
func (f *feed) Run(ctx context.Context, sink driver.Sink) error {
	for ctx.Err() == nil {
		if err := f.link.Await(ctx); failure.Hopeless(err) {
			return fmt.Errorf("subscription lost: %w", err)
		}
		switch err := f.link.Do(ctx, f.reserve); {
		case ctx.Err() != nil: // unsettled messages return with the connection
		case errors.Is(err, client.ErrTimeout):
		case err != nil:
			sink.Fault(err)
			retry.Pause(ctx, f.cfg.ReconnectWait)
		default:
			f.deliver(sink)
		}
	}
	return nil
}

// reserve reserves a job.
func (f *feed) reserve(k *client.Conn) (err error) {
	set := client.TubeSet{Conn: k, Name: f.watched}
	d := driver.Delivery{Partition: -1, Source: f.source}
	f.id, d.Payload, err = set.Reserve(reserveWait)
	f.ds[0] = d
	return err
}

// deliver delivers the job that the feed holds, and settles it.
func (f *feed) deliver(sink driver.Sink) {
	stop := func() {}
	if f.cfg.Touch > 0 { // the settlement reveals the job's fate
		touch := func(k *client.Conn) error { return k.Touch(f.id) }
		stop = retry.Every(f.cfg.Touch, func() { _ = f.link.Do(context.Background(), touch) })
	}
	refused := sink.Deliver(f.ds[:])
	stop()
	// Independent of Run's context: accepted messages are settled.
	err := f.link.Do(context.Background(), func(k *client.Conn) error {
		if refused != nil {
			return k.Release(f.id, priority, 0)
		}
		return k.Delete(f.id)
	})
	if err != nil {
		sink.Fault(err)
	}
	if refused == nil {
		sink.Settled(f.ds[:], err)
	}
}
