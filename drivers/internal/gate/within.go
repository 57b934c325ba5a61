package gate

import (
	"context"
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
