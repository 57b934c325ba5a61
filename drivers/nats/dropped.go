package nats

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
)

// dropped counts what the client has dropped of a Conn's subscriptions, because it waited
// for a slow consumer beyond the option pending-bytes. The server's own drops are only in
// its log: it cuts off a client that reads too slowly.
type dropped struct {
	mu    sync.Mutex
	open  map[*nats.Subscription]struct{}
	ended uint64 // of subscriptions that have ended
}

func (d *dropped) begin(sub *nats.Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[*nats.Subscription]struct{}{}
	}
	d.open[sub] = struct{}{}
}

// end ends a subscription. The client forgets its count then.
func (d *dropped) end(sub *nats.Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended += of(sub)
	delete(d.open, sub)
	_ = sub.Unsubscribe()
}

func of(sub *nats.Subscription) uint64 {
	n, _ := sub.Dropped() // of one whose connection has ended: -1
	return uint64(max(0, n))
}

func (d *dropped) total() driver.Discarded {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.ended
	for sub := range d.open {
		n += of(sub)
	}
	return driver.Discarded{Counter: "Subscription.Dropped", Messages: n, Client: true}
}
