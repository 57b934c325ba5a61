package kmq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// endValue is the value of every end marker.
var endValue = [1]byte{endKind}

// A starting holds the start markers of one poll. The next poll reuses its memory.
type starting struct {
	value   []byte
	records []kgo.Record
	keys    []byte
	todo    []*kgo.Record // still to be sent
	done    func(*kgo.Record, error)
	over    chan struct{} // holds a token when nothing is left

	mu     sync.Mutex
	left   int
	failed []*kgo.Record
	err    error // the last error
}

func (s *starting) init(value []byte) {
	s.value, s.done, s.over = value, s.complete, make(chan struct{}, 1)
}

// prepare makes the start markers of rs.
func (s *starting) prepare(rs []*kgo.Record, markers map[string]string) {
	if cap(s.records) < len(rs) {
		s.records, s.keys = make([]kgo.Record, len(rs)), make([]byte, len(rs)*keySize)
	}
	s.records, s.todo = s.records[:len(rs)], s.todo[:0]
	for i, r := range rs {
		key := s.keys[i*keySize:][:keySize:keySize]
		putKey(key, r.Partition, r.Offset)
		s.records[i] = kgo.Record{Topic: markers[r.Topic], Partition: r.Partition, Key: key, Value: s.value, Context: context.Background()}
		s.todo = append(s.todo, &s.records[i])
	}
}

func (s *starting) send(link *kafkaconn.Link) {
	s.mu.Lock()
	s.left, s.failed = len(s.todo), s.failed[:0]
	s.mu.Unlock()
	for _, r := range s.todo {
		link.TryProduce(context.Background(), r, s.done)
	}
}

func (s *starting) complete(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed, s.err = append(s.failed, r), err
	}
	if s.left--; s.left == 0 {
		s.over <- struct{}{}
	}
}

// wait waits until the outcome of all markers is known, and queues the failed ones to be sent
// again. If ctx ends meanwhile, it returns how many are left, and the starting must not be used
// again.
func (s *starting) wait(ctx context.Context) (failed int, err error) {
	select {
	case <-s.over:
	case <-ctx.Done():
		// Markers written now are wasted, unless they are confirmed in a moment.
		short, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		select {
		case <-s.over:
		case <-short.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			return max(s.left, 1), ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.todo = append(s.todo[:0], s.failed...)
	return len(s.todo), s.err
}

// An ending holds the end markers of one poll. Its memory is reused.
type ending struct {
	r        *running
	ds       []driver.Delivery
	marks    []*mark
	left     atomic.Int64
	reported atomic.Bool // a fault was reported
}

// A mark is one end marker.
type mark struct {
	e      *ending
	i      int // index in e.ds
	record kgo.Record
	key    [keySize]byte
	err    error
	done   func(*kgo.Record, error)
}

// ending returns an ending for n messages, which are open from now on.
func (r *running) ending(n int) *ending {
	r.turn.Lock()
	r.open += n
	var e *ending
	if last := len(r.free) - 1; last >= 0 {
		e, r.free = r.free[last], r.free[:last]
	}
	r.turn.Unlock()
	if e == nil {
		e = &ending{r: r}
	}
	for i := len(e.marks); i < n; i++ {
		m := &mark{e: e, i: i}
		m.done = m.complete
		e.marks = append(e.marks, m)
	}
	return e
}

// complete is the client's callback for an end marker's outcome.
func (m *mark) complete(_ *kgo.Record, err error) {
	e := m.e
	r := e.r
	if m.err = kafkaconn.Cause(err); m.err != nil && !e.reported.Swap(true) {
		r.sink.Fault(fmt.Errorf("not settled: %w", m.err))
	}
	if r.each {
		r.sink.Settled(e.ds[m.i:m.i+1], m.err)
	}
	if e.left.Add(-1) > 0 {
		return
	}
	switch {
	case r.each:
	case !e.reported.Load():
		r.sink.Settled(e.ds, nil)
	default:
		for i := range e.ds {
			r.sink.Settled(e.ds[i:i+1], e.marks[i].err)
		}
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	r.open -= len(e.ds)
	r.free = append(r.free, e)
	r.turn.Changed()
}
