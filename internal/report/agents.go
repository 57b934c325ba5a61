package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

// mostAgents bounds the rows of the table of agents.
const mostAgents = 64

// agents writes who did the run, where several processes did: what each carried,
// how its host and its clock were, and when it was away.
func (t *single) agents() {
	all := t.r.Agents
	if len(all) == 0 {
		return
	}
	away := false
	var first *int64
	for i := range all {
		a := &all[i]
		away = away || a.Missing || len(a.Absences) > 0
		if a.StartsNS != nil && (first == nil || *a.StartsNS < *first) {
			first = a.StartsNS
		}
	}
	x := &table{columns: []tableColumn{
		{head: "agent", left: true, key: true, paint: bold}, {head: "host", left: true, paint: bold},
	}}
	if away {
		x.columns = append(x.columns, tableColumn{head: "missing", left: true, paint: bold})
	}
	x.columns = append(x.columns,
		tableColumn{head: "producers", paint: bold}, tableColumn{head: "consumers", paint: bold}, tableColumn{head: "began", paint: bold},
		tableColumn{head: "hiccups 99 %", paint: bold}, tableColumn{head: "cpu", paint: bold}, tableColumn{head: "clock", left: true, paint: bold})
	for i := range all[:min(len(all), mostAgents)] {
		a := &all[i]
		row := []cell{{text: a.Name}, {text: a.Hostname}}
		if away {
			row = append(row, absent(a))
		}
		row = append(row, cell{text: Count(uint64(max(0, a.Producers)))}, cell{text: Count(uint64(max(0, a.Consumers)))},
			began(a, first), stalls(a), taken(a), offset(&a.Clock))
		x.rows = append(x.rows, row)
	}
	t.gap()
	t.tabular(x)
	if n := len(all) - mostAgents; n > 0 {
		t.note(fmt.Sprintf("and %d further agents: see result.json", n))
	}
	t.clocks()
	t.gaps()
}

// gaps says when the run had no coordinator.
func (t *single) gaps() {
	if len(t.r.Run.Gaps) > 0 {
		t.labelled("resumed", plain("no coordinator "+times(t.r.Run.Gaps)+", and then another one resumed it (weir run --resume): the agents went on, and their reports count"))
	}
}

// began is how long after the first agent one began.
func began(a *result.Agent, first *int64) cell {
	if a.StartsNS == nil {
		return cell{text: "-"}
	}
	return cell{text: "+" + Time(*a.StartsNS-*first)}
}

func stalls(a *result.Agent) cell {
	if a.Host == nil || a.Host.Hiccups == nil {
		return cell{text: "-"}
	}
	return cell{text: Time(a.Host.Hiccups.P99NS)}
}

func taken(a *result.Agent) cell {
	if a.Host == nil || a.Host.Usage == nil || a.Host.Usage.CPUShare == nil {
		return cell{text: "-"}
	}
	return cell{text: strconv.FormatFloat(100**a.Host.Usage.CPUShare, 'f', 1, 64) + " %"}
}

// offset is what is known of a clock.
func offset(c *result.AgentClock) cell {
	switch {
	case c.Same:
		return cell{text: "the coordinator's"}
	case c.BoundNS == nil:
		return cell{"not known", yellow}
	}
	text := Time(c.OffsetNS) + " ±" + Time(*c.BoundNS)
	if n := len(c.Steps); n > 0 {
		return cell{fmt.Sprintf("%s, %s", text, plural(n, "step")), yellow}
	}
	return cell{text: text}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// mostAbsences is how many times of one agent a cell names.
const mostAbsences = 3

// absent says when an agent was not heard of.
func absent(a *result.Agent) cell {
	said := times(a.Absences)
	switch {
	case a.Missing && said == "":
		return cell{"no figures", red}
	case a.Missing:
		return cell{said, red}
	}
	return cell{said, yellow}
}

// times writes the first of some absences, and how many more there are.
func times(all []result.Absence) string {
	at := func(ns int64) string { return fmt.Sprintf("%.1f s", time.Duration(ns).Seconds()) }
	var parts []string
	for _, x := range all[:min(len(all), mostAbsences)] {
		if x.ToNS == nil {
			parts = append(parts, "from "+at(x.FromNS)+" on")
		} else {
			parts = append(parts, at(x.FromNS)+" to "+at(*x.ToNS))
		}
	}
	if n := len(all) - mostAbsences; n > 0 {
		parts = append(parts, fmt.Sprintf("%d times more", n))
	}
	return strings.Join(parts, ", ")
}

// clocks says what the clocks of several hosts do to times from one to another.
func (t *single) clocks() {
	k := t.r.Clock
	if k == nil || !k.Crosses || k.Same {
		return
	}
	text := "e2e needs two clocks that could not be compared: do not use its figures"
	if k.BoundNS != nil {
		text = "e2e rests on two clocks: ±" + Time(*k.BoundNS) + " on every figure, beside its interval"
	}
	if k.Negative > 0 {
		text += fmt.Sprintf("; %s came before they were sent, by up to %s, and count as 0", plural64(k.Negative, "message"), Time(k.WorstNegativeNS))
	}
	t.labelled("clock", plain(text))
}

func plural64(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}

// headed is a distribution's group as it stands above its columns: with what its
// clocks may be off.
func (c distribution) headed() string {
	switch {
	case c.d.ClockBoundNS != nil:
		return c.group + " ±" + Time(*c.d.ClockBoundNS) + " clock"
	case len(c.d.Percentiles) > 0 && c.d.Percentiles[0].UnsupportedBy == result.ByUnknownClock:
		return c.group + " ±? clock"
	}
	return c.group
}

// finer explains the figures that are marked "?", where there are any.
func (p *page) finer(x *table) {
	for _, r := range x.rows {
		for _, c := range r {
			if strings.HasPrefix(c.text, "?") {
				p.note("? finer than the clocks of two hosts can resolve: do not quote it")
				return
			}
		}
	}
}

// vanished reports whether an agent is missing that may have received something.
func vanished(r *result.Result) bool {
	return slices.ContainsFunc(r.Agents, func(a result.Agent) bool {
		return a.Missing && (a.Consumers > 0 || r.Run.Mode == "request") // where every agent receives replies
	})
}

// hostNames are the hosts of a run, each once, however many agents it has.
func hostNames(hosts []host.Facts) []string {
	n := map[string]int{}
	var names []string
	for _, h := range hosts {
		if n[h.Hostname]++; n[h.Hostname] == 1 {
			names = append(names, h.Hostname)
		}
	}
	return names
}

// agentsOf says how many agents did a run, on how many hosts.
func agentsOf(r *result.Result) string {
	if len(r.Agents) == 0 {
		return "none"
	}
	hosts := map[string]bool{}
	for _, a := range r.Agents {
		hosts[a.Hostname] = true
	}
	return plural(len(r.Agents), "agent") + " on " + plural(len(hosts), "host")
}
