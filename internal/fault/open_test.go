package fault

import (
	"testing"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// steps returns a course of tenths of a second with the given numbers of sent, acked and delivered
// messages.
func steps(n int, of func(i int) (sent, confirmed, in uint64)) *Course {
	c := &Course{}
	var missing uint64
	for i := range n {
		iv := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
		sent, confirmed, in := of(i)
		iv.Counters[measure.Measure] = measure.Counters{Scheduled: sent, Sent: sent, Confirmed: confirmed, Received: in}
		iv.Kinds[measure.SendResponse][measure.Measure].Add(1e6, confirmed)
		iv.Kinds[measure.E2EResponse][measure.Measure].Add(1e6, in)
		missing += confirmed - in
		iv.Backlog = measure.Backlog{{Missing: missing}}
		c.Add(iv, false)
	}
	return c
}

// TestGapBetweenMessagesIsNotOutage: one message a second before the fault at 10 s, one every three
// seconds after it, each acked within its step.
func TestGapBetweenMessagesIsNotOutage(t *testing.T) {
	for name, open := range map[string]bool{"nothing is open": false, "a closed loop stands still": true} {
		c := steps(200, func(i int) (uint64, uint64, uint64) {
			switch {
			case open && i == 100:
				return 1, 0, 0
			case open && i > 100:
				return 0, 0, 0
			case i%30 == 5 || i < 100 && i%10 == 5:
				return 1, 1, 1
			}
			return 0, 0, 0
		})
		faults := []result.Fault{{Processes: []string{"p"}, BeganNS: 10e9}}
		effects(c, faults, 20e9)
		e := faults[0].Effect
		if quiet := e.Unconfirmed != nil || e.Undelivered != nil; quiet != open {
			t.Errorf("%s: unconfirmed %v, undelivered %v", name, e.Unconfirmed, e.Undelivered)
		}
		if kept := e.BackNS != nil && *e.BackNS == 0; kept == open {
			t.Errorf("%s: back %v", name, e.BackNS)
		}
	}
}

// TestConfirmedButUndeliveredIsNotRecovered: after the fault acks are normal, but nothing is
// delivered.
func TestConfirmedButUndeliveredIsNotRecovered(t *testing.T) {
	c := steps(200, func(i int) (uint64, uint64, uint64) {
		if i >= 100 {
			return 10, 10, 0
		}
		return 10, 10, 10
	})
	faults := []result.Fault{{Processes: []string{"p"}, BeganNS: 10e9}}
	effects(c, faults, 20e9)
	if b := faults[0].Effect.BackNS; b != nil {
		t.Errorf("back after %d ns", *b)
	}
}

func effects(c *Course, faults []result.Fault, to int64) { c.Effects(faults, 0, to, to, End{}) }

// TestMissingMessagesAreNotRecovered: a message due after the fault never arrives.
func TestMissingMessagesAreNotRecovered(t *testing.T) {
	for _, k := range []measure.Kind{measure.SendResponse, measure.E2EResponse} {
		for due, want := range map[int64]int64{0: 0, 10.55e9: 6e8, 19.95e9: -1} {
			c := steps(210, func(int) (uint64, uint64, uint64) { return 10, 10, 10 })
			var censored [measure.NumKinds][measure.NumPhases]measure.Censored
			if due > 0 {
				censored[k][measure.Measure].Add(due, 1e9, 1)
			}
			faults := []result.Fault{{Processes: []string{"p"}, BeganNS: 10e9}}
			c.Effects(faults, 0, 20e9, 21e9, End{Censored: &censored})
			back := int64(-1)
			if b := faults[0].Effect.BackNS; b != nil {
				back = *b
			}
			if back != want {
				t.Errorf("%v due at %d: back after %d ns; want %d", k, due, back, want)
			}
		}
	}
}
