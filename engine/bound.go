package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errHung: a call into the driver did not return when its context ended.
var errHung = errors.New("the driver did not return")

// bounded calls into the driver and waits at most until hurryLimit after ctx has ended, even if the
// driver ignores ctx. A call that has not returned by then is abandoned; undo, which may be nil,
// receives its result if it still yields one.
func bounded[T any](ctx context.Context, call func(context.Context) (T, error), undo func(T)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done, left := make(chan outcome), make(chan struct{})
	go func() {
		v, err := call(ctx)
		select {
		case done <- outcome{v, err}:
		case <-left:
			if err == nil && undo != nil {
				undo(v)
			}
		}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(hurryLimit)
	defer grace.Stop()
	select {
	case o := <-done:
		return o.v, o.err
	case <-grace.C:
	}
	close(left)
	var none T
	return none, fmt.Errorf("%w: %w", errHung, context.Cause(ctx))
}

// closeLate closes the late result of an abandoned call.
func closeLate[T interface{ Close(context.Context) error }](v T) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = v.Close(ctx) // the run is over and has been reported
}
