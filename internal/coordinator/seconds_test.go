package coordinator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirmq/weir/measure"
)

// someInterval draws an interval up to an instant.
func someInterval(t *rapid.T, from, to int64) *measure.Interval {
	iv := &measure.Interval{From: from, To: to}
	for range rapid.IntRange(0, 4).Draw(t, "values") {
		k := rapid.IntRange(0, int(measure.NumKinds)-1).Draw(t, "kind")
		p := rapid.IntRange(0, int(measure.NumPhases)-1).Draw(t, "phase")
		iv.Kinds[k][p].Add(rapid.Int64Range(0, 1e10).Draw(t, "value"), rapid.Uint64Range(1, 5).Draw(t, "times"))
		iv.Counters[p].Sent += rapid.Uint64Range(0, 9).Draw(t, "sent")
		iv.Window.Received += rapid.Uint64Range(0, 9).Draw(t, "received")
	}
	return iv
}

// An arrival is an interval of an agent with its time of arrival.
type arrival struct {
	agent int
	at    int64
	iv    *measure.Interval
}

// Whatever the order and delay of intervals, each is emitted exactly once; what waits is bounded by
// the agents' delay.
func TestSecondsAreNeitherLostNorDuplicated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents := rapid.IntRange(1, 4).Draw(t, "agents")
		var all []arrival
		lateness := rapid.Int64Range(0, 8).Draw(t, "lateness, s") * int64(time.Second)
		for a := range agents {
			var to, at int64
			for range rapid.IntRange(0, 12).Draw(t, "intervals") {
				from := to
				to = to - to%1e9 + 1e9 + rapid.Int64Range(0, 5e8).Draw(t, "after the second")
				if rapid.IntRange(0, 9).Draw(t, "short") == 0 {
					to = from + rapid.Int64Range(1, 5e8).Draw(t, "of")
				}
				at = max(at, to+rapid.Int64Range(0, lateness).Draw(t, "late"))
				all = append(all, arrival{a, at, someInterval(t, from, to)})
			}
		}
		// In order of arrival, keeping each agent's own order.
		for i := range all {
			for j := i; j > 0 && all[j].at < all[j-1].at; j-- {
				all[j], all[j-1] = all[j-1], all[j]
			}
		}
		var want, got measure.Snapshot
		n := 0
		s := seconds{workers: agents, emit: func(iv *measure.Interval) {
			n++
			got.Add(iv)
			if iv.From > iv.To {
				t.Fatalf("an interval from %d to %d", iv.From, iv.To)
			}
		}}
		for _, x := range all {
			want.Add(x.iv)
			s.add(x.agent, x.iv, x.at)
			*x.iv = measure.Interval{From: 7, To: 7} // it is the caller's again
			if most := int((lateness+2*int64(graceLimit))/1e9) + 2; len(s.open)+len(s.spare) > most {
				t.Fatalf("%d seconds wait and %d are spare, at most %d should", len(s.open), len(s.spare), most)
			}
			if rapid.IntRange(0, 19).Draw(t, "ends") == 0 {
				s.workers = max(1, s.workers-1)
			}
			s.late(x.at)
		}
		s.flush()
		if len(s.open) > 0 || n > len(all) {
			t.Fatalf("%d seconds still wait, and %d intervals were made of %d", len(s.open), n, len(all))
		}
		if diff := difference(&got, &want); diff != "" {
			t.Fatal(diff)
		}
	})
}

// difference describes how two snapshots differ; "" if they do not.
func difference(got, want *measure.Snapshot) string {
	for k := range want.Kinds {
		for p := range want.Kinds[k] {
			a, _ := got.Kinds[k][p].AppendBinary(nil)
			b, _ := want.Kinds[k][p].AppendBinary(nil)
			if string(a) != string(b) {
				return measure.Kind(k).String() + " has other counts"
			}
		}
	}
	if got.Counters != want.Counters || got.Window != want.Window {
		return "other counters"
	}
	return ""
}

// Seconds that all agents reported are emitted at once, one interval for each, in order, with the
// sum; a second that an agent is late with waits for it, but no longer than graceLimit.
func TestSecondWaitsForLateAgentsBriefly(t *testing.T) {
	var given []int64
	var sent []uint64
	s := seconds{workers: 2, emit: func(iv *measure.Interval) {
		given = append(given, iv.To/1e9)
		sent = append(sent, iv.Counters[measure.Measure].Sent)
	}}
	tell := func(agent int, second, now int64) {
		iv := &measure.Interval{From: (second - 1) * 1e9, To: second*1e9 + int64(agent)}
		iv.Counters[measure.Measure].Sent = uint64(100*agent + int(second))
		s.add(agent, iv, now)
	}
	expect := func(what string, seconds ...int64) {
		t.Helper()
		if len(given) != len(seconds) {
			t.Fatalf("%s: given %v, want %v", what, given, seconds)
		}
		for i := range seconds {
			if given[i] != seconds[i] {
				t.Fatalf("%s: given %v, want %v", what, given, seconds)
			}
		}
	}
	const sec = int64(time.Second)
	tell(0, 1, 1*sec)
	expect("one told of the first")
	tell(1, 1, 1*sec+1)
	expect("both did", 1)
	if sent[0] != 102 {
		t.Errorf("sent %d in the first, want 1 and 101", sent[0])
	}
	tell(0, 2, 2*sec)
	tell(0, 3, 3*sec)
	tell(0, 4, 4*sec)
	s.late(2*sec + int64(graceLimit) - 1)
	expect("the other is late", 1)
	s.late(2*sec + int64(graceLimit))
	expect("too late", 1, 2)
	tell(1, 2, 5*sec+1)
	expect("and reports it unasked", 1, 2, 2)
	tell(1, 3, 5*sec+2)
	tell(1, 4, 5*sec+3)
	expect("and of the rest in time", 1, 2, 2, 3, 4)
	tell(0, 5, 6*sec)
	s.workers = 1
	s.late(6 * sec)
	expect("the other has ended", 1, 2, 2, 3, 4, 5)
	if sent[2] != 102 || sent[1] != 2 {
		t.Errorf("sent %v", sent)
	}
}

// Fractions of a second are summed as seconds are, and one that an agent skipped does not wait once
// it has reported a later one.
func TestPartialSecondSkipsLateAgent(t *testing.T) {
	var given []int64
	s := seconds{workers: 2, every: 1e8, emit: func(iv *measure.Interval) { given = append(given, iv.To/1e8) }}
	for agent, parts := range [][]int64{{1, 2, 3}, {1, 3}} { // the second agent skipped 2
		for _, part := range parts {
			s.add(agent, &measure.Interval{From: (part - 1) * 1e8, To: part*1e8 + 1}, part*1e8)
		}
	}
	if len(given) != 3 || given[0] != 1 || given[1] != 2 || given[2] != 3 {
		t.Errorf("given %v without waiting; want 1, 2, 3", given)
	}
}
