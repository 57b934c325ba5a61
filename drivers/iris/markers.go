package iris

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	tokenSize  = 16
	markerSize = tokenSize + 8
	groups     = 5 // over which a node distributes a destination's messages

	markerWait = 50 * time.Millisecond // for markers to arrive, before they are sent again
	readyLimit = 30 * time.Second      // until a subscription takes effect
	idlePause  = 5 * time.Millisecond
)

func (c *conn) marker() (number uint64, payload []byte) {
	number = rand.Uint64() >> 1
	return number, c.markerOf(number)
}

func (c *conn) markerOf(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(c.token), number)
}

// number returns a marker's number; ok is false for other payloads.
func (c *conn) number(payload []byte) (number uint64, ok bool) {
	if len(payload) != markerSize || string(payload[:tokenSize]) != c.token {
		return 0, false
	}
	return binary.BigEndian.Uint64(payload[tokenSize:]), true
}

// markers holds the markers that a connection waits for. The zero value waits for none.
type markers struct {
	mu   sync.Mutex
	open map[uint64]*expected
}

type expected struct {
	left int
	came chan struct{}
}

// expect returns a channel that is closed when n markers with a number have arrived. forget cancels
// that.
func (k *markers) expect(number uint64, n int) (came <-chan struct{}, forget func()) {
	x := &expected{n, make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = map[uint64]*expected{}
	}
	k.open[number] = x
	return x.came, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.open, number)
	}
}

// add records a marker.
func (k *markers) add(number uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x := k.open[number]; x != nil {
		if x.left--; x.left == 0 {
			close(x.came)
		}
	}
}

// burst sends a marker through each group of a destination.
func (c *conn) burst(s *session, target string, marker []byte) error {
	for range groups {
		if err := s.message(c.op(), target, marker); err != nil {
			return err
		}
	}
	return nil
}

// op returns the first byte of a message to a destination.
func (c *conn) op() byte {
	if c.cfg.Pattern == patternBroadcast {
		return opBroadcast
	}
	return opPublish
}

// reach waits until messages for a feed's destination reach the feed from every node. It fails
// after readyLimit, or when ctx ends.
func (c *conn) reach(ctx context.Context, f *feed) error {
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for i, l := range c.links {
		try := func() (bool, error) { return c.marked(limited, l, f) }
		if c.cfg.toOne() {
			try = func() (bool, error) { return c.answered(limited, l, f) }
		}
		for {
			ok, err := try()
			if limited.Err() != nil {
				err = fmt.Errorf("%w: what the relay %s takes does not arrive within %v", driver.ErrTimeout, c.cfg.at(i), readyLimit)
			}
			if err != nil {
				return err
			}
			if ok {
				break
			}
		}
	}
	return nil
}

// marked reports whether markers sent through one relay reach a feed in time.
func (c *conn) marked(ctx context.Context, l *link, f *feed) (bool, error) {
	number, marker := c.marker()
	came, forget := f.markers.expect(number, groups)
	defer forget()
	if err := l.Ask(ctx, func(s *session) error { return c.burst(s, f.target, marker) }); err != nil {
		return false, err
	}
	t := time.NewTimer(markerWait)
	defer t.Stop()
	select {
	case <-came:
		return true, nil
	case <-t.C:
	case <-ctx.Done():
	}
	return false, nil
}

// answered reports whether a member of a feed's cluster answers one relay in each group.
func (c *conn) answered(ctx context.Context, l *link, f *feed) (all bool, err error) {
	_, marker := c.marker()
	err = l.Ask(ctx, func(s *session) error {
		all = true
		for range groups {
			if _, err := s.ask(f.target, marker, markerWait); errors.Is(err, errNoReply) {
				all = false
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	return all && err == nil, err
}

// Backlog implements driver.Backlogger. Iris stores nothing. With pattern request, completed
// messages are in the consumer's process, which counts them; the relay is asked for the rest. With
// pattern tunnel, a marker sent after all messages of a tunnel comes back when they have arrived.
// With the other patterns, every producer sends markers after all messages. Once these have arrived
// and nothing else arrives for a moment, nothing is in transit.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (sum uint64, err error) {
	for _, d := range destinations {
		n, err := c.backlog(ctx, subscription, d)
		if err != nil {
			return 0, fmt.Errorf("destination %s: %w", d, failure.Map{}.Unreachable(err))
		}
		sum += n
	}
	return sum, nil
}

func (c *conn) backlog(ctx context.Context, subscription, destination string) (left uint64, err error) {
	target, err := c.place(destination)
	if err != nil {
		return 0, err
	}
	var feeds []*feed
	for _, x := range known.Having(&c.consumers, subscription) {
		for _, f := range x.feeds {
			if f.target == target {
				feeds = append(feeds, f)
			}
		}
	}
	producers := known.Having(&c.producers, "")
	if c.cfg.toOne() {
		for _, p := range producers {
			if err := p.behind(ctx, target, nil); err != nil {
				return 0, err
			}
		}
		for _, f := range feeds {
			left += uint64(f.owed.Load())
		}
		return left, c.links[0].Ask(ctx, c.asks)
	}
	number, marker := c.marker()
	came := make([]<-chan struct{}, len(feeds))
	for i, f := range feeds {
		var forget func()
		came[i], forget = f.markers.expect(number, groups*(len(producers)+1))
		defer forget()
	}
	for _, p := range append(producers, linked{c, c.links[0]}) {
		if err := p.behind(ctx, target, marker); err != nil {
			return 0, err
		}
	}
	for i, f := range feeds {
		select {
		case <-came[i]:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if before := f.count.Load(); !retry.Pause(ctx, idlePause) || f.busy.Load() || f.count.Load() != before {
			left++
		}
	}
	return left, nil
}

// An asked is a producer's connection. behind sends markers after everything sent to a target, and
// makes a round trip.
type asked interface {
	behind(ctx context.Context, target string, marker []byte) error
}

// linked is an asked with a maintained connection.
type linked struct {
	c *conn
	l *link
}

func (x linked) behind(ctx context.Context, target string, marker []byte) error {
	return x.l.Ask(ctx, func(s *session) error {
		if err := x.c.burst(s, target, marker); err != nil {
			return err
		}
		return x.c.asks(s)
	})
}
