package network

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPartitionsBecomeChanges(t *testing.T) {
	const s = time.Second
	got := Changes([]Partition{{Of: Both, At: 8 * s}, {Of: ToSystem, At: s, For: s, Every: 3 * s}}, 10*s, 7*s)
	want := []Change{
		{At: 11 * s, Of: ToSystem, To: true},
		{At: 12 * s, Of: ToSystem, Ends: true},
		{At: 14 * s, Of: ToSystem, To: true, Which: 1},
		{At: 15 * s, Of: ToSystem, Ends: true, Which: 1},
		{At: 18 * s, Of: Both, To: true, From: true, Which: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPartitionsThatOverlapAreRefused(t *testing.T) {
	const s = time.Second
	for _, x := range []struct {
		all  []Partition
		fine bool
	}{
		{nil, true},
		{[]Partition{{Of: Both, At: s, For: s}, {Of: Both, At: 2 * s, For: s}}, true},
		{[]Partition{{Of: Both, At: s, For: 2 * s}, {Of: ToSystem, At: 2 * s, For: s}}, false},
		{[]Partition{{Of: Both, At: s}, {Of: ToSystem, At: 2 * s, For: s}}, false},
		{[]Partition{{Of: Both, At: 0, For: time.Millisecond, Every: 2 * time.Millisecond}}, false}, // too many
	} {
		if err := CheckPartitions(x.all, 10*s); (err == nil) != x.fine {
			t.Errorf("%v: %v", x.all, err)
		}
	}
}
