package signals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
)

func TestTheFirstSignalStopsAndTheSecondCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := make(chan os.Signal, 2)
		ctx, h := Halt(t.Context(), from)
		var said []string
		end := h.Listen(func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		synctest.Wait()
		if h.Asked(ctx) || len(said) > 0 {
			t.Errorf("before any signal: %q", said)
		}
		from <- os.Interrupt
		synctest.Wait()
		select {
		case <-h.Stop:
		default:
			t.Error("the first signal does not stop")
		}
		if ctx.Err() != nil || !h.Asked(ctx) || len(said) != 1 {
			t.Errorf("after the first: %v, %q", ctx.Err(), said)
		}
		from <- os.Interrupt
		synctest.Wait()
		if ctx.Err() == nil || len(said) != 2 {
			t.Errorf("after the second: %v, %q", ctx.Err(), said)
		}
		end()
	})
}

func TestASignalBetweenTwoRunsIsHeard(t *testing.T) {
	from := make(chan os.Signal, 1)
	ctx, h := Halt(t.Context(), from)
	defer h.Cancel()
	h.Listen(func(string, ...any) { t.Error("nothing was asked") })()
	from <- os.Interrupt
	if !h.Asked(ctx) {
		t.Error("it was not heard")
	}
	if _, never := Halt(t.Context(), nil); never.Asked(ctx) {
		t.Error("no signal was heard")
	}
}

func TestASignalEndsTheWaitForWhatHeedsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if v, ok := Await(t.Context(), nil, func() int { return 7 }); v != 7 || !ok {
			t.Errorf("%d, %v", v, ok)
		}
		from, let := make(chan os.Signal, 1), make(chan struct{})
		from <- os.Interrupt
		if _, ok := Await(t.Context(), from, func() int { <-let; return 7 }); ok {
			t.Error("it was waited for")
		}
		close(let)
		from <- os.Interrupt
		ctx, cancel := Stoppable(t.Context(), from)
		defer cancel()
		<-ctx.Done()
	})
}

func TestTheFirstSignalLetsItEndAndTheSecondLeavesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, told, let := make(chan os.Signal, 2), 0, make(chan struct{})
		from <- os.Interrupt
		obeys := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		if signalled, err := Through(t.Context(), from, obeys, func(os.Signal) { told++ }); !signalled || !errors.Is(err, context.Canceled) || told != 1 {
			t.Errorf("%v, %v, told %d times", signalled, err, told)
		}
		from <- os.Interrupt
		from <- os.Interrupt
		stays := func(context.Context) error { <-let; return nil }
		if signalled, err := Through(t.Context(), from, stays, func(os.Signal) { told++ }); !signalled || err != nil || told != 2 {
			t.Errorf("%v, %v, told %d times", signalled, err, told)
		}
		close(let)
		if signalled, err := Through(t.Context(), nil, stays, nil); signalled || err != nil {
			t.Errorf("%v, %v", signalled, err)
		}
	})
}
