package kestrel

import (
	"context"
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/keeper"
)

// A feed takes the items of one queue. The server lets a connection hold one item of a queue, and
// gives an item that is still open when a connection ends to another consumer.
type feed = keeper.Feed[*session]

// Consumer connects once for each destination. Its subscription's child queues have begun when it
// returns. A queue keeps its items until a consumer takes them.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return blocking.NewFeeds(spec.Destinations, func(i int, d string) (blocking.Feeds, error) {
		queue, err := c.queue(d)
		if err != nil {
			return nil, err
		}
		key := c.child(queue, spec.Subscription)
		l, err := c.cfg.connect(ctx, c.run.For(&spec), spec.Name())
		if err != nil {
			return nil, err
		}
		if c.cfg.Fanout {
			if err := l.Ask(ctx, func(s *session) error { _, _, err := s.get(key + "/peek"); return err }); err != nil {
				l.Close()
				return nil, err
			}
		}
		open := fmt.Sprintf("%s/t=%d/open", key, c.cfg.Wait.Milliseconds())
		return blocking.Feeds{&feed{
			Link: l, Source: int32(i), Idle: c.cfg.Poll,
			Take: func(s *session, d *driver.Delivery) (ok bool, err error) {
				d.Payload, ok, err = s.get(open)
				return ok, err
			},
			Settle: func(s *session, refused bool) error {
				end := "/close"
				if refused {
					end = "/abort"
				}
				_, _, err := s.get(key + end)
				return err
			},
		}}, nil
	})
}
