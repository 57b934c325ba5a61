// Package closers tracks the open producers or consumers of a Conn. Use a Set where Backlog asks
// the connections of a subscription's consumers.
package closers

import "sync"

// A Set holds open producers or consumers by subscription. Its zero value is empty; its methods may
// be called concurrently.
type Set[T comparable] struct {
	mu   sync.Mutex
	open map[T]string
}

// Add adds a producer or consumer under its subscription; "" for a producer.
func (s *Set[T]) Add(end T, subscription string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[T]string{}
	}
	s.open[end] = subscription
}

func (s *Set[T]) Remove(end T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, end)
}

// Of returns a subscription's producers or consumers, in any order.
func (s *Set[T]) Of(subscription string) (of []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for end, is := range s.open {
		if is == subscription {
			of = append(of, end)
		}
	}
	return of
}
