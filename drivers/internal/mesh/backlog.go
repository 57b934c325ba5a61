package mesh

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A marker is a message of package mesh, sent after a PUB socket's earlier messages. It consists of
// a token that no message of a run begins with, and a number.
const markerSize = 16 + 8

// A marking holds the markers of one Conn.
type marking struct {
	token [16]byte
	last  atomic.Uint64
}

func newMarking() *marking {
	m := &marking{}
	_, _ = rand.Read(m.token[:]) // never fails
	return m
}

func (m *marking) next() (number uint64, payload []byte) {
	number = m.last.Add(1)
	return number, binary.BigEndian.AppendUint64(slices.Clone(m.token[:]), number)
}

// number returns a marker's number; 0: the payload is not a marker.
func (m *marking) number(payload []byte) uint64 {
	if len(payload) != markerSize || !bytes.Equal(payload[:len(m.token)], m.token[:]) {
		return 0
	}
	return binary.BigEndian.Uint64(payload[len(m.token):])
}

// A markers counts the received markers with the latest number.
type markers struct {
	mu     sync.Mutex
	number uint64
	count  int
}

func (m *markers) add(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number > m.number {
		m.number, m.count = number, 0
	}
	if number == m.number {
		m.count++
	}
}

// have reports whether n markers with a number have arrived, or one with a later number.
func (m *markers) have(number uint64, n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.number > number || m.number == number && m.count >= n
}

// Backlog implements driver.Backlogger. In a pipeline, it is the number of messages sent minus
// those accepted. A PUB socket silently drops messages. With pattern pubsub, the difference
// therefore counts only until markers, sent after all messages, have arrived: then the rest is
// lost.
func (c *Conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (uint64, error) { return c.backlog(ctx, subscription, d) })
}

func (c *Conn) backlog(ctx context.Context, subscription, destination string) (uint64, error) {
	c.mu.Lock()
	p := c.places[destination]
	if p == nil {
		c.mu.Unlock()
		return 0, fmt.Errorf("it was not declared: %w", driver.ErrUnsupported)
	}
	left := c.left(p, subscription)
	senders, receivers := slices.Clone(p.nodes[sends]), slices.Clone(p.nodes[receives])
	c.mu.Unlock()
	if left > 0 && !c.options.pipeline() && idle(ctx, receivers) && c.arrives(ctx, senders, receivers, subscription) {
		return 0, nil
	}
	return left, nil
}

// left returns the number of messages sent but not accepted. c.mu is held.
func (c *Conn) left(p *place, subscription string) uint64 {
	sent := p.count(sends)
	if c.options.pipeline() {
		return sent - min(sent, p.count(receives))
	}
	for _, n := range p.nodes[receives] {
		if n.subscription == subscription {
			return sent - min(sent, n.before+n.count.Load())
		}
	}
	return 0
}

const idlePause = 5 * time.Millisecond

// idle reports whether all receivers have waited for a moment without getting a message. Their
// queues are then empty. In a full queue, a marker could displace a message.
func idle(ctx context.Context, receivers []*node) bool {
	counts := make([]uint64, len(receivers))
	for i, n := range receivers {
		counts[i] = n.count.Load()
	}
	if !retry.Pause(ctx, idlePause) {
		return false
	}
	for i, n := range receivers {
		if n.busy.Load() || n.count.Load() != counts[i] {
			return false
		}
	}
	return true
}

// errOnItsWay means that not all markers have arrived.
var errOnItsWay = errors.New("a marker is on its way")

// arrives sends a marker from each sender, and reports whether all of them reach a subscription's
// receivers before ctx ends.
func (c *Conn) arrives(ctx context.Context, senders, receivers []*node, subscription string) bool {
	number, payload := c.marking.next()
	for _, n := range senders {
		if n.socket.Send(payload) != nil {
			return false
		}
	}
	return retry.While(ctx, settlePause, func(error) bool { return true }, func() error {
		for _, n := range receivers {
			if n.subscription == subscription && !n.markers.have(number, len(senders)) {
				return errOnItsWay
			}
		}
		return nil
	}) == nil
}
