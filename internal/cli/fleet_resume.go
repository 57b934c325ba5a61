package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
)

// resume resumes a run whose coordinator is gone.
func (c *runCommand) resume(ctx context.Context, e *env) Code {
	p, s, err := c.paused(e)
	if err != nil {
		return e.because(Usage, err) // name the run before its scenario's faults
	}
	f, err := c.takeUp(e, p)
	if err != nil {
		return ungathered(e, err)
	}
	return c.execute(ctx, e, f, []*scenario.Scenario{s})
}

// paused reads the stored state of the run, and its scenario.
func (c *runCommand) paused(e *env) (*fleet.Paused, *scenario.Scenario, error) {
	if err := c.environment(e); err != nil {
		return nil, nil, err
	}
	if c.File != "" || c.Append != nil || c.UntilShown != nil || c.Fleet != nil || c.Listen != nil || c.On != nil || c.FIFO || len(c.keys.Overrides()) > 0 || len(c.Option) > 0 || len(c.Address) > 0 {
		return nil, nil, errors.New("--resume: continues the run as it began (allowed beside it: --nats, --json, --quiet, --no-color, --strict, --require)")
	}
	dir, err := admission.StateDir(e.Env)
	if err != nil {
		return nil, nil, err
	}
	p, err := fleet.ReadPaused(dir, *c.Resume)
	if err != nil {
		return nil, nil, fmt.Errorf("--resume: there is no folder of that name, and %w", err)
	}
	one, err := p.Resolve(e.registry, e.Env)
	if err != nil {
		return nil, nil, fmt.Errorf("--resume: %w", err)
	}
	if c.Out == nil {
		if err := p.Reclaim(); err != nil {
			return nil, nil, fmt.Errorf("--resume: %w", err)
		}
		c.Out = &p.Folder
	}
	return p, one, nil
}

// takeUp returns the fleet of the resumed run.
func (c *runCommand) takeUp(e *env, p *fleet.Paused) (*series.Fleet, error) {
	o := fleet.Options{Log: e.log, Note: func(format string, args ...any) { e.say("weir: "+format, args...) }}
	var err error
	if o.Version, err = buildinfo.Identity(); err != nil {
		return nil, err
	}
	if o.Dir, err = admission.StateDir(e.Env); err != nil {
		return nil, err
	}
	keep, err := admission.Dir(e.Env)
	if err != nil {
		return nil, err
	}
	var server admission.Address
	if c.NATS != nil {
		if server, err = admission.Parse(*c.NATS); err != nil {
			return nil, fmt.Errorf("--nats: %w", err)
		}
	}
	if o, err = p.ResumeOptions(o, keep, server); err != nil {
		return nil, err
	}
	return &series.Fleet{Options: o, Paused: p}, nil
}
