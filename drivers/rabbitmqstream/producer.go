package rabbitmqstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/names"
)

// The client blocks when more messages are in flight than its table was created for, and may miss
// the wake-up. The table therefore has room for all.
const leastRoom, mostRoom = 500, 1_000_000

// A producer has one outlet per stream.
type producer struct {
	*blocking.Outgoing
	conn    *conn
	name    string
	index   int
	room    int // size of the client's table
	targets *driver.Targets[*outlet]
	stop    context.CancelFunc
	kept    sync.WaitGroup
}

// Producer connects to the leader of each stream.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	const limit = "the largest frame of the stream protocol"
	most := int64(defaultFrame)
	if err := c.control.Ask(ctx, func(k *control) error {
		if k.frameMax > 0 {
			most = min(most, int64(k.frameMax))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := driver.CheckSize(spec.Largest, most-overhead, limit); err != nil {
		return nil, err
	}
	if spec.InFlight > mostRoom {
		return nil, fmt.Errorf("%d messages in flight (up to %d): %w", spec.InFlight, mostRoom, driver.ErrUnsupported)
	}
	p := &producer{
		Outgoing: blocking.NewOutgoing(done), conn: c, name: spec.Name(), index: spec.Index,
		room: max(leastRoom, spec.InFlight),
	}
	life, stop := context.WithCancel(context.Background())
	p.stop = stop
	var err error
	p.targets, err = driver.NewTargets(spec.Destinations, func(d string) (*outlet, error) {
		o := newOutlet(p, c.stream(d), int(most))
		if c.cfg.Dedup {
			o.reference = names.Join(longest, "weir", c.run.ID, "producer", fmt.Sprint(spec.Index))
		}
		l, err := o.connect(ctx)
		if err != nil {
			return nil, err
		}
		c.streams.Note(o.stream, struct{}{})
		p.kept.Go(func() { o.keep(life, l) })
		p.kept.Go(func() { o.watch(life) })
		return o, nil
	})
	if err != nil {
		stop()
		p.kept.Wait()
		return nil, err
	}
	p.targets.Limit(most-overhead, limit)
	return p, nil
}

func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	o, err := p.targets.Of(ctx, m)
	if p.Admit(m, err) {
		slotOf(m)
		o.add(m)
	}
}

func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	var o *outlet
	n := 0
	for _, m := range ms {
		to, err := p.targets.Of(ctx, m)
		if !p.Admit(m, err) {
			continue
		}
		o = to
		slotOf(m)
		ms[n] = m
		n++
	}
	if n > 0 {
		o.add(ms[:n]...)
	}
}

// Close implements driver.Producer. It waits at most 2 s for confirmations, and as long again for
// the client to close its connections.
func (p *producer) Close(ctx context.Context) error {
	return p.End(ctx, func(bool) error {
		p.stop()
		end(p.kept.Wait)
		for _, o := range p.targets.All() {
			o.fail(driver.ErrClosed)
		}
		return nil
	})
}

// refusal maps the reason why the server has not confirmed a message.
func refusal(err error) error {
	if errors.Is(err, stream.InternalError) {
		return fmt.Errorf("the server has not taken it: %w", err)
	}
	return errorMap.Cause(err)
}
