package judge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

// CheckFigures is the name of the check that at least one latency can be quoted.
const CheckFigures = "figures"

// Figures judges each latency percentile that has enough samples, and each rate. It needs nothing but r.
//
// A percentile can be quoted unless something other than the system moved it by more than a tenth: the
// generator's lateness, a client library or a server that waits for a core, stalls of the host, the
// uncertainty of two clocks, or a system that was not the same throughout.
func Figures(r *result.Result) []result.Figure { return figuresOf(subjectOf(r, nil)) }

func figuresOf(s *subject) (out []result.Figure) {
	shared, changes, wait := s.closedMarks(), s.changes(), s.serversWait()
	systems := verdicts(s.systemParts(), func(d *Response, row *result.Percentile) []mark {
		return slices.Concat(shared, s.stallMark(d, row), changeMark(changes, d, row), wait.mark(row), s.leftOutMark(d, row))
	})
	out = verdicts(s.reported(), func(d *Response, row *result.Percentile) []mark {
		return slices.Concat(shared, s.lateMark(d, row), s.blockedMark(d, row), s.hostMark(s.stallMark(d, row), d, row, systems), s.clockMark(d, row), changeMark(changes, d, row), wait.mark(row))
	})
	out = append(out, systems...)
	if perS := s.Throughput.ConfirmedPerS; perS > 0 {
		out = append(out, marked("confirmed.rate", shared))
	}
	if perS, known := s.Throughput.Received(); known && perS > 0 {
		out = append(out, marked("received.rate", shared))
	}
	return out
}

// verdicts returns the verdict on each supported percentile, by its marks.
func verdicts(all []Response, marks func(*Response, *result.Percentile) []mark) (out []result.Figure) {
	for _, d := range all {
		for i := range d.All.Percentiles {
			if row := &d.All.Percentiles[i]; row.P < 100 && row.Supported {
				out = append(out, marked(d.Name+"."+finding.Percentile(row.P), marks(&d, row)))
			}
		}
	}
	return out
}

// FigureOf returns the verdict on a figure of a run: the stored one, or for a result of an older version this
// version's. It is nil for a figure that the run does not have.
func FigureOf(r *result.Result, name string) *result.Figure {
	if r.Verdict.Figures != nil {
		return r.Verdict.Figure(name)
	}
	v := result.Verdict{Figures: Figures(r)}
	return v.Figure(name)
}

// Quotable names the latencies that can be quoted, and those that cannot, with runs of neighbouring
// percentiles as ranges; "the rates" are among them if they cannot. What the network and the system took is
// named only where it can be quoted and the whole latency cannot.
func Quotable(v *result.Verdict) (can, cannot []string) {
	var families []string
	all, good, bad := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	rates := false
	for _, f := range v.Figures {
		family, percentile, _ := cutLast(f.Name, ".p")
		p, err := strconv.ParseFloat(percentile, 64)
		if err != nil {
			rates = rates || !f.Quotable
			continue
		}
		if !slices.Contains(families, family) {
			families = append(families, family)
		}
		if total, is := strings.CutSuffix(family, systemFamily); is && (!f.Quotable || slices.ContainsFunc(v.Figures, func(t result.Figure) bool {
			return t.Quotable && (t.Name == total+"."+finding.Percentile(p) || t.Name == total+".service."+finding.Percentile(p))
		})) {
			continue
		}
		all[family] = append(all[family], p)
		if f.Quotable {
			good[family] = append(good[family], p)
		} else {
			bad[family] = append(bad[family], p)
		}
	}
	for _, family := range families {
		name := strings.ReplaceAll(family, ".", " ") + " "
		if len(good[family]) > 0 {
			can = append(can, name+spans(all[family], good[family]))
		}
		if len(bad[family]) > 0 {
			cannot = append(cannot, name+spans(all[family], bad[family]))
		}
	}
	if rates {
		cannot = append(cannot, "the rates")
	}
	return can, cannot
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// reported returns the latencies that a run reports first: responses, or the service times of a closed loop.
func (s *subject) reported() []Response {
	if !s.closed() {
		return Responses(&s.Latency)
	}
	l := &s.Latency
	return slices.DeleteFunc([]Response{
		{"send.service", l.Send.Service, nil}, {"rtt.service", l.RTT.Service, nil}, {"e2e.service", l.E2E.Service, nil},
	}, func(r Response) bool { return r.All == nil })
}

// A mark is one reason not to quote a figure.
type mark struct {
	by     string
	part   float64 // of the figure
	atMost bool
	why    finding.Finding
}

// marked returns the verdict on a figure: the mark that moved it most.
func marked(name string, marks []mark) result.Figure {
	f := result.Figure{Name: name, Quotable: len(marks) == 0}
	if f.Quotable {
		return f
	}
	most := slices.MaxFunc(marks, func(a, b mark) int { return cmp.Compare(a.part, b.part) })
	f.By, f.Part, f.AtMost, f.Why, f.Code = most.by, most.part, most.atMost, most.why.String(), most.why.Code
	_, f.Values = finding.Data(most.why)
	return f
}

// closedMarks returns why no figure of a closed loop can be quoted: it stands still while others have its
// cores.
func (s *subject) closedMarks() (marks []mark) {
	if !s.closed() {
		return nil
	}
	for _, of := range []func(*subject) check{cpu, hiccups} {
		c := of(s)
		if len(s.Agents) > 0 {
			c = overAll(s, of)
		}
		if c.wrong() {
			marks = append(marks, mark{c.name, c.part, true, say("figure.taken", "part", c.part)})
		}
	}
	return marks
}

// lateMark says whether lateness moved a percentile. Where stalls are known they include it.
func (s *subject) lateMark(d *Response, row *result.Percentile) []mark {
	by, part, ok := d.moved(row.P)
	switch {
	case d.OnTime == nil && Late(d.All, nil, s.Latency.Send.Lateness, row.P): // an older version
		return []mark{{CheckLateness, latenessSuspect, false, say("figure.mostly_late")}}
	case ok && part > latenessValid:
		return []mark{{CheckLateness, part, false, say("figure.late", "part", part, "without", row.NS-by)}}
	}
	return nil
}

// blockedMark says whether a client library that worked, or waited for a core, moved a percentile.
func (s *subject) blockedMark(d *Response, row *result.Percentile) []mark {
	b := s.Latency.Send.Blocked.Percentile(row.P)
	if s.closed() || s.evidence.Blocked == nil || b == nil || !b.Supported {
		return nil
	}
	share, known := hostShare(s.evidence.Blocked)
	if part := share * float64(b.NS) / float64(max(1, row.NS)); known && part > latenessValid {
		return []mark{{CheckBlocked, min(1, part), true, say("figure.blocked", "part", min(1, part))}}
	}
	return nil
}

// A serversWait is for what share of the time threads of the servers were ready to run and had no core, on a
// host where others used many. The zero value means that it is not known, or that hardly any others ran.
type serversWait struct{ share, others float64 }

func (s *subject) serversWait() (w serversWait) {
	others := Others(s.Result)
	if others <= OthersMost || s.closed() || s.Servers.SpanS <= 0 {
		return w
	}
	for _, p := range s.Servers.Processes {
		if p.WaitedS != nil {
			w.share += *p.WaitedS / s.Servers.SpanS
		}
	}
	w.share, w.others = min(1, w.share), others
	return w
}

// mark says whether a percentile may be that of messages that reached a server while it waited: at a fixed
// rate their share is at most the share of the time.
func (w serversWait) mark(row *result.Percentile) []mark {
	if mayLeaveOut(w.share, row.P) {
		return nil
	}
	return []mark{{CheckCPU, 1, true, say("figure.servers_waited", "share", w.share, "others", w.others)}}
}

// stallMark says whether stalls of the host, with lateness, may have moved a percentile. In results of older
// versions, and where too little of the run was calm, only a bound is known.
func (s *subject) stallMark(d *Response, row *result.Percentile) []mark {
	x := row.Stalls
	part := func(without int64) float64 { return float64(row.NS-without) / float64(max(1, row.NS)) }
	switch {
	case x == nil:
		return s.witnessMark(d, row)
	case near(row.NS, x.LeastNS) && !contradicted(row):
		return nil
	case x.CalmNS != nil && part(*x.CalmNS) > calmMovedMost:
		return []mark{{CheckHiccups, part(*x.CalmNS), false, say("figure.stalled", "part", part(*x.CalmNS), "calm", x.Calm, "without", *x.CalmNS)}}
	case x.CalmNS != nil && part(*x.CalmNS) >= -calmMovedMost && x.Calm >= calmClears: // not above: then they are not calm for all threads
		return nil
	}
	return []mark{{CheckHiccups, part(x.LeastNS), true, say("figure.stalls", "part", part(x.LeastNS))}}
}

// contradicted reports whether the calm slices show that stalls moved a percentile by more than their bound:
// what waits in the system behind a stall is late too, and the bound does not know for how long.
func contradicted(row *result.Percentile) bool {
	x := row.Stalls
	return x.CalmNS != nil && x.Calm >= calmClears && !near(row.NS, *x.CalmNS) && (row.LoNS == nil || *x.CalmNS < *row.LoNS)
}

// witnessMark compares with stalls at the same percentile.
func (s *subject) witnessMark(d *Response, row *result.Percentile) (marks []mark) {
	hosts := []*subject{s}
	if len(s.Agents) > 0 {
		hosts = nil
		for i := range s.Agents {
			hosts = append(hosts, s.on(&s.Agents[i]))
		}
	}
	for _, h := range hosts {
		if h.host.Hiccups == nil {
			continue
		}
		for _, w := range witnessed(h.host.Hiccups) {
			if part := float64(h.stall(w.ns)) / float64(max(1, row.NS)); w.p == row.P && part > hiccupMost {
				marks = append(marks, mark{CheckHiccups, min(1, part), true, say("figure.stalls", "part", min(1, part))})
			}
		}
	}
	return marks
}

// clockMark says whether the uncertainty of two clocks is a visible part of a percentile.
func (s *subject) clockMark(d *Response, row *result.Percentile) []mark {
	if d.All.ClockBoundNS == nil {
		return nil
	}
	if part := float64(*d.All.ClockBoundNS) / float64(max(1, row.NS)); part > latenessValid {
		return []mark{{CheckClock, min(1, part), true, say("figure.clock", "part", part, "bound", *d.All.ClockBoundNS)}}
	}
	return nil
}

// figures checks that at least one latency can be quoted. A check of its own finds what moves them all.
func figures(s *subject, judged []result.Figure) check {
	limit := say("figures.limit")
	var latencies, quotable, systems int
	var marks []string // by how they came about
	for _, f := range judged {
		if f.Name == "confirmed.rate" || f.Name == "received.rate" {
			continue
		}
		if OfSystem(f.Name) {
			if f.Quotable {
				systems++
			}
			continue
		}
		latencies++
		if f.Quotable {
			quotable++
		} else if !slices.Contains(marks, f.By) {
			marks = append(marks, f.By)
		}
	}
	if latencies == 0 {
		return notRun(CheckFigures, limit, s.tooFewToJudge())
	}
	c := valid(CheckFigures, limit, say("figures.value", "quotable", quotable, "latencies", latencies))
	switch {
	case quotable == 0 && systems > 0:
		c = c.notes(true, "figures.systems", "systems", systems, "checks", marks)
	case quotable == 0:
		c.find(result.Suspect, say("figures.none", "checks", marks))
	}
	return c
}
