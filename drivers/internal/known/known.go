// Package known caches what a Conn has learned by name, about destinations for example, so that it
// asks the system only once. Use a Table for what Declare creates or a producer finds, Delete
// removes, and Facts reads.
package known

import (
	"maps"
	"slices"
	"sync"
)

// A Table is a cache by name. Its zero value is empty; its methods may be called concurrently.
type Table[T any] struct {
	mu sync.Mutex
	of map[string]T
}

// Of returns the value for a name, or calls find and stores its result unless it failed. The table
// is not locked during find.
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

// Get returns the value for a name, if known.
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

// All returns a copy of the table.
func (t *Table[T]) All() map[string]T {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]T, len(t.of))
	maps.Copy(all, t.of)
	return all
}

func (t *Table[T]) Names() []string { return slices.Sorted(maps.Keys(t.All())) }
