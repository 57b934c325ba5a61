package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
)

// May asks agents that joined whether they have the driver, whether what a scenario refers to is
// within their reach, and whether they may and can do the faults that are theirs, by their verbs. A
// driver that one lacks is driver.ErrUnsupported, what one does not allow protocol.ErrNotAllowed. An agent checks each job by itself too: this is
// for knowing it before anything is touched.
func (f *Fleet) May(ctx context.Context, agents []string, query func(agent string) protocol.Query) error {
	errs := make([]error, len(agents))
	var all sync.WaitGroup
	for i, name := range agents {
		q := query(name)
		b := protocol.Encode(&q)
		all.Go(func() {
			limit := protocol.AskLimit
			if len(q.Faults) > 0 { // it tries them
				limit += protocol.TryLimit
			}
			if err := f.ask(ctx, name, b, limit); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ask puts a query to an agent, more than once where it does not answer within the limit.
func (f *Fleet) ask(ctx context.Context, agent string, b []byte, limit time.Duration) error {
	f.mu.Lock()
	p := f.peers[agent]
	f.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%w: it has not joined", coordinator.ErrAgent)
	}
	sealed, err := admission.Seal(b, p.Key)
	if err != nil {
		return err
	}
	for range 3 {
		asking, over := context.WithTimeout(ctx, limit)
		m, failed := f.nc.RequestWithContext(asking, protocol.OrderSubject(p.Instance, "may"), sealed)
		over()
		if err = failed; err != nil {
			continue
		}
		var a protocol.Answer
		if err := protocol.Decode(m.Data, protocol.SmallSize, &a); err != nil {
			return err
		}
		return protocol.ErrorOf(protocol.Shown(a.Error), a.Kind)
	}
	return fmt.Errorf("%w: it does not answer what it allows: %w", coordinator.ErrAgent, err)
}
