package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// Alone does the run of cfg in this process, as engine.Execute does a part of one.
func Alone(ctx context.Context, stop <-chan struct{}, cfg engine.Config) (*engine.Raw, error) {
	return Together(ctx, stop, cfg, []string{"local"}, []engine.Share{{}})
}

// Together does a run in this process by several members, as if they were agents of a
// fleet. shares say what each of them does.
func Together(ctx context.Context, stop <-chan struct{}, cfg engine.Config, names []string, shares []engine.Share) (*engine.Raw, error) {
	c, err := New(cfg, names, shares, nil)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	for i := range shares {
		all.Go(func() {
			part, err := engine.Execute(ctx, stop, c.part(i), &near{c, i})
			c.End(i, part, err)
		})
	}
	all.Wait()
	return c.Figures()
}

// part is the configuration of a member in this process.
func (c *Coordinator) part(i int) engine.Config {
	cfg := c.cfg
	cfg.Share = c.members[i].share
	cfg.OnStart = nil
	cfg.OnEvent = func(ev engine.Event) { c.Event(i, ev) }
	cfg.OnInterval = func(iv *measure.Interval) { c.Interval(i, iv) }
	cfg.OnLedger = nil
	if len(c.members) > 1 {
		cfg.OnLedger = func(at int64, p *ledger.Part) { c.books(i, at, p) }
	}
	return cfg
}

// near is the crew of a member in this process.
type near struct {
	c     *Coordinator
	index int
}

// Meet implements engine.Peers.
func (n *near) Meet(ctx context.Context, stage engine.Stage, p *engine.Progress) (engine.Agreed, error) {
	c := n.c
	c.mu.Lock()
	c.members[n.index].holds = p.Holds
	c.mu.Unlock()
	c.arrive(n.index, stage, p)
	if stage == engine.Left && c.members[n.index].share.Follows {
		return engine.Agreed{}, nil
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.released[stage]:
			return c.agreed(n.index, stage), ctx.Err()
		case <-ctx.Done():
			return engine.Agreed{}, context.Cause(ctx)
		case <-tick.C:
			if err := c.Why(); err != nil {
				return engine.Agreed{}, fmt.Errorf("%w: %w", ErrAgent, err)
			}
		}
	}
}

// Orders implements engine.Peers.
func (n *near) Orders(s *engine.Status) engine.Orders {
	n.c.stand(n.index, s)
	return n.c.look(s.At)
}
