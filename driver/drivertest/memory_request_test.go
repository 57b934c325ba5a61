package drivertest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// memTimeout is how long a memory's requests wait for their replies.
const memTimeout = 300 * time.Millisecond

// memRequester has a goroutine for each request under way.
type memRequester struct {
	c      *memConn
	m      *memory
	done   driver.Completer
	asking sync.WaitGroup
	quit   chan struct{} // closed by Close

	mu        sync.Mutex
	closed    bool
	published int
}

func (c *memConn) Requester(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &memRequester{c: c, m: c.m, done: done, quit: make(chan struct{})}, nil
}

// Responder implements driver.Requester.
func (c *memConn) Responder(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	r, err := c.Consumer(ctx, spec)
	if err != nil {
		return nil, err
	}
	r.(*memConsumer).answers = true
	return r, nil
}

func (q *memRequester) Publish(ctx context.Context, m *driver.Message) {
	q.mu.Lock()
	q.published++
	number := q.published
	q.mu.Unlock()
	if ctx.Err() != nil {
		q.done.Complete(m, ctx.Err())
		return
	}
	answer := make(chan []byte, 2)
	s := memStored{payload: bytes.Clone(m.Payload), answer: answer}
	if !q.m.caps.Partitions {
		s.partition = -1
	}
	cuts := q.m.cut()
	if err := q.m.deliver(ctx, q.c.name(m.Destination), s); err != nil {
		q.done.Complete(m, err)
		return
	}
	q.asking.Go(func() {
		err := q.await(m, answer, cuts)
		if errors.Is(err, errForgotten) {
			return
		}
		if q.m.fault == "completes requests twice" && number%100 == 0 {
			q.done.Complete(m, err)
		}
		q.done.Complete(m, err)
	})
}

// errForgotten ends a request that a fault leaves uncompleted.
var errForgotten = errors.New("forgotten")

// await returns with the reply in m, or the reason why there is none.
func (q *memRequester) await(m *driver.Message, answer <-chan []byte, cuts int) error {
	if q.m.fault == "flushes requests too early" {
		time.Sleep(5 * time.Millisecond)
	}
	limit := time.NewTimer(memTimeout)
	defer limit.Stop()
	cut := make(chan struct{})
	quit := make(chan struct{})
	defer close(quit)
	q.asking.Go(func() { q.m.awaitCut(cuts, cut, quit) })
	timeout := limit.C
	if q.m.fault == "waits for a reply for ever" {
		timeout = nil
	}
	select {
	case b := <-answer:
		m.Reply = b
		if q.m.fault == "cuts replies at 1,000 bytes" {
			m.Reply = b[:min(len(b), 1000)]
		}
		return nil
	case <-timeout:
		if q.m.fault == "takes no reply for one" {
			return nil
		}
		return driver.ErrTimeout
	case <-cut:
		if q.m.fault == "forgets requests when cut" {
			return errForgotten
		}
		return driver.ErrDisconnected
	case <-q.quit:
		switch q.m.fault {
		case "abandons requests at Close":
			return errForgotten
		case "closes requests with errors of its own":
			return errors.New("bye")
		}
		return driver.ErrClosed
	}
}

// awaitCut closes cut when the connections are cut again after cuts times, and
// returns then or when quit is closed.
func (m *memory) awaitCut(cuts int, cut chan<- struct{}, quit <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.wait(ctx, func() bool { return m.cuts > cuts }) == nil {
			close(cut)
		}
	}()
	select {
	case <-done:
	case <-quit:
		cancel()
		<-done
	}
}

func (q *memRequester) Flush(ctx context.Context) error {
	if q.m.fault == "flushes requests too early" {
		return nil
	}
	done := make(chan struct{})
	go func() { q.asking.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *memRequester) Close(context.Context) error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	if !again {
		close(q.quit)
	}
	q.asking.Wait()
	return nil
}

// answer replies to what Deliver was given.
func (r *memConsumer) answer(batch []*memStored, refused error) {
	if !r.answers || refused != nil && r.m.fault != "answers what was refused" {
		return
	}
	for _, s := range batch {
		if s.answer != nil {
			s.answer <- bytes.Clone(s.payload)
			s.answer = nil
		}
	}
}
