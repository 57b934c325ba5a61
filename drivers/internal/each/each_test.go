package each

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/weirmq/weir/driver"
)

var errOdd = errors.New("odd")

// odd fails for the names a and c.
func odd(name string) error {
	if name == "a" || name == "c" {
		return errOdd
	}
	return nil
}

func TestErrorsNameTheirDestination(t *testing.T) {
	var called []string
	ds := []driver.Destination{{Name: "b"}, {Name: "a"}, {Name: "d"}, {Name: "c"}}
	names := []string{"b", "a", "d", "c"}
	note := func(name string) error {
		called = append(called, name)
		return odd(name)
	}
	for name, c := range map[string]struct {
		call   func() error
		called []string
		text   string
	}{
		"Of":     {func() error { return Of(ds, func(d driver.Destination) error { return note(d.Name) }) }, names, "destination a: odd\ndestination c: odd"},
		"InTurn": {func() error { return InTurn(ds, func(d driver.Destination) error { return note(d.Name) }) }, names[:2], "destination a: odd"},
		"Name":   {func() error { return Name(names, func(_ int, d string) error { return note(d) }) }, names[:2], "destination a: odd"},
		"Sum": {func() error {
			_, err := Sum(names, func(d string) (uint64, error) { return 1, note(d) })
			return err
		}, names[:2], "destination a: odd"},
	} {
		called = nil
		err := c.call()
		if !errors.Is(err, errOdd) || err.Error() != c.text {
			t.Errorf("%s: %v; want %q", name, err, c.text)
		}
		if !slices.Equal(called, c.called) {
			t.Errorf("%s: called for %q; want %q", name, called, c.called)
		}
	}
}

func TestNothingFails(t *testing.T) {
	ds := []driver.Destination{{Name: "b"}, {Name: "d"}}
	good := func(d driver.Destination) error { return odd(d.Name) }
	if err := errors.Join(Of(ds, good), InTurn(ds, good), Of(nil, good), About("b", nil)); err != nil {
		t.Error(err)
	}
	var at []int
	if err := Name([]string{"b", "d"}, func(i int, _ string) error { at = append(at, i); return nil }); err != nil || !slices.Equal(at, []int{0, 1}) {
		t.Errorf("indexes %d, %v", at, err)
	}
	if n, err := Sum([]string{"b", "d"}, func(string) (uint64, error) { return 21, nil }); n != 42 || err != nil {
		t.Errorf("sum %d, %v", n, err)
	}
}

func TestAtOnce(t *testing.T) {
	var all sync.WaitGroup
	all.Add(4)
	err := AtOnce([]string{"a", "b", "c", "d"}, func(name string) error {
		all.Done()
		all.Wait() // no call returns before all have started
		return odd(name)
	})
	if err == nil || err.Error() != "odd\nodd" {
		t.Error(err)
	}
	if err := AtOnce(nil, odd); err != nil {
		t.Error(err)
	}
}
