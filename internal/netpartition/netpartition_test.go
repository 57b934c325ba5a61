package netpartition

import "testing"

func TestPairsAreCutBothWays(t *testing.T) {
	r, err := rowsOf([][2]int{{0, 2}, {2, 1}, {2, 3}})
	if err != nil || r[0] != 1<<2 || r[1] != 1<<2 || r[2] != 1|1<<1|1<<3 || r[3] != 1<<2 || r[4] != 0 {
		t.Errorf("%v, %v", r, err)
	}
	for _, pair := range [][2]int{{-1, 1}, {1, MostNodes + 1}} {
		if _, err := rowsOf([][2]int{pair}); err == nil {
			t.Errorf("%v is taken", pair)
		}
	}
}
