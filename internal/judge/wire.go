package judge

import (
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// CheckWire is the name by which a figure is marked that kernel instants do not show well enough.
const CheckWire = "wire"

// A Sampling holds samples of one step of a run, beside which the host delayed weir by at most so much.
type Sampling struct {
	Step, Delay int64
	Samples     *measure.Counts
}

// SystemsPart returns the distribution of what the network and the system took for sampled messages.
// samplings are in order of time. The intervals go by the dependence of messages of about the same time.
// In the rows' Stalls, Met is the share of the messages beside which the host delayed weir by so much that
// the percentile may have moved: a message that leaves late can hold up others in the system. beside are the
// stalls of a host that the system is on too, and nil if it is on another: the system's own threads wait for
// cores as weir's do, and no window shows how calm it was for them. usual is how late a sleeping thread
// ordinarily wakes on this host, in ns.
func SystemsPart(all *measure.Counts, samplings []Sampling, beside *measure.Counts, usual int64) *result.Dist {
	d := Distribution(all, nil)
	w := widening{conf: confidence, all: all, certain: math.MaxUint64}
	w.levels(d)
	for rest := samplings; len(rest) > 0; {
		step := new(measure.Counts)
		for at := rest[0].Step; len(rest) > 0 && rest[0].Step == at; rest = rest[1:] {
			step.Merge(rest[0].Samples)
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
			x.beside(all, samplings)
		}
	}
	return d
}

// beside records by how much delays beside the messages can have moved a percentile.
func (x *stalled) beside(all *measure.Counts, samplings []Sampling) {
	than := x.than(delayLeast)
	for _, g := range samplings {
		if g.Delay <= than {
			x.calm.Merge(g.Samples)
		}
	}
	n := all.Total()
	x.row.Stalls = x.least(all, 1-float64(x.calm.Total())/float64(n))
	x.compare(n, math.MaxUint64)
}

// HostMoved returns which share of a percentile of a latency is this host's at most, as sampled messages show:
// latency are their latencies, rest is what the network, the system and a full client took of each. It is
// false if the sample does not stand for the run: its own percentile is another, or too few messages are known.
func HostMoved(of *result.Percentile, latency, rest *measure.Counts, leftOut float64) (moved float64, ok bool) {
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

// LeftOut returns the share of sampled messages that are not in the distributions.
func LeftOut(x *result.WireParts) float64 {
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

// systemFigures judges each percentile of what the network and the system took.
func (s *subject) systemFigures(shared []mark, changes []change, wait serversWait) (out []result.Figure) {
	for _, latency := range []string{"send", "e2e"} {
		x := s.parts(latency)
		if x == nil || x.System == nil {
			continue
		}
		d := Response{Name: SystemName(latency), All: x.System}
		for i := range x.System.Percentiles {
			row := &x.System.Percentiles[i]
			if row.P >= 100 || !row.Supported || row.Stalls == nil { // nil: an older version
				continue
			}
			marks := slices.Concat(shared, s.stallMark(&d, row), changeMark(changes, &d, row), wait.mark(row))
			if left := LeftOut(x); !mayLeaveOut(left, row.P) {
				marks = append(marks, mark{CheckWire, 1, true, say("figure.left_out", "left", x.Sampled-x.Exact-x.Bounded, "sampled", x.Sampled)})
			}
			out = append(out, marked(d.Name+"."+finding.Percentile(row.P), marks))
		}
	}
	return out
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
