package kafka

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// A place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// A settler commits accepted messages concurrently with deliveries: one request at a time, in
// order.
type settler struct {
	client atomic.Pointer[kgo.Client] // callbacks may need it before it exists
	sink   driver.Sink
	each   bool

	turn   kafkaconn.Turn // guards the fields below
	ds     []driver.Delivery
	rs     []*kgo.Record // of ds; both wait to be committed
	ends   []*kgo.Record // of transactions: the last of each partition in rs
	busy   int           // number being committed
	ended  bool
	frozen map[place]bool // partitions with a rejected message

	// Used only by loop.
	offsets map[string]map[int32]kgo.EpochOffset
	faults  map[place]error
}

func newSettler(r *running, each bool) *settler {
	return &settler{sink: r.sink, each: each, frozen: map[place]bool{}, faults: map[place]error{}, offsets: map[string]map[int32]kgo.EpochOffset{}}
}

// open returns the number of messages waiting to be committed or being committed. The turn is held.
func (s *settler) open() int { return len(s.ds) + len(s.ends) + s.busy }

// add adds accepted messages.
func (s *settler) add(ds []driver.Delivery, rs []*kgo.Record) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for i, r := range rs {
		if len(s.frozen) > 0 && s.frozen[place{r.Topic, r.Partition}] {
			continue
		}
		s.ds, s.rs = append(s.ds, ds[i]), append(s.rs, r)
	}
	s.turn.Changed()
}

// pass moves the positions of a poll's partitions past transaction markers, unless an earlier
// message was rejected. The poll's accepted messages were added before.
func (s *settler) pass(rs []*kgo.Record) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for _, r := range rs {
		if r.Attrs.IsControl() && !s.frozen[place{r.Topic, r.Partition}] {
			s.ends = append(s.ends, r)
		}
	}
	s.turn.Changed()
}

// refuse handles rejected messages: only a position can be committed, so nothing after them may be.
func (s *settler) refuse(rs []*kgo.Record) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for _, r := range rs {
		s.frozen[place{r.Topic, r.Partition}] = true
	}
}

// forget is called when this member loses partitions.
func (s *settler) forget(ps map[string][]int32) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for t, of := range ps {
		for _, p := range of {
			delete(s.frozen, place{t, p})
		}
	}
}

// room waits until half of most may be delivered, and returns how many may; 0 if ctx has ended.
func (s *settler) room(ctx context.Context, most int) int {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.turn.Wait(ctx, func() bool { return most-s.open() > most/2 }) != nil {
		return 0
	}
	return most - s.open()
}

// drain waits until everything is committed, within ctx.
func (s *settler) drain(ctx context.Context) {
	s.turn.Lock()
	defer s.turn.Unlock()
	_ = s.turn.Wait(ctx, func() bool { return s.open() == 0 }) // uncommitted messages are redelivered
}

// close makes loop end after the remaining commits.
func (s *settler) close() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.ended = true
	s.turn.Changed()
}

// loop commits until close.
func (s *settler) loop() {
	var ds []driver.Delivery
	var rs, ends []*kgo.Record
	for {
		s.turn.Lock()
		s.busy = 0
		s.turn.Changed()
		_ = s.turn.Wait(context.Background(), func() bool { return len(s.ds)+len(s.ends) > 0 || s.ended })
		clear(ds)
		clear(rs)
		clear(ends)
		ds, s.ds = s.ds, ds[:0]
		rs, s.rs = s.rs, rs[:0]
		ends, s.ends = s.ends, ends[:0]
		s.busy = len(ds) + len(ends)
		s.turn.Unlock()
		if len(ds)+len(ends) == 0 {
			return
		}
		if !s.each {
			s.commit(ds, rs, ends)
			continue
		}
		for i := range ds {
			s.commit(ds[i:i+1], rs[i:i+1], nil)
			s.turn.Lock()
			s.busy--
			s.turn.Changed()
			s.turn.Unlock()
		}
		if len(ends) > 0 {
			s.commit(nil, rs, ends) // recommit what is committed: a marker may precede it
		}
	}
}

// commit commits the positions after rs and ends in one request, and reports ds, which is rs or
// empty, as settled.
func (s *settler) commit(ds []driver.Delivery, rs, ends []*kgo.Record) {
	clear(s.faults)
	for _, ps := range s.offsets {
		clear(ps)
	}
	for _, r := range rs {
		s.behind(r)
	}
	for _, r := range ends {
		s.behind(r)
	}
	all := kafkaconn.CommitPositions(context.Background(), s.client.Load(), s.offsets, func(topic string, partition int32, err error) {
		s.faults[place{topic, partition}] = err
	})
	switch {
	case len(ds) == 0: // the next commit makes up for a failure
		if all != nil {
			s.sink.Fault(fmt.Errorf("position not committed: %w", all))
		}
	case all == nil && len(s.faults) == 0:
		s.sink.Settled(ds, nil)
	default:
		s.failed(ds, rs, all)
	}
}

// behind includes the position after r in the commit, unless a later one is.
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
	reported := map[place]bool{}
	for i, r := range rs {
		at := place{r.Topic, r.Partition}
		err := all
		if err == nil {
			err = s.faults[at]
		}
		if err = kafkaconn.Cause(err); err != nil && !reported[at] {
			reported[at] = true
			s.sink.Fault(fmt.Errorf("not settled: %w", err))
		}
		s.sink.Settled(ds[i:i+1], err)
	}
}
