package standstill

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
)

// TestAStandstillIsReportedWithItsReason has a producer whose messages are taken, wait, and are
// taken again, with a system that knows the reason only part of the time.
func TestAStandstillIsReportedWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		second := func() int { return int(time.Since(begin) / time.Second) }
		var got []string
		w := Watch{
			Run: driver.Run{Block: func(who, why string) {
				if n := len(got); n == 0 && why != "" || n > 0 && got[n-1] != who+": "+why {
					got = append(got, who+": "+why)
				}
			}},
			Who: "p",
			Look: func() (uint64, bool) {
				switch s := second(); {
				case s < 10: // takes one per second, and one waits
					return uint64(s), true
				case s < 20:
					return 10, true
				case s < 30: // none waits
					return 10, false
				}
				return 10, true
			},
			Why: func(ctx context.Context) string {
				switch s := second(); {
				case s < 10 || s >= 20 && s < 30:
					t.Errorf("asked in second %d", s)
				case s >= 40: // it does not answer
					<-ctx.Done()
				case s >= 15:
					return "no leader"
				}
				return ""
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.Keep(ctx)
		if d := cmp.Diff([]string{"p: no leader", "p: ", "p: no leader", "p: "}, got); d != "" {
			t.Error(d)
		}
	})
}

// TestOneMessageWaitsAmongOthers has messages that are taken at once, beside one that waits.
func TestOneMessageWaitsAmongOthers(t *testing.T) {
	var o Open
	var stuck *atomic.Int64
	for call := range 20 {
		switch call {
		case 5:
			stuck = o.Begin()
		case 10:
			stuck.Add(-1)
		}
		o.Begin().Add(-1)
		late := o.Begin() // open for one call
		if got, want := o.Wait(), call > 5 && call < 10; got != want {
			t.Errorf("call %d: %t, want %t", call, got, want)
		}
		late.Add(-1)
	}
	if n := len(o.older); n > 2 {
		t.Errorf("%d counters are kept", n)
	}
}
