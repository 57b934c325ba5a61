package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/result"
)

// Limits of a fleet.
const (
	mostAgents = 512
	fleetWait  = 2 * time.Minute
)

var errFleetFIFO = errors.New("--fifo: set it on each agent, because its host decides that (weir agent --fifo)")

// options parses the flags, and refuses contradictions.
func (p *gathering) options(e *env) (o fleet.Options, wait time.Duration, err error) {
	o = fleet.Options{Log: e.log, Note: func(format string, args ...any) { e.say("weir: "+format, args...) }}
	o.Brought = p.file != nil
	wait = fleetWait
	if o.Version, err = buildinfo.Identity(); err != nil {
		return o, 0, err
	}
	if p.Wait != nil {
		if wait, err = quantity.Duration(*p.Wait); err != nil || wait <= 0 || wait > 24*time.Hour {
			return o, 0, fmt.Errorf("--fleet-wait: %q is not a duration above 0 (such as 2m, at most 24h)", *p.Wait)
		}
	}
	if *p.Fleet < 1 || *p.Fleet > mostAgents {
		return o, 0, fmt.Errorf("--fleet: %d agents (1 to %d)", *p.Fleet, mostAgents)
	}
	if p.Spare < 0 || *p.Fleet+p.Spare > mostAgents {
		return o, 0, fmt.Errorf("--spare: %d agents besides %d (at most %d in all)", p.Spare, *p.Fleet, mostAgents)
	}
	if o.Dir, err = admission.StateDir(e.Env); err != nil {
		return o, 0, err
	}
	if p.NATS != nil {
		if p.Listen != nil {
			return o, 0, errors.New("--listen and --nats are two meeting places (use one of them)")
		}
		if o.Server, err = admission.Parse(*p.NATS); err != nil {
			return o, 0, fmt.Errorf("--nats: %w", err)
		}
		if o.Server.Scheme == admission.SchemeWeir {
			return o, 0, errors.New("--nats: weir:// is where agents join a weir (nats:// or tls:// of a NATS server)")
		}
		return o, wait, nil
	}
	o.Listen, o.Keep, err = hubOf(e, p.Listen)
	return o, wait, err
}

// fleetOf returns the fleet of the flags; nil: none.
func (c *runCommand) fleetOf(e *env) (*series.Fleet, error) {
	if c.Fleet == nil {
		return nil, nil
	}
	o, wait, err := c.options(e)
	if err != nil {
		return nil, err
	}
	return &series.Fleet{Options: o, Agents: *c.Fleet, Spares: c.Spare, Wait: wait, StartOn: c.executors().StartOn}, nil
}

// met returns the flags that repeat a run on agents; nil without agents, or if the flags contain a secret.
func (p *parties) met(r *result.Result) *view.Fleet {
	if len(r.Agents) == 0 || p.Resume != nil {
		return nil
	}
	if p.Fleet == nil {
		return new(view.Fleet) // two processes of a placement
	}
	if p.Hosts != nil {
		return &view.Fleet{Again: "--hosts " + view.Quoted(*p.Hosts), Look: "weir fleet up " + view.Quoted(*p.Hosts)}
	}
	var meet, again []string
	for _, f := range []struct {
		name  string
		value *string
	}{{"--listen", p.Listen}, {"--nats", p.NATS}} {
		if f.value != nil {
			meet = append(meet, f.name, view.Quoted(*f.value))
		}
	}
	if p.NATS != nil {
		if a, err := admission.Parse(*p.NATS); err != nil || a.String() != a.Reveal() {
			return nil
		}
	}
	again = append([]string{"--fleet", strconv.Itoa(*p.Fleet)}, meet...)
	if p.On != nil {
		again = append(again, "--start-on", *p.On)
	}
	return &view.Fleet{Again: strings.Join(again, " "), Look: strings.TrimSpace("weir fleet doctor " + strings.Join(meet, " "))}
}

// checkFleet refuses what the flags and scenarios ask for but a fleet cannot do.
func (c *runCommand) checkFleet(e *env, scenarios []*scenario.Scenario) error {
	p := &c.parties
	if p.On != nil {
		if err := placement.CheckName(*p.On); err != nil {
			return fmt.Errorf("--start-on: %w", err)
		}
	}
	if p.Fleet != nil {
		if _, _, err := p.options(e); err != nil {
			return err
		}
	}
	if p.Fleet != nil && c.FIFO {
		return errFleetFIFO
	}
	if given := p.given(); p.Fleet == nil && len(given) > 0 {
		return fmt.Errorf("%s: needs a run by a fleet (--fleet N)", strings.Join(given, ", "))
	}
	return p.executors().Check(scenarios)
}

// executors describes the processes that execute runs.
func (p *gathering) executors() series.Executors {
	d := series.Executors{Agents: p.Fleet != nil}
	if d.Agents {
		d.Count = *p.Fleet
	}
	if p.On != nil {
		d.StartOn = *p.On
	}
	return d
}

// codeOfFleet is the exit code of a fleet that could not begin.
func codeOfFleet(err error) Code {
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, fleet.ErrTooFew):
		return Unreachable
	case errors.Is(err, hub.ErrInsecure), errors.Is(err, hub.ErrPortTaken), errors.Is(err, hub.ErrInUse):
		return Usage
	}
	return codeOf(err)
}
