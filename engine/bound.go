package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errHung: a call of the driver's did not return when its context ended.
var errHung = errors.New("the driver did not return")

// bounded makes a call of the driver's, and waits for it until hurryLimit after ctx
// has ended, whether the driver heeds that or not. A call that has not returned
// by then is left behind; undo, which may be nil, gets what it yields after all.
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

// closeLate closes what a call left behind has yielded after all.
func closeLate[T interface{ Close(context.Context) error }](v T) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = v.Close(ctx) // the run is over, and has told of it
}
