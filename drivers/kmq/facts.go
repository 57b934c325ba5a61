package kmq

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// Facts reads the settings of the topics from every broker that holds them.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.Hold.Facts(ctx, page.Confirmations)
	if err == nil {
		f.Settings["redeliver-after"] = c.cfg.RedeliverAfter.String()
	}
	return f, err
}

// Backlog implements driver.Backlogger: messages in the log after the group's committed positions,
// plus messages started and not ended. A message that is being started, or redelivered, counts
// twice for that moment.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	n, err := c.Behind(ctx, subscription, destinations, c.open)
	if n == 0 && err == nil {
		// A message that was redelivered between the two readings of a queue was in neither. It is
		// not redelivered again so soon.
		return c.Behind(ctx, subscription, destinations, c.open)
	}
	return n, err
}

// open returns how many messages of a topic's queue were started and not ended. It reads the
// markers from the positions that the trackers, here or in other processes, have committed.
func (c *conn) open(ctx context.Context, topic string) (n uint64, err error) {
	c.mu.Lock()
	q := c.queues[topic]
	c.mu.Unlock()
	if q == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	ends, err := c.Link.Offsets(ctx, q.markers, kafkaconn.Latest)
	if err != nil {
		return 0, err
	}
	begins, err := c.Link.Committed(ctx, q.redeliver, q.markers)
	if err != nil {
		return 0, err
	}
	from, ledgers := map[int32]kgo.Offset{}, map[int32]*ledger{}
	for p, begin := range begins {
		if begin < ends[p] {
			from[p], ledgers[p] = kgo.NewOffset().At(begin), newLedger()
		}
	}
	left := len(ledgers)
	if left == 0 {
		return 0, nil
	}
	err = c.scan(ctx, map[string]map[int32]kgo.Offset{q.markers: from}, func(r *kgo.Record) bool {
		l := ledgers[r.Partition]
		if l.next >= ends[r.Partition] {
			return true // written since then
		}
		if l.take(r, 0); l.next >= ends[r.Partition] {
			left--
		}
		return left > 0
	})
	for _, l := range ledgers {
		n += uint64(len(l.open))
	}
	return n, err
}
