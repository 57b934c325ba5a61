// Package gate interrupts calls into client libraries that wait for the network and ignore
// contexts.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stuckAfter is how long a call must stay inside the client after its context has ended before it
// counts as waiting for the network. Other calls take microseconds.
const stuckAfter = 100 * time.Millisecond

// A Gate interrupts calls into the client that still wait for the network when their context ends.
// Closing the socket ends such a call. Enter and Leave may be used by one goroutine at a time and
// cost a few nanoseconds; a goroutine is started only when a context ends.
type Gate struct {
	kill func()
	seq  atomic.Uint64 // odd: a call is in progress

	mu   sync.Mutex
	done <-chan struct{} // Done of the watched context; written by the calling goroutine under mu
	stop func() bool
}

// New returns a Gate that interrupts calls with kill, which closes the socket.
func New(kill func()) *Gate { return &Gate{kill: kill} }

// Enter marks the start of a call bounded by ctx.
func (g *Gate) Enter(ctx context.Context) {
	if done := ctx.Done(); done != nil && done != g.done {
		g.watch(ctx)
	}
	g.seq.Add(1)
}

func (g *Gate) Leave() { g.seq.Add(1) }

// watch switches to ctx. Usually all calls share one context.
func (g *Gate) watch(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil {
		g.stop()
	}
	done := ctx.Done()
	g.done = done
	g.stop = context.AfterFunc(ctx, func() {
		at := g.seq.Load()
		if at%2 == 0 {
			return
		}
		time.Sleep(stuckAfter)
		g.mu.Lock()
		// The call in progress may already belong to another context.
		stuck := g.seq.Load() == at && g.done == done
		g.mu.Unlock()
		if stuck {
			g.kill()
		}
	})
}

// Close stops watching the context.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil {
		g.stop()
	}
}
