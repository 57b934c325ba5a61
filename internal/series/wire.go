package series

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Wire says whether a run records kernel instants.
type Wire uint8

// The values.
const (
	WireOff  Wire = iota
	WireAuto      // where the host allows it
	WireOn        // the same, but a note says where it does not
)

// CheckWire returns wire.ErrMissing, with what is missing, if this host does not allow it.
func CheckWire() error { return wire.Check() }

// wireOf returns where the time of messages went; nil if it was not wanted.
func (m *measurement) wireOf(raw *engine.Raw, r *result.Result) *result.Wire {
	w, latency := raw.Wire, &r.Latency
	if w == nil {
		return nil
	}
	x := &result.Wire{Missing: w.Missing, Windows: w.Windows, Segments: w.Segments, LostSegments: w.Lost, Connections: w.Conns, Encrypted: w.Hidden, SameHost: w.Beside > 0 || r.Servers != nil}
	if w.UsedNS > 0 {
		x.CostShare = new(float64(w.CostNS) / float64(w.UsedNS))
	}
	usual, beside := m.record.oversleep(raw), (*measure.Counts)(nil)
	if x.SameHost {
		beside = m.record.slices.Woken()
	}
	x.Send = partsOf(&w.Send, headline(latency.Send.Response, latency.Send.Service), beside, usual)
	x.E2E = partsOf(&w.E2E, headline(latency.E2E.Response, latency.E2E.Service), beside, usual)
	if x.Missing == "" && x.Send == nil && x.E2E == nil {
		x.Missing = unseen(w)
	}
	if x.Missing != "" && m.wire == WireOn {
		m.observer.Note("--wire: %s", x.Missing)
	}
	if x.Send != nil || x.E2E != nil { // an agent's host may not allow it
		x.Missing = ""
	}
	return x
}

// unseen says why nothing is known though segments were recorded.
func unseen(w *wire.Report) string {
	code := "wire.unreadable"
	if w.Hidden {
		code = "wire.encrypted"
	}
	switch {
	case w.Conns == 0:
		code = "wire.no_connection"
	case w.Segments == 0:
		code = "wire.silent"
	case w.Send.Sampled()+w.E2E.Sampled() == 0:
		code = "wire.none"
	case w.Send.Late+w.E2E.Late > w.Send.Unseen+w.E2E.Unseen:
		code = "wire.too_long"
	}
	return finding.New(code).String()
}

func headline(response, service *result.Dist) *result.Dist {
	if response != nil {
		return response
	}
	return service
}

// partsOf returns the parts of a latency; nil if they are known of no message.
func partsOf(p *wire.Parts, of *result.Dist, beside *measure.Counts, usual int64) *result.WireParts {
	if p.Known() == 0 {
		return nil
	}
	x := &result.WireParts{
		Method: result.WireExact, Sampled: p.Sampled(), Exact: p.Exact, Bounded: p.Bounded,
		Ambiguous: p.Ambiguous, Unseen: p.Unseen, Late: p.Late,
		Held: judge.Distribution(&p.Held, nil), HostOut: judge.Distribution(&p.HostOut, nil), System: judge.SystemsPart(&p.System, samplings(p), beside, usual), HostIn: judge.Distribution(&p.HostIn, nil),
	}
	if p.Bounded > 0 {
		x.Method = result.WireBounds
	}
	for _, d := range []*result.Dist{x.Held, x.HostOut, x.HostIn} {
		for i := range d.Percentiles { // of a sample in windows: how messages of one depend on each other is unknown
			d.Percentiles[i].LoNS, d.Percentiles[i].HiNS = nil, nil
		}
	}
	if of == nil {
		return x
	}
	for _, row := range of.Percentiles {
		if !row.Supported || row.AtLeast {
			continue
		}
		l, ok := p.Around(row.NS)
		if !ok {
			continue
		}
		total := float64(max(l.TotalNS(), 1))
		mean := func(ns int64) int64 { return ns / int64(l.Known) }
		at := result.WireAt{
			P: row.P, Messages: l.Known, LeftOut: l.LeftOut, LatenessNS: mean(l.Lateness), BlockedNS: mean(l.Blocked),
			HeldNS: mean(l.Held), HostOutNS: mean(l.HostOut), SystemNS: mean(l.System), HostInNS: mean(l.HostIn),
			HostShare: float64(l.HostNS()) / total, HostMost: float64(l.HostNS()+l.Held) / total,
		}
		if moved, ok := judge.HostMoved(&row, &p.Latency, &p.Rest, judge.LeftOut(x)); ok {
			at.Moved = &moved
		}
		x.At = append(x.At, at)
	}
	return x
}

// samplings returns the groups of windows of a latency.
func samplings(p *wire.Parts) (all []judge.Sampling) {
	for i := range p.Groups {
		g := &p.Groups[i]
		all = append(all, judge.Sampling{Step: g.Step, Delay: g.Delay, Samples: &g.System})
	}
	return all
}
