package cli

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
)

func TestSecondSignalAbandonsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, notices, let := make(chan os.Signal, 2), 0, make(chan struct{})
		from <- os.Interrupt
		obeys := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		if signalled, err := through(t.Context(), from, obeys, func(os.Signal) { notices++ }); !signalled || !errors.Is(err, context.Canceled) || notices != 1 {
			t.Errorf("%v, %v, told %d times", signalled, err, notices)
		}
		from <- os.Interrupt
		from <- os.Interrupt
		stays := func(context.Context) error { <-let; return nil }
		if signalled, err := through(t.Context(), from, stays, func(os.Signal) { notices++ }); !signalled || err != nil || notices != 2 {
			t.Errorf("%v, %v, told %d times", signalled, err, notices)
		}
		close(let)
		if signalled, err := through(t.Context(), nil, stays, nil); signalled || err != nil {
			t.Errorf("%v, %v", signalled, err)
		}
	})
}
