// Package inflight keeps the messages that a client library has and has not answered. Use
// it in a producer whose client publishes asynchronously.
package inflight

import (
	"context"
	"errors"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// A Set is the messages in flight, each by what the client calls it. The client may leave
// messages without an answer when it ends.
type Set[K comparable] struct {
	*blocking.Outgoing

	mu sync.Mutex
	of map[K]*driver.Message
}

// New returns an empty Set. Messages complete at done.
func New[K comparable](done driver.Completer) *Set[K] {
	return &Set[K]{Outgoing: blocking.NewOutgoing(done), of: map[K]*driver.Message{}}
}

// Begin notes a message that the client is about to get, and reports true. Where err is
// not nil, and after Close, it completes the message and reports false.
func (s *Set[K]) Begin(key K, m *driver.Message, err error) bool {
	if !s.Admit(m, err) {
		return false
	}
	s.mu.Lock()
	s.of[key] = m
	s.mu.Unlock()
	return true
}

// Ended completes a message, unless it has completed, and reports whether it did.
func (s *Set[K]) Ended(key K, err error) bool {
	s.mu.Lock()
	m, ok := s.of[key]
	delete(s.of, key)
	s.mu.Unlock()
	if ok {
		s.Complete(m, err)
	}
	return ok
}

// Close is that of a producer. It waits for answers to what is in flight, within ctx and
// 2 s, has stop end the client, and completes what is left with driver.ErrClosed. Where
// stop's error is driver.ErrAbandoned, the client may still read, and what is left is
// abandoned too. Close returns stop's error; a second call does nothing.
func (s *Set[K]) Close(ctx context.Context, stop func() error) error {
	return s.End(ctx, func(bool) error {
		err := stop()
		s.mu.Lock()
		left := s.of
		s.of = nil
		s.mu.Unlock()
		closed := driver.ErrClosed
		if errors.Is(err, driver.ErrAbandoned) {
			closed = errors.Join(driver.ErrClosed, driver.ErrAbandoned)
		}
		for _, m := range left {
			s.Complete(m, closed)
		}
		return err
	})
}
