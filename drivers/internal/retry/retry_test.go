package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/drivers/internal/retry"
)

func TestPauseEndsOnTimeoutOrCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !retry.Pause(t.Context(), time.Minute) || time.Since(begin) != time.Minute {
			t.Errorf("a pause of a minute took %v", time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if begin = time.Now(); retry.Pause(ctx, time.Minute) || time.Since(begin) != time.Second {
			t.Errorf("a pause that its context ends took %v", time.Since(begin))
		}
	})
}

// TestWhileStopsAtPermanentError covers all four ways to end.
func TestWhileStopsAtPermanentError(t *testing.T) {
	soon, never := errors.New("soon"), errors.New("never")
	passes := func(err error) bool { return errors.Is(err, soon) }
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			answers []error
			want    error
		}{{[]error{nil}, nil}, {[]error{soon, soon, nil}, nil}, {[]error{soon, never}, never}} {
			n := 0
			err := retry.While(t.Context(), time.Hour, passes, func() error { n++; return tc.answers[n-1] })
			if !errors.Is(err, tc.want) || n != len(tc.answers) {
				t.Errorf("%v: %v after %d attempts", tc.answers, err, n)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		n := 0
		if err := retry.While(ctx, time.Hour, passes, func() error { n++; return soon }); !errors.Is(err, soon) || n != 2 {
			t.Errorf("until its context ends: %v after %d attempts", err, n)
		}
	})
}

func TestEveryCallsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		stop := retry.Every(time.Second, func() { n++ })
		time.Sleep(3500 * time.Millisecond)
		stop()
		if n != 3 {
			t.Errorf("%d calls in 3.5 s", n)
		}
		retry.Every(0, func() { t.Error("called") })()
	})
}
