package engine

import (
	"context"
	"errors"
	"time"
)

// Run executes cfg in this process alone, as conduct.Alone does.
func Run(ctx context.Context, stop <-chan struct{}, cfg Config) (*Raw, error) {
	alone := &solo{}
	part, err := Execute(ctx, stop, cfg, alone)
	if part == nil {
		return nil, err
	}
	raw, joining := Assemble(cfg, []*Part{part}, alone.outcome)
	return raw, errors.Join(err, joining)
}

// solo is the crew of a run that these tests do alone, as package conduct does for
// users.
type solo struct {
	p       *Progress
	conduct *DrainPolicy
	outcome Outcome
	one     [1]Status
}

// Meet implements Peers: everybody is there.
func (s *solo) Meet(ctx context.Context, stage Stage, p *Progress) (Agreed, error) {
	if s.p == nil {
		var err error
		if s.conduct, err = NewDrainPolicy(p.run.cfg); err != nil {
			return Agreed{}, err
		}
		s.p = p
	}
	base := p.run.cfg.Clock
	now := base.Epoch().MonotonicNS + base.Now()
	switch {
	case stage == Declared && p.run.cfg.Mode == Consume:
		return Agreed{EpochNS: now}, nil
	case stage == Opened:
		return Agreed{EpochNS: now + int64(20*time.Millisecond)}, nil
	case stage != Filled:
		return Agreed{}, nil
	}
	p.run.status(&s.one[0], false)
	return Agreed{Lay: Behind(s.one[:]).Waiting()}, ctx.Err()
}

// Orders implements Peers.
func (s *solo) Orders(st *Status) Orders {
	s.one[0] = *st
	o := s.conduct.Look(st.At, s.one[:], func() bool { return st.Complete }, s.p.Holds)
	s.outcome = s.conduct.outcome
	return o
}
