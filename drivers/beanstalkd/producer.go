package beanstalkd

import (
	"context"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// priority applies to all jobs: the most urgent one that the server does not count as urgent.
const priority = 1024

// A producer puts one job at a time to preserve order, on its own connection. Other messages in
// flight wait in the Pool.
type producer struct {
	*blocking.Pool
	link  *link
	tubes *driver.Targets[string]
	ttr   time.Duration
}

// Producer connects, and asks for the server's maximum job size.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	const limit = "the server's max-job-size"
	tubes, err := driver.NewTargets(spec.Destinations, c.tube)
	if err != nil {
		return nil, err
	}
	stats, err := c.stats(ctx)
	if err != nil {
		return nil, err
	}
	most := int64(number(stats, "max-job-size"))
	if err := driver.CheckSize(spec.Largest, most, limit); err != nil {
		return nil, err
	}
	tubes.Limit(most, limit)
	p := &producer{tubes: tubes, ttr: c.cfg.TTR}
	if p.link, err = c.cfg.connect(ctx, c.run, spec.Name()); err != nil {
		return nil, err
	}
	p.Pool = blocking.New(1, spec.InFlight, p.send, done).Then(p.link.Close)
	return p, nil
}

// send puts a job and waits for the answer.
func (p *producer) send(ctx context.Context, _ int, m *driver.Message) error {
	tube, err := p.tubes.Of(ctx, m)
	if err != nil {
		return err
	}
	return p.link.Do(ctx, func(k *client.Conn) error {
		t := client.Tube{Conn: k, Name: tube}
		_, err := t.Put(m.Payload, priority, 0, p.ttr)
		return err
	})
}
