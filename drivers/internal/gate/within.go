package gate

import (
	"context"
	"time"

	"github.com/weirmq/weir/driver"
)

// Within calls f, which ignores contexts, and reports whether it returned before ctx ended.
// Otherwise f keeps running in the background, nobody may read what it writes, and late, if not
// nil, is called after it. Use it for a client that opens or closes a connection.
func Within(ctx context.Context, f, late func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	if late != nil {
		go func() {
			<-ended
			late()
		}()
	}
	return false
}

// End waits, within ctx and limit, for f, which closes a client and ignores contexts. After that, f
// keeps running in the background, and the error is driver.ErrAbandoned.
func End(ctx context.Context, limit time.Duration, f func()) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !Within(ctx, f, nil) {
		return driver.ErrAbandoned
	}
	return nil
}
