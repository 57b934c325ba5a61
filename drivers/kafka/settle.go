package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// commitLimit bounds one commit, its retries included.
const commitLimit = 10 * time.Second

// A place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// A settler commits what was accepted, beside the deliveries: one request at a
// time, in order.
type settler struct {
	link *atomicLink
	sink driver.Sink
	each bool

	mu     sync.Mutex
	turn   sync.Cond // something below has changed
	ds     []driver.Delivery
	rs     []*kgo.Record // of ds; both wait to be committed
	ends   []*kgo.Record // of transactions, behind all of their partition in rs
	busy   int           // how many are being committed
	ended  bool
	frozen map[place]bool // partitions of which something was refused

	// Of loop alone.
	offsets map[string]map[int32]kgo.EpochOffset
	faults  map[place]error
}

// An atomicLink is a client that callbacks may ask for before there is one.
type atomicLink = atomic.Pointer[kafkaconn.Link]

func newSettler(r *running, each bool) *settler {
	s := &settler{link: &atomicLink{}, sink: r.sink, each: each, frozen: map[place]bool{}, faults: map[place]error{}}
	s.turn.L = &s.mu
	return s
}

// open returns how many messages wait to be committed, or are being. mu is held.
func (s *settler) open() int { return len(s.ds) + len(s.ends) + s.busy }

// add takes what was accepted.
func (s *settler) add(ds []driver.Delivery, rs []*kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range rs {
		if len(s.frozen) > 0 && s.frozen[place{r.Topic, r.Partition}] {
			continue
		}
		s.ds, s.rs = append(s.ds, ds[i]), append(s.rs, r)
	}
	s.turn.Broadcast()
}

// pass has the positions of a poll's partitions go past the ends of transactions in
// it, where nothing before was refused. What was accepted of the poll was added before.
func (s *settler) pass(rs []*kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rs {
		if r.Attrs.IsControl() && !s.frozen[place{r.Topic, r.Partition}] {
			s.ends = append(s.ends, r)
		}
	}
	s.turn.Broadcast()
}

// refuse takes what was refused: a position is all that can be committed, so that
// nothing behind it may be.
func (s *settler) refuse(rs []*kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rs {
		s.frozen[place{r.Topic, r.Partition}] = true
	}
}

// forget is called when partitions are this member's no more.
func (s *settler) forget(ps map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, of := range ps {
		for _, p := range of {
			delete(s.frozen, place{t, p})
		}
	}
}

// wait returns when ok, which is asked with mu held, or when ctx has ended.
func (s *settler) wait(ctx context.Context, ok func() bool) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !ok() && ctx.Err() == nil {
		s.turn.Wait()
	}
}

// room waits until half of most may be delivered, and returns how many may; 0 when
// ctx has ended.
func (s *settler) room(ctx context.Context, most int) int {
	s.mu.Lock()
	n := most - s.open()
	s.mu.Unlock()
	if n > most/2 {
		return n
	}
	s.wait(ctx, func() bool {
		n = most - s.open()
		return n > most/2
	})
	if ctx.Err() != nil {
		return 0
	}
	return n
}

// drain waits until all is committed, within the limit.
func (s *settler) drain(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.wait(ctx, func() bool { return s.open() == 0 })
}

// close has loop end when it has committed what there is.
func (s *settler) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.turn.Broadcast()
}

// loop commits until close.
func (s *settler) loop() {
	var ds []driver.Delivery
	var rs, ends []*kgo.Record
	for {
		s.mu.Lock()
		s.busy = 0
		s.turn.Broadcast()
		for len(s.ds)+len(s.ends) == 0 && !s.ended {
			s.turn.Wait()
		}
		clear(ds)
		clear(rs)
		clear(ends)
		ds, s.ds = s.ds, ds[:0]
		rs, s.rs = s.rs, rs[:0]
		ends, s.ends = s.ends, ends[:0]
		s.busy = len(ds) + len(ends)
		s.mu.Unlock()
		if len(ds)+len(ends) == 0 {
			return
		}
		if !s.each {
			s.commit(ds, rs, ends)
			continue
		}
		for i := range ds {
			s.commit(ds[i:i+1], rs[i:i+1], nil)
			s.mu.Lock()
			s.busy--
			s.turn.Broadcast()
			s.mu.Unlock()
		}
		if len(ends) > 0 {
			s.commit(nil, rs, ends) // again what is committed: an end may be before it
		}
	}
}

// commit commits the positions behind rs and ends by one request and reports ds, which
// is rs or none, as settled.
func (s *settler) commit(ds []driver.Delivery, rs, ends []*kgo.Record) {
	clear(s.faults)
	for _, ps := range s.offsets {
		clear(ps)
	}
	if s.offsets == nil {
		s.offsets = map[string]map[int32]kgo.EpochOffset{}
	}
	for _, r := range rs {
		s.behind(r)
	}
	for _, r := range ends {
		s.behind(r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
	defer cancel()
	all := kafkaconn.CommitPositions(ctx, s.link.Load().Client, s.offsets, func(topic string, partition int32, err error) {
		s.faults[place{topic, partition}] = err
	})
	switch {
	case len(ds) == 0: // the next commit makes good what failed
		if all != nil {
			s.sink.Fault(fmt.Errorf("position not committed: %w", all))
		}
	case all == nil && len(s.faults) == 0:
		s.sink.Settled(ds, nil)
	default:
		s.failed(ds, rs, all)
	}
}

// behind has the position behind r committed, unless a later one is.
func (s *settler) behind(r *kgo.Record) {
	ps := s.offsets[r.Topic]
	if ps == nil {
		ps = map[int32]kgo.EpochOffset{}
		s.offsets[r.Topic] = ps
	}
	if ps[r.Partition].Offset <= r.Offset {
		ps[r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	}
}

// failed reports what was settled and what was not.
func (s *settler) failed(ds []driver.Delivery, rs []*kgo.Record, all error) {
	told := map[place]bool{}
	for i, r := range rs {
		at := place{r.Topic, r.Partition}
		err := all
		if err == nil {
			err = s.faults[at]
		}
		if err = kafkaconn.Cause(err); err != nil && !told[at] {
			told[at] = true
			s.sink.Fault(fmt.Errorf("not settled: %w", err))
		}
		s.sink.Settled(ds[i:i+1], err)
	}
}
