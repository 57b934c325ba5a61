// Package gate ends calls into client libraries that wait for the network and
// heed no context.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stuckAfter is how long a call must have been inside the client, its context
// over, before it counts as waiting for the network. Others take microseconds.
const stuckAfter = 100 * time.Millisecond

// A Gate ends calls into the client that wait for the network when their context
// ends. A client that writes to its socket within such a call, and takes no
// context, is ended by the end of the socket. Enter and Leave are for one
// goroutine at a time and cost some nanoseconds; a goroutine is started when a
// context ends, and no sooner.
type Gate struct {
	kill func()
	seq  atomic.Uint64 // odd: a call is inside

	mu   sync.Mutex
	done <-chan struct{} // of the context watched; written by the calling goroutine under mu
	stop func() bool
}

// New returns a Gate that ends calls by kill, which ends the socket.
func New(kill func()) *Gate { return &Gate{kill: kill} }

// Enter says that a call bounded by ctx begins.
func (g *Gate) Enter(ctx context.Context) {
	if done := ctx.Done(); done != nil && done != g.done {
		g.watch(ctx)
	}
	g.seq.Add(1)
}

func (g *Gate) Leave() { g.seq.Add(1) }

// watch watches ctx from now on instead of the one before: as a rule there is
// one for all calls.
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
		// The call inside may by now be one of another context.
		stuck := g.seq.Load() == at && g.done == done
		g.mu.Unlock()
		if stuck {
			g.kill()
		}
	})
}

// Close stops watching.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil {
		g.stop()
	}
}
