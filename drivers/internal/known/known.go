// Package known keeps what a Conn has learned by name, of destinations for one, so that it
// asks the system once. Use a Table for what Declare makes or a producer finds, Delete
// forgets and Facts look at.
package known

import (
	"maps"
	"slices"
	"sync"
)

// A Table is what is known by name. Its zero value is empty; its methods may be called
// concurrently.
type Table[T any] struct {
	mu sync.Mutex
	of map[string]T
}

// Of returns what is known of a name, or else what find returns, which it notes where that
// is not an error. The table is not locked meanwhile.
func (t *Table[T]) Of(name string, find func() (T, error)) (T, error) {
	if is, ok := t.Get(name); ok {
		return is, nil
	}
	is, err := find()
	if err == nil {
		t.Note(name, is)
	}
	return is, err
}

// Get returns what is known of a name, if anything is.
func (t *Table[T]) Get(name string) (is T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	is, ok = t.of[name]
	return is, ok
}

func (t *Table[T]) Note(name string, is T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]T{}
	}
	t.of[name] = is
}

func (t *Table[T]) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, name)
}

// All returns a copy of what is known.
func (t *Table[T]) All() map[string]T {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]T, len(t.of))
	maps.Copy(all, t.of)
	return all
}

func (t *Table[T]) Names() []string { return slices.Sorted(maps.Keys(t.All())) }
