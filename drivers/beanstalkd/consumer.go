package beanstalkd

import (
	"context"
	"errors"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/keeper"
)

// reserveWait is how long a reserve waits for a job before it is sent again. It is shorter than any
// option timeout, so that a silent server is detected.
const reserveWait = time.Second

// A feed takes the jobs of one tube.
type feed = keeper.Feed[*client.Conn]

// Consumer connects once for each destination. A tube keeps its jobs for any consumer. When a
// connection ends, the server gives the job that it holds to another consumer.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return blocking.NewFeeds(spec.Destinations, func(i int, d string) (blocking.Feeds, error) {
		tube, err := c.tube(d)
		if err != nil {
			return nil, err
		}
		l, err := c.cfg.connect(ctx, c.run.For(&spec), spec.Name())
		watched, id := map[string]bool{tube: true}, uint64(0)
		return blocking.Feeds{&feed{
			Link: l, Source: int32(i),
			Take: func(k *client.Conn, d *driver.Delivery) (ok bool, err error) {
				set := client.TubeSet{Conn: k, Name: watched}
				if id, d.Payload, err = set.Reserve(reserveWait); errors.Is(err, client.ErrTimeout) {
					return false, nil
				}
				return true, err
			},
			Settle: func(k *client.Conn, refused bool) error {
				if refused {
					return k.Release(id, priority, 0)
				}
				return k.Delete(id)
			},
			Renew: func(k *client.Conn) error { return k.Touch(id) }, RenewEvery: c.cfg.Touch,
		}}, err
	})
}
