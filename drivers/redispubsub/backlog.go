package redispubsub

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// Backlog implements driver.Backlogger. The server stores nothing. It has put every completed
// message into the subscribers' output buffers, so the answer to a PING on a subscriber's
// connection follows all of them; by then, Deliver has taken them.
func (c *conn) Backlog(ctx context.Context, subscription string, _ []string) (uint64, error) {
	for _, x := range known.Having(&c.consumers, subscription) {
		if err := x.pings.ask(ctx); err != nil {
			return 0, redisconn.Unreachable(err)
		}
	}
	return 0, nil
}

// pings tracks the PINGs in progress on a subscriber's connection. Its goroutine finds the answers
// among the messages.
type pings struct {
	mu      sync.Mutex
	ps      *redis.PubSub // nil: Run has not begun
	asked   uint64
	waiting map[string]chan struct{} // by expected answer; closed when it arrives
}

// begin sets the connection.
func (p *pings) begin(ps *redis.PubSub) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ps, p.waiting = ps, map[string]chan struct{}{}
}

// ask waits until the server has answered a PING and everything sent before was delivered, or
// returns ctx's error. Before Run, nothing was sent.
func (p *pings) ask(ctx context.Context) error {
	p.mu.Lock()
	ps := p.ps
	if ps == nil {
		p.mu.Unlock()
		return nil
	}
	p.asked++
	text, answered := "weir-"+strconv.FormatUint(p.asked, 10), make(chan struct{})
	p.waiting[text] = answered
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, text)
		p.mu.Unlock()
	}()
	failed := make(chan error, 1)
	go func() { // may wait for the connection, regardless of ctx
		if err := ps.Ping(ctx, text); err != nil {
			failed <- err
		}
	}()
	select {
	case <-answered:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pong records an answer.
func (p *pings) pong(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered := p.waiting[text]; answered != nil {
		delete(p.waiting, text)
		close(answered)
	}
}
