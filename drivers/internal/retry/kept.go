package retry

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
)

// A Kept is a Connection maintained by its own goroutine.
type Kept[T any] struct {
	now  atomic.Pointer[T]
	life context.Context
	stop context.CancelFunc
	over sync.WaitGroup
}

// Start holds first, and then each replacement, until End. It reports each new one to run under
// name, unless Made is set, and the end of the attempts, unless GivenUp is set.
func (k Connection[T]) Start(first *T, run driver.Run, name string) *Kept[T] {
	x := &Kept[T]{}
	x.life, x.stop = context.WithCancel(context.Background())
	x.now.Store(first)
	made := k.Made
	k.Made = func(lost, now *T, why error) {
		x.now.Store(now)
		if made != nil {
			made(lost, now, why)
			return
		}
		run.Tell(driver.Reconnect, name+": "+why.Error())
	}
	x.over.Go(func() {
		err := k.Keep(x.life, first)
		switch {
		case err == nil:
		case k.GivenUp != nil:
			k.GivenUp(x.Now(), err)
		default:
			run.Tell("lost", name+": "+err.Error())
		}
	})
	return x
}

// Now returns the latest connection, which may be lost.
func (x *Kept[T]) Now() *T { return x.now.Load() }

// Life returns a context that ends with End.
func (x *Kept[T]) Life() context.Context { return x.life }

// End stops the attempts, and waits until Hold has returned. The caller must close the latest
// connection.
func (x *Kept[T]) End() {
	x.stop()
	x.over.Wait()
}
