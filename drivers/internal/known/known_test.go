package known

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
)

func TestKnownValuesAreCached(t *testing.T) {
	var table Table[string, int]
	odd := errors.New("odd")
	finds := 0
	find := func(n int, err error) func() (int, error) {
		return func() (int, error) { finds++; return n, err }
	}
	for _, c := range []struct {
		name  string
		find  func() (int, error)
		is    int
		err   error
		finds int // so far
	}{
		{"a", find(0, odd), 0, odd, 1},
		{"a", find(1, nil), 1, nil, 2}, // errors are not stored
		{"a", find(2, nil), 1, nil, 2},
		{"b", find(0, nil), 0, nil, 3}, // zero values are
		{"b", find(3, nil), 0, nil, 3},
	} {
		if is, err := table.Of(c.name, c.find); is != c.is || !errors.Is(err, c.err) || finds != c.finds {
			t.Errorf("%s: %d, %v after %d finds; want %d, %v after %d", c.name, is, err, finds, c.is, c.err, c.finds)
		}
	}
	table.Forget("a")
	if _, ok := table.Get("a"); ok {
		t.Error("forgotten, and known")
	}
	if _, err := table.Of("a", find(4, nil)); err != nil || finds != 4 {
		t.Errorf("%v after %d finds", err, finds)
	}
	if all := table.All(); !maps.Equal(all, map[string]int{"a": 4, "b": 0}) {
		t.Errorf("all: %v", all)
	}
	if names := Names(&table); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("names: %q", names)
	}
}

func TestEmptyTable(t *testing.T) {
	var table Table[string, string]
	table.Forget("a")
	if is, ok := table.Get("a"); is != "" || ok || len(table.All()) > 0 || len(Names(&table)) > 0 {
		t.Errorf("%q, %v", is, ok)
	}
	table.All()["a"] = "b" // a copy
	if _, ok := table.Get("a"); ok {
		t.Error("the copy is the table")
	}
}

func TestConcurrentLookups(t *testing.T) {
	var table Table[string, int]
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, _ = table.Of("a", func() (int, error) { return i, nil })
			table.Note("b", i)
			table.Forget("b")
			_ = Names(&table)
		})
	}
	all.Wait()
	if n := len(table.All()); n != 1 {
		t.Errorf("%d names", n)
	}
}

func TestKeysHavingAValue(t *testing.T) {
	var table Table[int, string]
	if keys := Having(&table, "a"); keys != nil {
		t.Errorf("an empty table: %v", keys)
	}
	for key, is := range []string{"a", "b", "a", ""} {
		table.Note(key, is)
	}
	table.Forget(0)
	table.Forget(7)
	for is, want := range map[string][]int{"a": {2}, "b": {1}, "": {3}, "c": nil} {
		if keys := Having(&table, is); !slices.Equal(keys, want) {
			t.Errorf("%q: %v; want %v", is, keys, want)
		}
	}
}
