package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// split is a latency of which kernel instants say where its time went.
type split struct {
	name string
	*result.WireParts
}

// splits returns the latencies whose parts are known.
func splits(r *result.Result) (all []split) {
	if r.Wire == nil {
		return nil
	}
	for _, s := range []split{{"send", r.Wire.Send}, {"e2e", r.Wire.E2E}} {
		if s.WireParts != nil {
			all = append(all, s)
		}
	}
	return all
}

// wireMost is the percentile that a screen names, if it is known; else the highest below it.
const wireMost = 99

// hostShare says in a line how much of each latency was this host's; "" if nothing is known.
func hostShare(r *result.Result) string {
	var says []string
	for _, s := range splits(r) {
		var best *result.WireAt
		for i := range s.At {
			if at := &s.At[i]; at.P <= wireMost && (best == nil || at.P > best.P) {
				best = at
			}
		}
		if best != nil {
			says = append(says, fmt.Sprintf("%s of %s p%s", hostText(best), s.name, strings.TrimSuffix(percent(best.P), " %")))
		}
	}
	if len(says) == 0 {
		return ""
	}
	return finding.New("wire.hosts", "shares", says).String()
}

// systemsPart says in a line what can be quoted of the network and the system, where the whole latency
// cannot; "" if nothing.
func systemsPart(r *result.Result) string {
	var says []string
	for _, s := range splits(r) {
		for _, p := range answered {
			name := finding.Percentile(p)
			f := r.Verdict.Figure(judge.SystemName(s.name) + "." + name)
			if f == nil || !f.Quotable || quotable(r, s.name, name) {
				continue
			}
			says = append(says, fmt.Sprintf("%s %s %s", s.name, name, quantity.Time(s.System.Percentile(p).NS)))
		}
	}
	if len(says) == 0 {
		return ""
	}
	return finding.New("wire.system", "figures", says).String()
}

// quotable reports whether a percentile of a whole latency can be quoted.
func quotable(r *result.Result, latency, p string) bool {
	return slices.ContainsFunc([]string{latency + "." + p, latency + ".service." + p}, func(name string) bool {
		f := r.Verdict.Figure(name)
		return f != nil && f.Quotable
	})
}

// hostText writes this host's share: a range where it is unclear for what messages waited.
func hostText(at *result.WireAt) string {
	least, most := fmt.Sprintf("%.0f", 100*at.HostShare), fmt.Sprintf("%.0f", 100*at.HostMost)
	if least == most {
		return least + " %"
	}
	return least + " to " + most + " %"
}

// wire writes where the time of messages went.
func (t *single) wire() {
	if t.r.Wire == nil {
		return
	}
	all := splits(t.r)
	if len(all) == 0 {
		if t.r.Wire.Missing != "" {
			t.Labelled("wire", plain("not measured: "+t.r.Wire.Missing))
		}
		return
	}
	t.Gap()
	table := &layout.Table{Columns: columns("where time went")}
	for _, s := range all {
		table.Columns = append(table.Columns,
			layout.Column{Group: s.name, Head: "50 %", Tone: layout.Strong}, layout.Column{Group: s.name, Head: "99 %", Tone: layout.Strong},
			layout.Column{Group: s.name, Head: "max", Tone: layout.Faint})
	}
	for _, x := range []struct {
		name string
		of   func(*result.WireParts) *result.Dist
	}{
		{"client, waiting", func(p *result.WireParts) *result.Dist { return p.Held }},
		{"client and kernel, sending", func(p *result.WireParts) *result.Dist { return p.HostOut }},
		{"network and system", func(p *result.WireParts) *result.Dist { return p.System }},
		{"kernel and client, receiving", func(p *result.WireParts) *result.Dist { return p.HostIn }},
	} {
		row := []layout.Span{plain(x.name)}
		for _, s := range all {
			d := distribution{group: s.name, name: "wire", d: x.of(s.WireParts)}
			if d.d == s.System {
				d.name, d.interval = "system", true
			}
			for _, p := range []float64{50, 99, 100} {
				row = append(row, d.figure(t.r, p))
			}
		}
		table.Rows = append(table.Rows, row)
	}
	t.Table(table)
	notes := []string{"client, waiting: from the hand-over to the client until the last answer that came in before the message left; whether the client waited for that answer is not known. sending: from there until the last byte left this host. receiving: from the arrival of the last byte of the confirmation or delivery until the program had it"}
	if t.r.Wire.Encrypted {
		notes = append(notes, finding.New("wire.eliminated").String())
	}
	if t.r.Wire.SameHost {
		notes = append(notes, finding.New("wire.same_host").String())
	}
	for _, s := range all {
		notes = append(notes, samplesOf(&s))
		for i := range s.At {
			at := &s.At[i]
			if at.P == 50 || at.P == 99 {
				notes = append(notes, fmt.Sprintf("%s, messages near %s: lateness %s, blocked %s, client waiting %s, sending %s, network and system %s, receiving %s. Weir, client and kernel: %s", s.name, percent(at.P),
					quantity.Time(at.LatenessNS), quantity.Time(at.BlockedNS), quantity.Time(at.HeldNS), quantity.Time(at.HostOutNS), quantity.Time(at.SystemNS), quantity.Time(at.HostInNS), hostText(at)))
			}
		}
	}
	t.Note(notes...)
}

// samplesOf says how many messages the parts are known of, by which method, and what was left out.
func samplesOf(s *split) string {
	says := fmt.Sprintf("%s: split for %s of %s", s.name, quantity.Count(s.Exact+s.Bounded), quantity.Counted(s.Sampled, "sampled message", "sampled messages"))
	if s.Bounded > 0 {
		says += fmt.Sprintf(", for %s of these to within 5 %%", quantity.Count(s.Bounded))
	}
	var left []string
	for _, x := range []struct {
		n   uint64
		why string
	}{{s.Ambiguous, "that may have come in one of several segments"}, {s.Unseen, "in no recorded segment"}, {s.Late, "that completed after recording ended"}} {
		if x.n > 0 {
			left = append(left, quantity.Count(x.n)+" "+x.why)
		}
	}
	if len(left) > 0 {
		says += "; could not be split, and are left out: " + strings.Join(left, ", ")
	}
	return says
}
