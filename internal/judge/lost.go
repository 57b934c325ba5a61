package judge

import (
	"slices"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// unusable says that figures that need lost agents must not be used.
func unusable(l result.Loss) finding.Finding {
	switch {
	case len(l.Senders) == 0:
		return say("lost.receivers", "agents", l.Receivers)
	case len(l.Receivers) == 0:
		return say("lost.senders", "agents", l.Senders)
	}
	return say("lost.senders", "agents", l.Agents(), "received", true)
}

// Withhold marks the percentiles that need lost agents: they must not be quoted.
func Withhold(r *result.Result) {
	lost := r.Lost()
	if !lost.Any() {
		return
	}
	withhold := func(ds ...*result.Dist) {
		for _, d := range ds {
			if d == nil {
				continue
			}
			for i := range d.Percentiles {
				if p := &d.Percentiles[i]; p.Supported || p.UnsupportedBy != "" { // others have too few samples anyway
					p.Supported, p.UnsupportedBy = false, result.ByLostAgents
				}
			}
		}
	}
	pair := func(p *result.Pair) {
		if p != nil {
			withhold(p.Response, p.OnTime, p.Service)
		}
	}
	l := &r.Latency
	pair(&l.E2E)
	pair(&l.RTT)
	withhold(l.Settle)
	for i := range r.Stages {
		pair(r.Stages[i].E2E)
		pair(r.Stages[i].RTT)
	}
	if len(lost.Senders) == 0 {
		return
	}
	withhold(l.Send.Response, l.Send.OnTime, l.Send.Service, l.Send.Hop, l.Send.Failed)
	for i := range r.Stages {
		pair(r.Stages[i].Send)
	}
}

// needsReceivers reports whether the figure needs receivers as well as senders.
func (f figure) needsReceivers() bool {
	sending := func(name string) bool { return slices.Contains(senders[:], name) }
	switch f.kind {
	case countFigure:
		return !sending(f.of)
	case ratioFigure:
		return !sending(f.of) || !sending(f.over)
	case rateFigure:
		return f.of == "received"
	}
	return f.of != "send"
}
