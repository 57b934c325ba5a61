package gate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
)

func TestWithinHonorsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		var cleaned atomic.Bool
		clean := func() { cleaned.Store(true) }
		if !Within(ctx, func() { time.Sleep(time.Second / 2) }, clean) || time.Since(start) != time.Second/2 {
			t.Errorf("a call of half a second ended after %v", time.Since(start))
		}
		synctest.Wait()
		if cleaned.Load() {
			t.Error("what came in time was cleaned up")
		}
		if Within(ctx, func() { time.Sleep(time.Minute) }, clean) || time.Since(start) != time.Second {
			t.Errorf("a call of a minute ended after %v", time.Since(start))
		}
		if cleaned.Load() {
			t.Error("cleaned up before the call has returned")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !cleaned.Load() {
			t.Error("what came late was not cleaned up")
		}
		if Within(ctx, func() { time.Sleep(time.Minute) }, nil) {
			t.Error("a call under a context that is over")
		}
		time.Sleep(time.Minute)
	})
}

func TestEndAbandonsALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := End(t.Context(), 2*time.Second, func() { time.Sleep(time.Second) }); err != nil {
			t.Errorf("a call of a second, of two: %v", err)
		}
		start := time.Now()
		if err := End(t.Context(), time.Second, func() { time.Sleep(time.Minute) }); !errors.Is(err, driver.ErrAbandoned) || time.Since(start) != time.Second {
			t.Errorf("a call of a minute ended after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Minute)
	})
}
