package gate

import (
	"context"
)

// Within calls f, which heeds no context, and reports whether it has returned before ctx
// ended. Otherwise f goes on by itself: nothing may read what it writes, and late, where it
// is not nil, is called behind it. Use it for a client that makes or ends a connection.
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
