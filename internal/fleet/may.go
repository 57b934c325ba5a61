package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/protocol"
)

// May asks agents that joined whether they have the driver, can resolve what a scenario refers to, and may
// and can execute their faults, by verb. A missing driver is driver.ErrUnsupported, a prohibition
// protocol.ErrNotAllowed. Agents check each job themselves too; May finds out before anything is touched.
func (f *Fleet) May(ctx context.Context, agents []string, query func(agent string) protocol.Query) error {
	errs := make([]error, len(agents))
	var all sync.WaitGroup
	for i, name := range agents {
		q := query(name)
		all.Go(func() {
			if err := f.may(ctx, name, &q); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// may sends a query to an agent, with retries after timeouts.
func (f *Fleet) may(ctx context.Context, agent string, q *protocol.Query) (err error) {
	limit := protocol.AskLimit
	if len(q.Faults) > 0 { // it tries them out
		limit += protocol.TryLimit
	}
	for range 3 {
		var a protocol.Answer
		err = f.order(ctx, agent, "may", limit, q, &a)
		switch {
		case err == nil:
			return protocol.ErrorOf(protocol.Shown(a.Error), a.Kind)
		case errors.Is(err, protocol.ErrMalformed), errors.Is(err, coordinator.ErrAgent):
			return err
		}
	}
	return fmt.Errorf("%w: it does not answer what it allows: %w", coordinator.ErrAgent, err)
}
