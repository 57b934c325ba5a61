package kmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	ticksOf     = 10 // per redeliver-after
	slowestTick = 500 * time.Millisecond
	trackerRoom = 10_000 // markers per poll
	startPause  = time.Second
	endLimit    = 5 * time.Second
)

// A tracker redelivers messages of one queue that were started and not ended in time. It implements
// kafkaconn.Reader.
type tracker struct {
	conn  *conn
	queue *queue
	ticks int64 // after which a message is due
	ended context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	now     int64 // ticks so far
	ledgers map[int32]*ledger
	strange bool            // a record was not a marker
	written map[int32]int64 // committed positions
}

// tick returns the length of a tick, and how many ticks make up after.
func tick(after time.Duration) (each time.Duration, n int64) {
	each = min(after/ticksOf, slowestTick)
	return each, int64((after + each - 1) / each)
}

func (c *conn) track(q *queue) *tracker {
	ctx, cancel := context.WithCancel(context.Background())
	each, n := tick(c.cfg.RedeliverAfter)
	t := &tracker{conn: c, queue: q, ticks: n, ended: cancel, done: make(chan struct{}), ledgers: map[int32]*ledger{}, written: map[int32]int64{}}
	go func() {
		defer close(t.done)
		for {
			err := t.run(ctx, each)
			if ctx.Err() != nil {
				return
			}
			c.fault(fmt.Errorf("kmq: redelivery of %s begins again: %w", q.topic, err))
			if !retry.Pause(ctx, startPause) {
				return
			}
		}
	}()
	return t
}

// stop stops the tracker and waits for it.
func (t *tracker) stop() {
	t.ended()
	<-t.done
}

// run is one membership in the trackers' group, until ctx ends or it is lost.
func (t *tracker) run(ctx context.Context, each time.Duration) error {
	most, err := t.conn.Link.MaxMessage(ctx, t.queue.topic)
	if err != nil {
		return err
	}
	m, err := t.conn.Join(ctx, kafkaconn.Membership{
		Run: t.conn.Run, Name: "redelivery of " + t.queue.topic, Group: t.queue.redeliver, Partitions: map[string]int{t.queue.markers: t.queue.partitions},
		Reader: t, Fault: t.conn.fault,
	}, append(t.conn.marking(trackerRoom), kgo.ProducerBatchMaxBytes(t.conn.cfg.Batch(0, most)))...)
	if err != nil {
		return err
	}
	defer m.Link.Close(context.Background())
	var ticking sync.WaitGroup
	polling, over := context.WithCancel(ctx)
	ticking.Go(func() {
		ticker := time.NewTicker(each)
		defer ticker.Stop()
		for {
			select {
			case <-polling.Done():
				return
			case <-ticker.C:
				t.tick(polling, m.Link)
			}
		}
	})
	err = m.Poll(ctx)
	over()
	ticking.Wait()
	short, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	t.commit(short, m.Link.Client, nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.ledgers)
	clear(t.written)
	return err
}

// marking returns the options of a client that writes markers, of which at most room may be in
// flight.
func (c *conn) marking(room int) []kgo.Opt {
	return append(c.cfg.Client(""), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(room), kgo.DisableAutoCommit())
}

func (t *tracker) Room(ctx context.Context) int {
	if ctx.Err() != nil {
		return 0
	}
	return trackerRoom
}

// Take reads markers.
func (t *tracker) Take(_ context.Context, rs []*kgo.Record) {
	t.mu.Lock()
	var strange *kgo.Record
	for _, r := range rs {
		l := t.ledgers[r.Partition]
		if l == nil {
			l = newLedger()
			t.ledgers[r.Partition] = l
		}
		if !l.take(r, t.now) && !t.strange {
			t.strange, strange = true, r
		}
	}
	t.mu.Unlock()
	if strange != nil {
		t.conn.fault(fmt.Errorf("kmq: topic %s, partition %d, offset %d: no marker (this is told once)",
			strange.Topic, strange.Partition, strange.Offset))
	}
}

// Taken commits where this tracker's successors must begin.
func (t *tracker) Taken(ctx context.Context, client *kgo.Client, ps map[string][]int32) {
	short, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	t.commit(short, client, ps)
	t.Anew(ps)
}

// Anew clears the state of partitions.
func (t *tracker) Anew(ps map[string][]int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range ps[t.queue.markers] {
		delete(t.ledgers, p)
		delete(t.written, p)
	}
}

// tick advances by one tick, and redelivers what is due.
func (t *tracker) tick(ctx context.Context, link *kafkaconn.Link) {
	t.mu.Lock()
	t.now++
	ask := false
	for _, l := range t.ledgers {
		ask = ask || !l.asked && l.due(t.now, t.ticks)
	}
	t.mu.Unlock()
	if ask {
		t.ask(ctx, link)
	}
	t.mu.Lock()
	overdue := map[int32][]int64{}
	for p, l := range t.ledgers {
		if offsets := l.overdue(t.ticks); len(offsets) > 0 {
			overdue[p] = offsets
		}
	}
	t.mu.Unlock()
	for p, offsets := range overdue {
		left, err := t.redeliver(ctx, link, p, offsets)
		t.mu.Lock()
		if l := t.ledgers[p]; l != nil {
			l.failed(left)
		}
		t.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			t.conn.fault(fmt.Errorf("kmq: redelivery of topic %s, partition %d: %w", t.queue.topic, p, kafkaconn.Cause(err)))
		}
	}
	t.commit(ctx, link.Client, nil)
}

// ask finds out where the markers end: the last ones may end what is due.
func (t *tracker) ask(ctx context.Context, link *kafkaconn.Link) {
	t.mu.Lock()
	now := t.now
	t.mu.Unlock()
	ends, err := link.Offsets(ctx, t.queue.markers, kafkaconn.Latest)
	if err != nil {
		if ctx.Err() == nil {
			t.conn.fault(fmt.Errorf("kmq: redelivery of %s: %w", t.queue.topic, err))
		}
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, l := range t.ledgers {
		if !l.asked && l.due(now, t.ticks) {
			l.asked, l.asOf, l.until = true, now, ends[p]
		}
	}
}

// commit commits where a new reader of the partitions' markers must begin; nil: all partitions.
func (t *tracker) commit(ctx context.Context, client *kgo.Client, ps map[string][]int32) {
	at := map[int32]kgo.EpochOffset{}
	t.mu.Lock()
	for p, l := range t.ledgers {
		if ps != nil && !slices.Contains(ps[t.queue.markers], p) {
			continue
		}
		if n := l.position(); n >= 0 && t.written[p] != n {
			at[p] = kgo.EpochOffset{Epoch: -1, Offset: n}
		}
	}
	t.mu.Unlock()
	if len(at) == 0 {
		return
	}
	if err := commit(ctx, client, map[string]map[int32]kgo.EpochOffset{t.queue.markers: at}); err != nil {
		if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			t.conn.fault(fmt.Errorf("kmq: position in %s not committed: %w", t.queue.markers, err))
		}
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, o := range at {
		if t.ledgers[p] != nil {
			t.written[p] = o.Offset
		}
	}
}
