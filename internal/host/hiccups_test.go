package host

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// The probe keeps its schedule under load: it skips no instant and records none early. The only
// certain stall is the one that the test causes.
func TestStallMeterRecordsEveryScheduledInstant(t *testing.T) {
	type sample struct{ at, overshoot int64 }
	c := pace.NewClock()
	var samples []sample
	enough := make(chan struct{})
	before := c.Now()
	from := before + 7_654_321 // instants lie a multiple of a period before and after it
	stop := StartHiccups(c, from, time.Millisecond, func(at, overshoot int64) {
		samples = append(samples, sample{at, overshoot})
		switch len(samples) {
		case 5:
			time.Sleep(20 * time.Millisecond)
		case 40:
			close(enough)
		}
	})
	<-enough
	stop()
	after := c.Now()

	longest := int64(0)
	for i, s := range samples {
		if s.overshoot < 0 {
			t.Errorf("sample %d: woke %d ns before its instant", i, -s.overshoot)
		}
		due := s.at - s.overshoot
		if i == 0 {
			if due < before+int64(time.Millisecond) || (due-from)%int64(time.Millisecond) != 0 {
				t.Errorf("first instant %d; want a period after the start %d at least, and whole periods from %d", due, before, from)
			}
		} else if prev := samples[i-1].at - samples[i-1].overshoot; due != prev+int64(time.Millisecond) {
			t.Errorf("sample %d: instant %d does not follow %d by a period", i, due, prev)
		}
		if s.at > after {
			t.Errorf("sample %d: woke at %d, after the end %d", i, s.at, after)
		}
		longest = max(longest, s.overshoot)
	}
	if longest < int64(18*time.Millisecond) {
		t.Errorf("longest overshoot %v, want the stall of 20ms less a period", time.Duration(longest))
	}
}

func TestStallMeterEndsBeforeStopReturns(t *testing.T) {
	var records atomic.Int64
	first := make(chan struct{})
	stop := StartHiccups(pace.NewClock(), 0, 0, func(int64, int64) { // 0: the shortest
		if records.Add(1) == 1 {
			close(first)
		}
	})
	<-first
	stop()
	n := records.Load()
	time.Sleep(2 * time.Millisecond)
	stop() // once more
	if got := records.Load(); got != n {
		t.Errorf("%d records after stop returned", got-n)
	}
}

func TestStallMeterStoppedBeforeFirstInstant(t *testing.T) {
	stop := StartHiccups(pace.NewClock(), 0, 2*time.Second, func(int64, int64) {
		t.Error("recorded an instant, though it was stopped before")
	})
	stop()
}
