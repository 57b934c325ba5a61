package measure

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Stages equal what looking at each message individually gives, and add up to the window.
func TestMessageBelongsToStageWhenDue(t *testing.T) {
	begins, to := []int64{1_000, 1_001, 5_000, 9_000}, int64(10_000)
	r := NewRecorder(Config{SendShards: 2, ReceiveShards: 2, From: 1_000, To: to, Stages: begins})
	want := make([]Stage, len(begins))
	in := func(at int64) *Stage {
		for i := len(begins) - 1; i >= 0; i-- {
			if at >= begins[i] && at < to {
				return &want[i]
			}
		}
		return new(Stage) // of none
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	dues := []int64{0, 999, 1_000, 1_001, 4_999, 5_000, 9_999}
	for range 2_000 {
		dues = append(dues, rnd.Int64N(to))
	}
	for i, due := range dues {
		late, start := rnd.Int64N(50), due+rnd.Int64N(3_000)
		done := start + rnd.Int64N(3_000)
		g := in(due)
		g.Offered++
		s := r.Sender(i)
		switch i % 10 {
		case 0:
			s.Dropped(due)
			continue
		case 1:
			s.Unsent(due)
			continue
		}
		in(start).Sent++
		s.Handed(due, due, due+late, 0, start, 1)
		in(done).Confirmed++
		s.Confirmed(due, start, done, late)
		in(done).Received++
		r.Receiver(i).Received(done, 1, 1)
		r.Receiver(i).Delivered(due, start, done, late)
		for _, k := range []Kind{SendResponse, E2EResponse} {
			onTime, _ := k.OnTime()
			g.Kinds[k].Add(done-due, 1)
			g.Kinds[onTime].Add(done-due-late, 1)
		}
	}
	got := r.Stages()
	same := cmp.Comparer(func(a, b Counts) bool {
		x, _ := a.AppendBinary(nil)
		y, _ := b.AppendBinary(nil)
		return string(x) == string(y)
	})
	if d := cmp.Diff(want, got, same); d != "" {
		t.Error(d)
	}
	var sum Stage
	for i := range got {
		sum.Merge(&got[i])
	}
	all := read(r)
	for _, k := range []Kind{SendResponse, SendOnTime, E2EResponse, E2EOnTime} {
		if d := cmp.Diff(sum.Kinds[k], all.Kinds[k][Measure], same); d != "" {
			t.Errorf("%v of all stages is not that of the window: %s", k, d)
		}
	}
	w, c := all.Window, all.Counters[Measure]
	if sum.Sent != w.Sent || sum.Confirmed != w.Confirmed || sum.Received != w.Received || sum.Offered != c.Sent+c.Dropped+c.Unsent {
		t.Errorf("the stages sum up to %d, %d, %d and %d; the window has %+v, of %+v", sum.Sent, sum.Confirmed, sum.Received, sum.Offered, w, c)
	}
}
