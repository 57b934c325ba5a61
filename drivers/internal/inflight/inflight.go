// Package inflight tracks messages that a client library has accepted but not answered. Use it in a
// producer whose client publishes asynchronously.
package inflight

import (
	"context"
	"errors"
	"sync"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// A Set holds the messages in flight, keyed by the client's identifier. The client may leave
// messages unanswered when it closes.
type Set[K comparable] struct {
	*blocking.Outgoing

	mu sync.Mutex
	of map[K]*driver.Message
}

// New returns an empty Set that completes messages at done.
func New[K comparable](done driver.Completer) *Set[K] {
	return &Set[K]{Outgoing: blocking.NewOutgoing(done), of: map[K]*driver.Message{}}
}

// Begin records a message that is about to be passed to the client, and returns true. If err is not
// nil, or after Close, it completes the message and returns false.
func (s *Set[K]) Begin(key K, m *driver.Message, err error) bool {
	if !s.Admit(m, err) {
		return false
	}
	s.mu.Lock()
	s.of[key] = m
	s.mu.Unlock()
	return true
}

// Ended completes a message unless it has already completed, and reports whether it did.
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

// Close closes a producer: it waits for outstanding answers, within ctx and 2 s, calls stop to
// close the client, and completes the rest with driver.ErrClosed. If stop returns
// driver.ErrAbandoned, the client may still read the payloads, so they are abandoned too. Close
// returns stop's error; a second call does nothing.
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
