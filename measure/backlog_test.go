package measure

import "testing"

func TestABacklogIsNetOfLosses(t *testing.T) {
	lost := &Lost{}
	lost.Add(30, 5)
	lost.Add(10, 2)
	lost.Add(10, 1)
	b := Backlog{{Missing: 10, Passed: 4}, {Missing: 7}}
	for _, x := range []struct {
		at   int64
		lost []*Lost
		want uint64
	}{
		{9, nil, 7},                 // live: 6 and 7
		{9, []*Lost{lost}, 10},      // none of the first was due
		{10, []*Lost{lost}, 7},      // 3 were
		{30, []*Lost{nil, lost}, 6}, // the first has not run dry
		{99, []*Lost{lost, lost}, 2},
	} {
		if got := b.Net(x.at, x.lost); got != x.want {
			t.Errorf("%d wait at %d; want %d", got, x.at, x.want)
		}
	}
	if n := b.Waiting(); n != 7 {
		t.Errorf("%d wait; want 7", n)
	}
	if n := (Backlog{{Missing: 1, Passed: 2}}).Waiting() + Backlog(nil).Waiting(); n != 0 {
		t.Errorf("%d wait; want none", n)
	}
}
