package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

const mostAgents = 64

// agents writes which processes took part in a run of several: what each carried, the state of its host and
// clock, and when it was absent.
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
	x := &layout.Table{Columns: layout.Columns(layout.Word, layout.Strong, "agent", "host")}
	if away {
		x.Columns = append(x.Columns, layout.Column{Head: "missing", Kind: layout.Word, Tone: layout.Strong})
	}
	for _, head := range []string{"producers", "consumers", "began", "hiccups 99 %", "cpu", "clock"} {
		x.Columns = append(x.Columns, layout.Column{Head: head, Tone: layout.Strong})
	}
	x.Columns[len(x.Columns)-1].Kind = layout.Word
	for i := range all[:min(len(all), mostAgents)] {
		a := &all[i]
		row := []layout.Span{plain(a.Name), plain(a.Hostname)}
		if away {
			row = append(row, absent(a, originOf(t.r)))
		}
		row = append(row, plain(quantity.Count(uint64(max(0, a.Producers)))), plain(quantity.Count(uint64(max(0, a.Consumers)))),
			began(a, first), stalls(a), taken(a), offset(&a.Clock))
		x.Rows = append(x.Rows, row)
	}
	t.Gap()
	t.Table(x)
	if n := len(all) - mostAgents; n > 0 {
		t.Note(fmt.Sprintf("and %d further agents: see result.json", n))
	}
	for i := range all[:min(len(all), mostAgents)] {
		if a := &all[i]; a.Missing {
			t.Labelled(a.Name, plain(lastKnown(a, originOf(t.r))))
		}
	}
	t.clocks()
	t.gaps()
}

func (t *single) members() {
	var names []string
	for _, a := range t.r.Agents {
		name := a.Name + " on " + a.Hostname
		if a.Missing {
			name += " (lost)"
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		t.Labelled("agents", plain(fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))))
	}
}

// gaps reports when the run had no coordinator.
func (t *single) gaps() {
	if len(t.r.Run.Gaps) > 0 {
		t.Labelled("resumed", plain("no coordinator "+times(t.r.Run.Gaps, originOf(t.r))+", and then another one resumed it (weir run --resume): the agents continued, and their reports count"))
	}
}

// began is how long after the first agent this agent began.
func began(a *result.Agent, first *int64) layout.Span {
	if a.StartsNS == nil {
		return plain("-")
	}
	return plain("+" + quantity.Time(*a.StartsNS-*first))
}

func stalls(a *result.Agent) layout.Span {
	if a.Host == nil || a.Host.Hiccups == nil {
		return plain("-")
	}
	return plain(quantity.Time(a.Host.Hiccups.P99NS))
}

func taken(a *result.Agent) layout.Span {
	if a.Host == nil || a.Host.Usage == nil || a.Host.Usage.CPUShare == nil {
		return plain("-")
	}
	return plain(strconv.FormatFloat(100**a.Host.Usage.CPUShare, 'f', 1, 64) + " %")
}

// offset describes an agent's clock offset.
func offset(c *result.AgentClock) layout.Span {
	switch {
	case c.Same:
		return plain("the coordinator's")
	case c.BoundNS == nil:
		return layout.Doubtful.Of("not known")
	}
	text := quantity.Time(c.OffsetNS) + " ±" + quantity.Time(*c.BoundNS)
	if k := c.Daemon; k != nil && k.Agrees {
		text += ", by " + k.Name() + " ±" + quantity.Time(k.BoundNS)
	}
	if n := len(c.Steps); n > 0 {
		return layout.Doubtful.Of(fmt.Sprintf("%s, %s", text, quantity.Counted(n, "step", "steps")))
	}
	return plain(text)
}

const mostAbsences = 3

// absent reports when an agent was not heard from.
func absent(a *result.Agent, from origin) layout.Span {
	said := times(a.Absences, from)
	switch {
	case a.Missing && said == "":
		return layout.Bad.Of("no figures")
	case a.Missing:
		return layout.Bad.Of(said)
	}
	return layout.Doubtful.Of(said)
}

// lastKnown says what a missing agent had reported, and what is not known of it.
func lastKnown(a *result.Agent, from origin) string {
	k := a.Reported
	if k == nil || k.UntilNS == 0 {
		return "it reported nothing: what it sent and received is not known"
	}
	return fmt.Sprintf("reported until %s: %s sent, %s received. What it did after that is not known, and is in no figure",
		from.says(k.UntilNS), quantity.Counted(k.Sent, "message", "messages"), quantity.Count(k.Received))
}

// times writes the first absences and the number of further ones.
func times(all []result.Absence, from origin) string {
	at := from.says
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

// clocks explains how the hosts' clock offsets affect latencies between hosts.
func (t *single) clocks() {
	k := t.r.Clock
	if k == nil || !k.Crosses || k.Same {
		return
	}
	text := "e2e needs two clocks that could not be compared: do not use its figures"
	if k.BoundNS != nil {
		text = "e2e rests on two clocks: ±" + quantity.Time(*k.BoundNS) + " on every figure, beside its interval"
	}
	if k.Negative > 0 {
		text += fmt.Sprintf("; %s came before they were sent, by up to %s, and count as 0", quantity.Counted(k.Negative, "message", "messages"), quantity.Time(k.WorstNegativeNS))
	}
	t.Labelled("clock", plain(text))
}

// headed is a distribution's group heading, with the clock uncertainty.
func (c distribution) headed() string {
	switch {
	case c.d.ClockBoundNS != nil:
		return c.group + " ±" + quantity.Time(*c.d.ClockBoundNS) + " clock"
	case len(c.d.Percentiles) > 0 && c.d.Percentiles[0].UnsupportedBy == result.ByUnknownClock:
		return c.group + " ±? clock"
	}
	return c.group
}

// withheld explains the figures that are marked "?", if any.
func withheld(p *layout.Page, x *layout.Table, rs ...*result.Result) {
	if !marked(x, "?") {
		return
	}
	for _, why := range withheldBy(rs...) {
		p.Note("? " + why + ": do not quote it")
	}
}

// withheldBy returns why figures of runs cannot be quoted although they have enough samples.
func withheldBy(rs ...*result.Result) (why []string) {
	by := map[string]bool{}
	for _, r := range rs {
		for _, c := range distributions(r) {
			for i := range c.d.Percentiles {
				by[c.d.Percentiles[i].UnsupportedBy] = true
			}
		}
	}
	if by[result.ByLostAgents] {
		why = append(why, "needs an agent that was lost")
	}
	if by[result.ByClock] || by[result.ByUnknownClock] {
		why = append(why, "is finer than the clocks of two hosts can resolve")
	}
	return why
}

// hostNames returns the hosts of a run, each once however many agents it has.
func hostNames(hosts []host.Facts) (names []string) {
	for _, h := range hosts {
		if !slices.Contains(names, h.Hostname) {
			names = append(names, h.Hostname)
		}
	}
	return names
}
