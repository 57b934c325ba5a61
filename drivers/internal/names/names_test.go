package names

import (
	"strings"
	"testing"
)

func TestJoin(t *testing.T) {
	for want, parts := range map[string][]string{
		"weir.r-1.D2":   {"weir", "r-1", "D2"},
		"a_2eb":         {"a.b"},
		"a.b":           {"a", "b"},
		"_c3_bc_5f_20x": {"ü_ x"},
		"":              nil,
	} {
		if got := Join(64, parts...); got != want {
			t.Errorf("%q is %q; want %q", parts, got, want)
		}
	}
	long := strings.Repeat("a", 100)
	one, other := Join(64, long+"b"), Join(64, long+"c")
	if len(one) != 64 || len(other) != 64 || one == other || !strings.HasPrefix(one, long[:47]+".") {
		t.Errorf("%q and %q", one, other)
	}
	if got := Join(100, long); got != long {
		t.Errorf("%q is not a name of 100 bytes", got)
	}
}
