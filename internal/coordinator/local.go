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

// Alone executes the run of cfg in this process, with one worker.
func Alone(ctx context.Context, stop <-chan struct{}, cfg engine.Config) (*engine.Raw, error) {
	return Together(ctx, stop, cfg, []string{"local"}, []engine.Worker{{}})
}

// Together executes a run in this process with several workers, as if they were agents of a fleet.
// shares is what each of them carries.
func Together(ctx context.Context, stop <-chan struct{}, cfg engine.Config, names []string, shares []engine.Worker) (*engine.Raw, error) {
	c, err := New(cfg, names, shares, nil)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	for i := range shares {
		all.Go(func() {
			result, err := engine.Execute(ctx, stop, c.config(i), c.Local(i))
			c.End(i, result, err)
		})
	}
	all.Wait()
	return c.Figures()
}

// config returns the configuration of a local worker.
func (c *Coordinator) config(i int) engine.Config {
	cfg := c.cfg
	cfg.Worker = c.workers[i].share
	cfg.OnStart, cfg.OnLedger = nil, nil
	cfg.OnEvent = func(ev engine.Event) { c.Event(i, ev) }
	cfg.OnInterval = func(iv *measure.Interval) { c.Interval(i, iv) }
	if len(c.workers) > 1 {
		cfg.OnLedger = func(at int64, p *ledger.Part) { c.Ledger(i, at, p) }
	}
	return cfg
}

// Local returns the coordinator for a worker in this process.
func (c *Coordinator) Local(i int) engine.Peers { return &local{c, i} }

type local struct {
	c     *Coordinator
	index int
}

// Meet implements engine.Peers.
func (l *local) Meet(ctx context.Context, stage engine.Stage, p *engine.Progress) (engine.Agreed, error) {
	c, w := l.c, l.c.workers[l.index]
	c.mu.Lock()
	w.holds = p.Holds
	c.mu.Unlock()
	if stage == engine.Opened {
		facts := p.Facts()
		c.Reached(l.index, int(stage)+1, &facts)
	} else {
		c.Reached(l.index, int(stage)+1, nil)
	}
	if stage == engine.Left && w.share.Follows {
		return engine.Agreed{}, nil
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.released[stage]:
			return c.agreed(l.index, stage), ctx.Err()
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
func (l *local) Orders(s *engine.Status) engine.Orders {
	l.c.Status(l.index, s)
	return l.c.look(s.At)
}

// Outcome returns the result of the drain so far.
func (c *Coordinator) Outcome() engine.Outcome { return c.drain.outcome }
