package driver

import (
	"errors"
	"testing"
)

func TestFaults(t *testing.T) {
	odd := errors.New("odd")
	none, some := Faults{nil, nil}, Faults{nil, odd}
	if err := none.Join(); err != nil {
		t.Error(err)
	}
	some.Add("size", "%d is %w (0 to %d)", 9, odd, 5)
	err := some.Join()
	var is *OptionError
	if !errors.As(err, &is) || is.Name != "size" || !errors.Is(is, odd) {
		t.Errorf("%v has no error of the option", err)
	}
	if want := "odd\noption size: 9 is odd (0 to 5)"; err.Error() != want {
		t.Errorf("%q; want %q", err, want)
	}
}
