package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/schedule"
)

// courseOf samples two counts of a worker at an interval until an instant.
func courseOf(every, to int64, confirmed func(at int64) uint64, distinct ...func(at int64) uint64) *PauseCourse {
	c := &PauseCourse{Distinct: make([][]uint64, len(distinct))}
	for at := int64(0); at <= to; at += every {
		c.At, c.Confirmed, c.Dead = append(c.At, at), append(c.Confirmed, confirmed(at)), append(c.Dead, 0)
		for sub, d := range distinct {
			c.Distinct[sub] = append(c.Distinct[sub], d(at))
		}
	}
	return c
}

func nothing(int64) uint64 { return 0 }

// One worker confirms a message each millisecond, and two receive. They receive nothing from 2 s to
// 3 s, and then ten a millisecond. They are sampled at different instants.
func TestPauseBacklogIsSumOverWorkers(t *testing.T) {
	const ms, from, to = int64(time.Millisecond), 2000, 3000
	sent := func(at int64) uint64 { return uint64(at / ms) }
	received := func(at int64) uint64 {
		switch n := uint64(at / ms); {
		case n <= from:
			return n
		case n <= to:
			return from
		default:
			return min(n, from+10*(n-to))
		}
	}
	half := func(at int64) uint64 { return received(at) / 2 }
	rest := func(at int64) uint64 { return received(at) - received(at)/2 }
	parts := []*WorkerResult{
		{Paused: &Paused{Began: from*ms + 3, Resumed: to * ms, Newest: make([]int64, 2), Course: courseOf(2*ms, 6000*ms, sent, nothing, nothing)}},
		{Paused: &Paused{Began: from*ms + 5, Resumed: to * ms, Newest: make([]int64, 2), Course: courseOf(3*ms, 6000*ms, nothing, half, half)}},
		{Paused: &Paused{Began: from * ms, Resumed: to * ms, Newest: make([]int64, 2), Course: courseOf(5*ms, 6000*ms, nothing, rest, rest)}},
	}
	for i, n := range []int{0, 7, 5} {
		for range n {
			parts[i].Paused.Old.Add(1000, 1)
			parts[i].Paused.Live.Add(10, 1)
		}
	}
	p := pausedOf(parts, nil, 2, from*ms)
	if p == nil {
		t.Fatal("the pause is not told")
	}
	expect(t, "began", p.Began, from*ms+5)
	expect(t, "resumed", p.Resumed, to*ms)
	expect(t, "step", p.Step, 5*ms)
	if p.Before > 5 {
		t.Errorf("%d waited before; want none, but for what was sent between two looks", p.Before)
	}
	if p.Waiting < 990 || p.Waiting > 1000 {
		t.Errorf("%d waited at the resume; want 1000", p.Waiting)
	}
	// The 1000 that wait decrease by 9 each millisecond.
	if took := time.Duration(p.CaughtUp - p.Resumed); took < 105*time.Millisecond || took > 120*time.Millisecond {
		t.Errorf("caught up after %v; want 111 ms", took)
	}
	if p.Left > p.Before || p.Received < 1050 || p.Received > 1200 {
		t.Errorf("%d left, %d received; want no more than %d, and ten in each of 111 ms", p.Left, p.Received, p.Before)
	}
	expect(t, "old", p.Old.Total(), 12)
	expect(t, "live", p.Live.Total(), 12)

	parts[1].Paused = nil // its process vanished
	if p := pausedOf(parts, nil, 2, from*ms); p != nil {
		t.Errorf("%+v of a run with a part that is not known", p)
	}
}

// The samples end before it catches up.
func TestPauseWithoutCatchUpIsReported(t *testing.T) {
	const ms = int64(time.Millisecond)
	sent := func(at int64) uint64 { return uint64(at / ms) }
	received := func(at int64) uint64 { return min(sent(at), 500) }
	p := pausedOf([]*WorkerResult{
		{Paused: &Paused{Began: 500 * ms, Resumed: 700 * ms, Newest: make([]int64, 1), Course: courseOf(2*ms, 1000*ms, sent, nothing)}},
		{Paused: &Paused{Began: 500 * ms, Resumed: 700 * ms, Newest: make([]int64, 1), Course: courseOf(2*ms, 990*ms, nothing, received)}},
	}, nil, 1, 500*ms)
	if p.CaughtUp != 0 || p.Until != 990*ms || p.Waiting != 200 || p.Left != 490 || p.Received != 0 {
		t.Errorf("%+v", p)
	}
}

func TestPauseNeverBeginsAfterItsEnd(t *testing.T) {
	const ms = int64(time.Millisecond)
	sent := func(at int64) uint64 { return uint64(at / ms) }
	p := pausedOf([]*WorkerResult{
		{Paused: &Paused{Began: 500 * ms, Resumed: 700 * ms, Newest: make([]int64, 1), Course: courseOf(2*ms, 1000*ms, sent, nothing)}},
		{Paused: &Paused{Began: 900 * ms, Resumed: 700 * ms, Newest: make([]int64, 1), Course: courseOf(2*ms, 1000*ms, nothing, sent)}},
	}, nil, 1, 500*ms)
	if p.Began != 700*ms || p.Resumed != 700*ms {
		t.Errorf("paused from %d to %d", p.Began, p.Resumed)
	}
}

// Steps double.
func TestPauseCourseSpansLongRun(t *testing.T) {
	r := &run{receivers: make([][]*receiver, 2), ledger: ledger.New(ledger.Config{Streams: 1, Consumers: []int{1, 1}}), shape: &shape{assigned: assigned{Worker: Worker{Producers: schedule.Part{Count: 2}}}}}
	c := newPauseCourse(r)
	for at := int64(0); at < int64(time.Hour); at += lookEvery {
		c.note(at, r)
	}
	if n := len(c.At); n*4 > mostLooks || n < mostLooks/16 {
		t.Errorf("%d looks are kept", n)
	}
	if !c.sound(2) || c.At[0] != 0 || c.At[len(c.At)-1] < int64(59*time.Minute) {
		t.Errorf("looks from %d to %d", c.At[0], c.At[len(c.At)-1])
	}
}

func TestUnsoundPauseCourseIsRejected(t *testing.T) {
	good := func() *PauseCourse { return courseOf(1, 3, nothing, nothing) }
	short, other, back := good(), good(), good()
	short.Confirmed = short.Confirmed[1:]
	other.Distinct[0] = other.Distinct[0][1:]
	back.At[1] = 9
	for name, c := range map[string]*PauseCourse{"none": nil, "empty": {}, "confirmed": short, "distinct": other, "backwards": back} {
		if c.sound(1) {
			t.Errorf("%s passes", name)
		}
	}
	if !good().sound(1) || good().sound(2) {
		t.Error("a good one does not pass, or does with other subscriptions")
	}
}
