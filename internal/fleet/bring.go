package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/result"
)

// A System is what an agent started on its host for a run.
type System struct {
	Address []string
	Options map[string][]string // further options to connect with
	Started *result.Started
	Servers []protocol.Server // where clients reach them, if faults break connections
}

// wishEvery is how often a coordinator asks about a system's progress.
const wishEvery = 250 * time.Millisecond

// Bring has an agent start the system of a run on its host, and returns when the system answers there. It
// reports progress to doing. If it fails, or ctx ends, the agent is told to clean up. An agent that may not
// start servers gives protocol.ErrNotAllowed. End stops the system, as does the agent once this coordinator
// has been gone for long.
func (f *Fleet) Bring(ctx context.Context, agent string, run *Run, doing func(line string)) (*System, error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.BringLimit)
	defer cancel()
	w := protocol.Wish{Run: run.Config.RunID, Scenario: run.Scenario, Files: run.Files}
	if n, most := len(protocol.Encode(&w))+512+admission.Overhead, min(protocol.JobSize, int(f.nc.MaxPayload())); n > most {
		return nil, fmt.Errorf("the scenario and its files are %d bytes for an agent (at most %d)", n, most)
	}
	said := ""
	for heard := time.Now(); ; {
		h, err := f.wish(ctx, agent, w)
		switch {
		case err == nil && h.Error != "":
			err = protocol.ErrorOf(protocol.Shown(h.Error), h.Kind)
			if !errors.Is(err, protocol.ErrNotAllowed) {
				_ = f.End(context.WithoutCancel(ctx), agent, w.Run) // best effort: the agent refused, or is gone
			}
			return nil, fmt.Errorf("agent %s: %w", agent, err)
		case err == nil && h.Up:
			return &System{Address: h.Address, Options: h.Options, Started: h.Started, Servers: h.Servers}, nil
		case err == nil:
			heard = time.Now()
			if !h.Busy { // the agent has what it needs
				w.Scenario, w.Files = nil, nil
			}
			if text := protocol.Shown(h.Doing); text != "" && text != said {
				said = text
				doing(text)
			}
		}
		late := time.Since(heard) > protocol.LostLimit
		if !late {
			select {
			case <-time.After(wishEvery):
				continue
			case <-ctx.Done():
			}
		}
		why := context.Cause(ctx)
		if late {
			why = fmt.Errorf("it does not answer: %w", cmp.Or(err, coordinator.ErrAgent))
		}
		if err := f.End(context.WithoutCancel(ctx), agent, w.Run); err != nil {
			why = errors.Join(why, err)
		}
		return nil, fmt.Errorf("agent %s: %w", agent, why)
	}
}

// End has an agent stop what it started for a run, and returns when nothing is left there. After a bounded
// time it returns an error if that is not so, or unknown: the agent then stops it by itself once this
// coordinator has been gone for long.
func (f *Fleet) End(ctx context.Context, agent, run string) error {
	ctx, cancel := context.WithTimeout(ctx, protocol.DownLimit+protocol.AskLimit)
	defer cancel()
	for missed := 0; ; {
		h, err := f.wish(ctx, agent, protocol.Wish{Run: run, End: true})
		switch {
		case err == nil && h.Error != "":
			return fmt.Errorf("agent %s: %w", agent, protocol.ErrorOf(protocol.Shown(h.Error), h.Kind))
		case err == nil && h.Gone:
			return nil
		case err != nil:
			missed++
		}
		if missed == 4 || ctx.Err() != nil {
			return fmt.Errorf("agent %s has not reported the end of its servers: %w", agent, cmp.Or(err, ctx.Err()))
		}
		select {
		case <-time.After(wishEvery):
		case <-ctx.Done():
		}
	}
}

// wish sends a wish for a system to an agent that joined.
func (f *Fleet) wish(ctx context.Context, agent string, w protocol.Wish) (*protocol.Hosted, error) {
	w.Session = f.session
	var h protocol.Hosted
	if err := f.order(ctx, agent, "system", protocol.AskLimit, &w, &h); err != nil {
		return nil, err
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	f.hear(agent)
	return &h, nil
}
