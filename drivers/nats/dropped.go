package nats

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
)

// dropped counts messages that the client dropped for a Conn's subscriptions because a slow
// consumer exceeded the option pending-bytes. The server's own drops appear only in its log: it
// disconnects a client that reads too slowly.
type dropped struct {
	mu    sync.Mutex
	open  map[*nats.Subscription]struct{}
	ended uint64 // of ended subscriptions
}

func (d *dropped) begin(sub *nats.Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[*nats.Subscription]struct{}{}
	}
	d.open[sub] = struct{}{}
}

// end ends a subscription. The client then loses its count.
func (d *dropped) end(sub *nats.Subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended += of(sub)
	delete(d.open, sub)
	_ = sub.Unsubscribe()
}

func of(sub *nats.Subscription) uint64 {
	n, _ := sub.Dropped() // -1 if the connection has ended
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
