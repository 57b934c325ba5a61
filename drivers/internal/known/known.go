// Package known keeps what a Conn knows by key, for use by several goroutines. Use a Table for what
// the system was asked about a destination, so that it is asked once; for what Close has to remove;
// and for the open producers or consumers of a subscription.
package known

import (
	"maps"
	"slices"
	"sync"
)

// A Table is a map that may be used concurrently. Its zero value is empty.
type Table[K comparable, T any] struct {
	mu sync.Mutex
	of map[K]T
}

// Of returns the value for a key, or calls find and stores its result unless it failed. The table
// is not locked during find.
func (t *Table[K, T]) Of(key K, find func() (T, error)) (T, error) {
	if is, ok := t.Get(key); ok {
		return is, nil
	}
	is, err := find()
	if err == nil {
		t.Note(key, is)
	}
	return is, err
}

// Get returns the value for a key, if known.
func (t *Table[K, T]) Get(key K) (is T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	is, ok = t.of[key]
	return is, ok
}

func (t *Table[K, T]) Note(key K, is T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[K]T{}
	}
	t.of[key] = is
}

func (t *Table[K, T]) Forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}

// All returns a copy of the table.
func (t *Table[K, T]) All() map[K]T {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[K]T, len(t.of))
	maps.Copy(all, t.of)
	return all
}

// Names returns the keys, sorted.
func Names[T any](t *Table[string, T]) []string { return slices.Sorted(maps.Keys(t.All())) }

// Having returns the keys with that value, in any order.
func Having[K, T comparable](t *Table[K, T], is T) (keys []K) {
	for key, has := range t.All() {
		if has == is {
			keys = append(keys, key)
		}
	}
	return keys
}
