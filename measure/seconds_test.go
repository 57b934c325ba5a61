package measure

import "testing"

// A second is returned when the next has begun, complete, and the remainder at the end is not lost.
func TestPartsOfSecondsAddUp(t *testing.T) {
	var s Seconds
	var seen, values uint64
	var ends []int64
	take := func(iv *Interval) {
		if iv == nil {
			return
		}
		seen += iv.Counters[Measure].Sent
		values += iv.Kinds[SendResponse][Measure].Total()
		ends = append(ends, iv.To)
	}
	from := int64(0)
	for _, to := range []int64{0.1e9, 0.6e9, 1.003e9, 1.5e9, 2.002e9, 3.004e9, 3.2e9} {
		iv := &Interval{From: from, To: to}
		iv.Counters[Measure].Sent = 3
		iv.Kinds[SendResponse][Measure].Add(to, 2)
		take(s.Add(iv))
		from = to
	}
	take(s.Rest())
	take(s.Rest())
	want := []int64{1.003e9, 2.002e9, 3.004e9, 3.2e9}
	if seen != 21 || values != 14 || len(ends) != len(want) {
		t.Fatalf("%d sent and %d values in intervals that end at %v; want 21, 14 and %v", seen, values, ends, want)
	}
	for i := range want {
		if ends[i] != want[i] {
			t.Errorf("intervals end at %v; want %v", ends, want)
		}
	}
}
