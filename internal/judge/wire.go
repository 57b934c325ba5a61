package judge

import (
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// CheckWire is the name by which a figure is marked that kernel instants do not show well enough.
const CheckWire = "wire"

// Parts returns the parts of a latency of sampled messages; nil if they are known of no message. of is the
// distribution of the whole latency, nil if the run has none.
func Parts(p *wire.Parts, of *result.Dist, beside *measure.Counts, usual int64) *result.WireParts {
	if p.Known() == 0 {
		return nil
	}
	x := &result.WireParts{
		Method: result.WireExact, Sampled: p.Sampled(), Exact: p.Exact, Bounded: p.Bounded,
		Ambiguous: p.Ambiguous, Unseen: p.Unseen, Late: p.Late,
		Held: Distribution(&p.Held, nil), HostOut: Distribution(&p.HostOut, nil), System: SystemsPart(&p.System, p.Groups, beside, usual), HostIn: Distribution(&p.HostIn, nil),
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
		if moved, ok := hostMoved(&row, &p.Latency, &p.Rest, leftOut(x)); ok {
			at.Moved = &moved
		}
		x.At = append(x.At, at)
	}
	return x
}

// SystemsPart returns the distribution of what the network and the system took for sampled messages.
// groups are in order of time. The intervals go by the dependence of messages of about the same time.
// In the rows' Stalls, Met is the share of the messages beside which the host delayed weir by so much that
// the percentile may have moved: a message that leaves late can hold up others in the system. beside are the
// stalls of a host that the system is on too, and nil if it is on another: the system's own threads wait for
// cores as weir's do, and no window shows how calm it was for them. usual is how late a sleeping thread
// ordinarily wakes on this host, in ns.
func SystemsPart(all *measure.Counts, groups []wire.Group, beside *measure.Counts, usual int64) *result.Dist {
	d := Distribution(all, nil)
	w := widening{conf: confidence, all: all, certain: math.MaxUint64}
	w.levels(d)
	for rest := groups; len(rest) > 0; {
		step := new(measure.Counts)
		for at := rest[0].Step; len(rest) > 0 && rest[0].Step == at; rest = rest[1:] {
			step.Merge(&rest[0].System)
		}
		w.add(0, step)
	}
	w.known = make([]*stats.Effective, len(w.values))
	for i := range d.Percentiles {
		row := &d.Percentiles[i]
		if row.P >= 100 {
			row.LoNS, row.HiNS = nil, nil
			continue
		}
		w.row(row)
		// Samples from too few parts of a run do not stand for it.
		x := stalled{row: row, by: row.NS, usual: usual, calm: new(measure.Counts)}
		switch row.Supported = row.Supported && len(w.samples) >= stats.FewestBlocks; {
		case !row.Supported:
		case beside != nil:
			row.Stalls = x.bound(all, beside)
		default:
			x.beside(all, groups)
		}
	}
	return d
}

// beside records by how much delays beside the messages can have moved a percentile.
func (x *stalled) beside(all *measure.Counts, groups []wire.Group) {
	than := x.than(delayLeast)
	for i := range groups {
		if g := &groups[i]; g.Delay <= than {
			x.calm.Merge(&g.System)
		}
	}
	n := all.Total()
	x.row.Stalls = x.least(all, 1-float64(x.calm.Total())/float64(n))
	x.compare(n, math.MaxUint64)
}

// hostMoved returns which share of a percentile of a latency is this host's at most, as sampled messages show:
// latency are their latencies, rest is what the network, the system and a full client took of each. It is
// false if the sample does not stand for the run: its own percentile is another, or too few messages are known.
func hostMoved(of *result.Percentile, latency, rest *measure.Counts, leftOut float64) (moved float64, ok bool) {
	if !of.Supported || of.AtLeast || of.P >= 100 || !stats.Supported(latency.Total(), of.P) || !mayLeaveOut(leftOut, of.P) {
		return 0, false
	}
	sampled := latency.Percentile(of.P)
	if math.Abs(float64(sampled-of.NS)) > latenessValid*float64(of.NS) {
		return 0, false
	}
	return max(0, 1-float64(rest.Percentile(of.P))/float64(max(1, sampled))), true
}

// mayLeaveOut reports whether a share of the samples left out moves the rank of percentile p by at most a
// tenth of what lies beyond it.
func mayLeaveOut(share, p float64) bool { return share <= latenessValid*min(p, 100-p)/100 }

// leftOut returns the share of sampled messages that are not in the distributions.
func leftOut(x *result.WireParts) float64 {
	return 1 - float64(x.Exact+x.Bounded)/float64(max(1, x.Sampled))
}

// parts returns where the time of a latency went, "send", "rtt" or "e2e"; nil if it is not known.
func (s *subject) parts(latency string) *result.WireParts {
	switch {
	case s.Wire == nil:
		return nil
	case latency == "send":
		return s.Wire.Send
	case latency == "e2e":
		return s.Wire.E2E
	}
	return nil
}

// SystemName is the name of the figures of what the network and the system took of a latency.
func SystemName(latency string) string { return latency + systemFamily }

const systemFamily = ".system"

// OfSystem reports whether a figure, or its distribution, is of what the network and the system took.
func OfSystem(name string) bool {
	family, _, _ := cutLast(name, ".p")
	return strings.HasSuffix(family, systemFamily)
}

// Known reports whether a percentile of a run is known: it has enough samples, and of what the network and the
// system took so few sampled messages are left out that the others stand for all.
func Known(v *result.Verdict, figure string, row *result.Percentile) bool {
	f := v.Figure(figure)
	return row.Supported && (f == nil || f.By != CheckWire)
}

// systemParts returns what the network and the system took of each latency. Results of older versions do not
// say what stalls did to a percentile, and such percentiles are not judged.
func (s *subject) systemParts() (all []Response) {
	for _, latency := range []string{"send", "e2e"} {
		if x := s.parts(latency); x != nil && x.System != nil {
			d := *x.System
			d.Percentiles = slices.DeleteFunc(slices.Clone(d.Percentiles), func(row result.Percentile) bool { return row.Stalls == nil })
			all = append(all, Response{Name: SystemName(latency), All: &d})
		}
	}
	return all
}

// leftOutMark says whether the sampled messages that are left out may have moved a percentile.
func (s *subject) leftOutMark(d *Response, row *result.Percentile) []mark {
	x := s.parts(d.latency())
	if mayLeaveOut(leftOut(x), row.P) {
		return nil
	}
	return []mark{{CheckWire, 1, true, say("figure.left_out", "left", x.Sampled-x.Exact-x.Bounded, "sampled", x.Sampled)}}
}

// hostMark replaces the bound on what stalls did to a percentile by what kernel instants show, if they show
// it and what the system took can be quoted: then nothing but this host's own part may be wrong.
func (s *subject) hostMark(bound []mark, d *Response, row *result.Percentile, systems []result.Figure) []mark {
	if len(bound) == 0 || !bound[0].atMost {
		return bound
	}
	x := s.parts(d.latency())
	i := slices.IndexFunc(systems, func(f result.Figure) bool {
		return f.Quotable && f.Name == SystemName(d.latency())+"."+finding.Percentile(row.P)
	})
	if x == nil || i < 0 {
		return bound
	}
	for _, at := range x.At {
		switch {
		case at.P != row.P || at.Moved == nil || *at.Moved >= bound[0].part:
		case *at.Moved <= movedMost:
			return nil
		default:
			return []mark{{CheckHiccups, *at.Moved, false, say("figure.host", "part", *at.Moved, "without", int64((1-*at.Moved)*float64(row.NS)))}}
		}
	}
	return bound
}
