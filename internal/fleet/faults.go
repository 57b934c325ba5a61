package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/result"
)

// How often the agent with the servers is asked about its faults, and for how long after the run.
const (
	troubleSoon  = 50 * time.Millisecond // until the agent knows the epoch
	troubleEvery = 500 * time.Millisecond
	troubleLimit = 10 * time.Second
	mostAsking   = 4 // agents that may query leaders at once
)

// A trouble is the fault execution on a server agent's host.
type trouble struct {
	place  int // of its clock
	seen   int // notes seen
	faults []result.Fault
	over   bool
	why    error // why the last query failed; nil: it did not
}

// disturb has the agent with the servers execute the run's faults there until ctx ends, and collects the
// results.
func (d *drive) disturb(ctx context.Context) {
	x := d.trouble
	if x == nil {
		return
	}
	for {
		d.ask(ctx, protocol.Trouble{EpochNS: d.epochThere()})
		every := troubleEvery
		if !d.c.Begun() {
			every = troubleSoon
		}
		select {
		case <-time.After(every):
			continue
		case <-ctx.Done():
		}
		break
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), troubleLimit)
	defer cancel()
	for {
		if d.ask(ending, protocol.Trouble{EpochNS: d.epochThere(), End: true}); x.over {
			return
		}
		select {
		case <-time.After(troubleSoon):
		case <-ending.Done():
			return
		}
	}
}

// epochThere is the epoch of the run on the clock of the agent with the servers; 0 before it is fixed, or
// if that clock is unknown.
func (d *drive) epochThere() int64 {
	ns := d.c.EpochNS()
	if ns == 0 {
		return 0
	}
	return d.clocks.beside(d.trouble.place, ns)
}

// ask queries the agent, again while it has more notes.
func (d *drive) ask(ctx context.Context, o protocol.Trouble) {
	x := d.trouble
	for full := true; full && ctx.Err() == nil; {
		o.Session, o.Run, o.Seen = d.f.session, d.run.Config.RunID, x.seen
		var got protocol.Troubled
		if x.why = d.f.order(ctx, d.starter.Name, "faults", protocol.AskLimit, &o, &got); x.why == nil {
			x.why = got.Check()
		}
		if x.why == nil {
			x.why = protocol.ErrorOf(protocol.Shown(got.Error), got.Kind)
		}
		if x.why != nil {
			return
		}
		if !d.starter.Part { // else its own part reports them
			d.clocks.add(x.place, got.Exchanges)
		}
		for i := range got.Notes {
			x.seen++
			d.noted(&got.Notes[i])
		}
		x.over = got.Over
		full = len(got.Notes) == protocol.MostNotes
	}
}

// noted handles a step of a fault.
func (d *drive) noted(n *protocol.Note) {
	x := d.trouble
	for len(x.faults) <= n.N {
		x.faults = append(x.faults, result.Fault{})
	}
	x.faults[n.N] = n.Fault
	at, by := d.clocks.reading(x.place, n.AtNS)
	d.c.Tell(engine.Event{At: max(0, at), Kind: "injected", Text: d.starter.Name + ": " + n.Text + by})
}

// order sends a sealed message to an agent that joined, and waits for the answer up to limit.
func (f *Fleet) order(ctx context.Context, agent, what string, limit time.Duration, order, into any) error {
	f.mu.Lock()
	p := f.peers[agent]
	f.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%w: it has not joined", coordinator.ErrAgent)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sealed, err := admission.Seal(protocol.Encode(order), p.Key)
	if err != nil {
		return err
	}
	m, err := f.nc.RequestWithContext(ctx, protocol.OrderSubject(p.Instance, what), sealed)
	if err != nil {
		return err
	}
	return protocol.Decode(m.Data, protocol.SmallSize, into)
}

// faults returns the faults that agents executed, on the coordinator's clock as known after the run. unreported
// says that an agent's fault report is incomplete.
func (d *drive) faults() (all []result.Fault, unreported error) {
	var shares [][]result.Fault
	d.mu.Lock()
	finals := slices.Clone(d.finals)
	d.mu.Unlock()
	for i, f := range finals {
		if f != nil && len(f.Faults) > 0 {
			shares = append(shares, d.dated(i, d.abouts[i].Name, f.Faults))
		}
	}
	all = fault.Merge(shares...)
	for _, f := range all {
		if fault.Verb(f.Do) == fault.Disconnect && f.Connections == 0 {
			d.c.Tell(engine.Event{At: f.BeganNS, Kind: "injected", Text: fmt.Sprintf("%s %s failed: %s", f.Do, f.To, f.Error)})
		}
	}
	x := d.trouble
	if x == nil {
		return all, nil
	}
	if !x.over {
		unreported = fmt.Errorf("agent %s sent an incomplete fault report: %w", d.starter.Name, errors.Join(x.why, coordinator.ErrAgent))
	}
	known := slices.DeleteFunc(slices.Clone(x.faults), func(f result.Fault) bool { return f.Do == "" })
	return append(all, d.dated(x.place, d.starter.Name, known)...), unreported
}

// dated converts an agent's faults to the coordinator's clock.
func (d *drive) dated(place int, agent string, faults []result.Fault) (all []result.Fault) {
	for _, f := range faults {
		var bound int64
		var known bool
		f.BeganNS, bound, known = d.clocks.corrected(place, f.BeganNS)
		if f.UndoneNS != nil {
			at, other, _ := d.clocks.corrected(place, *f.UndoneNS)
			f.UndoneNS, bound = &at, max(bound, other)
		}
		if known {
			f.BoundNS = &bound
		}
		f.Agents = []string{agent}
		all = append(all, f)
	}
	return all
}

// tellLeaders answers an agent's query which servers lead.
func (d *drive) tellLeaders(m *nats.Msg) {
	select {
	case d.asking <- struct{}{}:
	default:
		return // it retries
	}
	go func() {
		defer func() { <-d.asking }()
		var a protocol.Answer
		leaders, err := d.leaders(context.Background())
		if a.Leaders = leaders; err != nil {
			a.Error, a.Kind = err.Error(), protocol.KindOf(err)
		}
		d.f.answer(m, a)
	}()
}

// leaders asks which servers lead parts of the destinations, through the agent that declared them.
func (d *drive) leaders(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.PassLimit)
	defer cancel()
	m, err := d.f.nc.RequestWithContext(ctx, protocol.OrderSubject(d.abouts[0].Instance, "leaders"), []byte(d.run.Config.RunID))
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", d.abouts[0].Name, err)
	}
	var a protocol.Answer
	if err := protocol.Decode(m.Data, protocol.StandingSize, &a); err != nil {
		return nil, err
	}
	for _, at := range a.Leaders {
		if !protocol.IsWord(at) {
			return nil, fmt.Errorf("agent %s: %w: the address of a server", d.abouts[0].Name, protocol.ErrMalformed)
		}
	}
	return a.Leaders, protocol.ErrorOf(protocol.Shown(a.Error), a.Kind)
}
