package clientpath

import (
	"context"
	"errors"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// Sent is the messages that a client library's own publisher has and has not answered,
// each by what the publisher calls it. Use it in a producer by that publisher, which may
// leave messages without an answer when it ends.
type Sent[K comparable] struct {
	done driver.Completer
	open *blocking.Outstanding

	mu     sync.Mutex
	of     map[K]*driver.Message
	closed bool
}

// NewSent returns a table of none. Messages complete at done.
func NewSent[K comparable](done driver.Completer) *Sent[K] {
	return &Sent[K]{done: done, open: blocking.NewOutstanding(), of: map[K]*driver.Message{}}
}

// Begin notes a message that the publisher is about to get, and reports true. After
// Close it completes the message with driver.ErrClosed.
func (s *Sent[K]) Begin(key K, m *driver.Message) bool {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open.Add(1)
		s.of[key] = m
	}
	s.mu.Unlock()
	if closed {
		s.done.Complete(m, driver.ErrClosed)
	}
	return !closed
}

// End completes a message, unless it has ended, and reports whether it did.
func (s *Sent[K]) End(key K, err error) bool {
	s.mu.Lock()
	m, ok := s.of[key]
	delete(s.of, key)
	s.mu.Unlock()
	if ok {
		s.done.Complete(m, err)
		s.open.Done(1)
	}
	return ok
}

// Flush implements driver.Producer.
func (s *Sent[K]) Flush(ctx context.Context) error { return s.open.Wait(ctx) }

// Close waits for answers to what is in flight, within ctx and 2 s, has stop end the
// publisher, and completes what is left with driver.ErrClosed. Where stop's error is
// driver.ErrAbandoned, the publisher may still read, and what is left is abandoned too.
// Close returns stop's error; a second call does nothing.
func (s *Sent[K]) Close(ctx context.Context, stop func() error) error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	_ = s.open.WaitLast(ctx) // what is left ends below
	err := stop()
	s.mu.Lock()
	left := make([]K, 0, len(s.of))
	for key := range s.of {
		left = append(left, key)
	}
	s.mu.Unlock()
	closed := driver.ErrClosed
	if errors.Is(err, driver.ErrAbandoned) {
		closed = errors.Join(driver.ErrClosed, driver.ErrAbandoned)
	}
	for _, key := range left {
		s.End(key, closed)
	}
	return err
}
