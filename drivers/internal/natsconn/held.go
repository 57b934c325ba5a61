package natsconn

import "sync"

// A Held knows the subscriptions of a consumer's Run, and what their client holds.
// The zero value has none.
type Held struct {
	mu   sync.Mutex
	subs []pending
}

// pending is what the subscriptions of both clients have in common.
type pending interface {
	Pending() (messages, bytes int, err error)
}

// Add notes a subscription.
func (h *Held) Add(sub pending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = append(h.subs, sub)
}

// Clear forgets all subscriptions.
func (h *Held) Clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = nil
}

// Messages returns how many messages the client has received and Deliver has not
// taken.
func (h *Held) Messages() (n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, sub := range h.subs {
		if waiting, _, err := sub.Pending(); err == nil { // one that has ended holds nothing
			n += uint64(max(0, waiting))
		}
	}
	return n
}
