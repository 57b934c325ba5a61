package view

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A final screen has at most MostLines lines of ScreenWidth columns; that of a verb which answers one question from
// several runs has MostAnswer.
const (
	MostLines   = 24
	MostAnswer  = 12
	ScreenWidth = 80
)

// A Screen is a verb's final output: parts of the page that --full prints. If there is no room for all, the
// least important parts are dropped.
type Screen struct{ parts []part }

// A part of a screen. Parts of rank 0 always stay; of the others the highest rank is dropped first.
type part struct {
	rank int
	*layout.Page
}

// gap is the rank of lines that separate parts; advice that of a finding's advice beyond two lines.
const (
	gap    = 6
	advice = 4
)

// Add adds the page content that show writes, as a part of a rank.
func (s *Screen) Add(rank int, show func(*layout.Page)) {
	p := part{rank, new(layout.Page)}
	show(p.Page)
	s.parts = append(s.parts, p)
}

// Gap separates what follows from what precedes.
func (s *Screen) Gap() { s.Add(gap, (*layout.Page).Gap) }

// Write writes the screen in at most that many lines, for a terminal of that many columns; 0: ScreenWidth.
// Text is cut after two lines, a finding's advice after four.
func (s *Screen) Write(w io.Writer, most, columns int, colour bool) error {
	t := layout.Terminal(cmp.Or(columns, ScreenWidth), colour)
	t.Brief, t.Advice = 2, 4
	parts := slices.Clone(s.parts)
	for {
		p := new(layout.Page)
		for _, x := range parts {
			p.Append(x.Page)
		}
		least := 0
		for i, x := range parts {
			if x.rank >= parts[least].rank {
				least = i
			}
		}
		switch rank := parts[least].rank; {
		case t.Height(p) <= most || rank == 0:
			_, err := io.WriteString(w, t.Page(p))
			return err
		case rank < advice && t.Advice > t.Brief:
			t.Advice--
		default:
			parts = slices.Delete(parts, least, least+1)
		}
	}
}

// chosen returns a table of x's first column and the wanted others, in that order. The last ones are
// dropped if there is no room.
func chosen(x *layout.Table, wanted ...func(layout.Column) bool) *layout.Table {
	columns := []int{0}
	for _, want := range wanted {
		for i, c := range x.Columns {
			if want(c) && !slices.Contains(columns, i) {
				columns = append(columns, i)
			}
		}
	}
	some := new(layout.Table)
	for _, i := range columns {
		some.Columns = append(some.Columns, x.Columns[i])
	}
	some.Columns[0].Key = true
	for _, r := range x.Rows {
		var row []layout.Span
		for _, i := range columns {
			row = append(row, r[i])
		}
		some.Rows = append(some.Rows, row)
	}
	return some
}

// under matches the columns with one of the headings in a distribution's groups.
func under(group string, heads ...string) func(layout.Column) bool {
	return func(c layout.Column) bool {
		return strings.HasPrefix(c.Group, group) && slices.Contains(heads, c.Head)
	}
}

// screen is a run in short.
func (t *single) screen() *Screen {
	o, s := t.o, new(Screen)
	add := func(rank int, show ...func()) {
		s.Add(rank, func(p *layout.Page) {
			t.Page = p
			for _, f := range show {
				f()
			}
		})
	}
	all, _ := t.screenDistributions()
	rows := t.shownPercentiles(all)
	add(0, func() { t.verdict(rows) })
	if t.Review != nil {
		add(1, func() { t.reviewed(t.Review) })
	}
	add(0, t.broken)
	if says := saturated(t.r); says != "" {
		add(1, func() { t.Item(layout.Doubtful.Of(says)) })
	}
	add(1, t.reason)
	add(0, func() { t.objectives(true) })
	s.Gap()
	add(0, func() { t.Line(append(t.systemNamed(), plain(", "+t.measured()))...) })
	add(3, t.guaranteed)
	add(9, t.load)
	if t.r.Network != nil {
		add(7, t.networkMeans)
	}
	s.Gap()
	t.screenTables(s, add)
	if says := hostShare(t.r); says != "" {
		add(3, func() { t.Labelled("client side", plain(says)) })
	}
	if says := systemsPart(t.r); says != "" {
		add(2, func() { t.Labelled("system", plain(says)) })
	}
	s.Gap()
	add(0, func() {
		rates, _ := t.flows()
		t.Labelled("throughput", plain(strings.Join(rates, ", ")))
	})
	add(3, t.shortDrain)
	if m := t.r.Messages; sent(t.r) && (m.Sent != m.Scheduled || m.Confirmed != m.Sent) {
		add(7, t.sendings)
	}
	add(0, func() {
		t.Add(layout.Block{Form: layout.Labelled, Mark: plain("loss"), Spans: []layout.Span{losses(t.r)}, Entire: true})
	})
	if t.r.MessagesAll.Pending > 0 {
		add(2, func() { t.Labelled("", layout.Doubtful.Of(t.drained())) })
	}
	add(1, t.outages)
	if n := len(t.r.Faults) - mostOutages; n > 0 {
		add(3, func() { t.Labelled("", plain("and "+quantity.Counted(uint64(n), "more fault", "more faults"))) })
	}
	if t.r.Pause != nil {
		add(1, t.paused)
	}
	if t.r.Churn != nil {
		add(4, t.churned)
	}
	add(2, t.members)
	add(2, t.clocks, t.gaps)
	full := saturated(t.r) != ""
	if disturbed := t.finds(judge.CheckLateness, judge.CheckRate, judge.CheckFigures, judge.CheckCPU, judge.CheckHiccups, judge.CheckSteal, judge.CheckThrottling, judge.CheckSwap); disturbed || full {
		rank := 8
		if disturbed && t.r.Verdict.Status != result.Valid { // it explains the verdict
			rank = 3
		}
		add(rank, func() { t.hosts(true) })
	}
	if t.r.Servers != nil && (full || len(t.r.Faults) > 0 || t.finds(judge.CheckCPU, judge.CheckSteady, judge.CheckBlocked)) {
		add(8, t.serversUsed)
	}
	if o.Dir != "" {
		if command, why := t.next(filepath.Join(o.Dir, result.FileScenario)); command != "" {
			add(0, func() { next(t.Page, command, why) })
		}
		add(0, func() { written(t.Page, o.Dir, partly(o.Partly)) })
	}
	return s
}

// written says where the files are, and how to show everything.
func written(p *layout.Page, dir, but string) {
	p.Line(plain("written to "), layout.Strong.Of(dir), plain(but))
	allFigures(p, dir)
}

// allFigures returns the command that shows everything about a run, or several.
func allFigures(p *layout.Page, dir string) {
	p.Add(layout.Block{Form: layout.Labelled, Mark: plain("details"), Spans: []layout.Span{plain("weir report " + Quoted(dir) + " --full")}, Whole: true})
}

// reason writes the most important finding, with its advice.
func (t *single) reason() {
	if checks := judge.Deciding(&t.r.Verdict); len(checks) > 0 {
		c := checks[0]
		t.Add(layout.Block{Form: layout.Item, Spans: []layout.Span{plain(foundBy(c))}, Under: c.Why})
	}
}

// screenDistributions returns the distributions of a screen, and the group of the main one.
func (t *single) screenDistributions() (all []distribution, headline string) {
	groups := []string{"send", "e2e"}
	if t.r.Latency.RTT.Response != nil || t.r.Latency.RTT.Service != nil {
		groups = []string{"rtt", "e2e"}
	}
	for _, d := range distributions(t.r) {
		if d.interval && slices.Contains(groups, d.group) {
			all = append(all, d)
			if headline = d.group; d.group == "rtt" {
				headline = "rtt"
			}
		}
	}
	return all, headline
}

// screenTables adds the main percentiles, and for a profile each stage.
func (t *single) screenTables(s *Screen, add func(int, ...func())) {
	all, headline := t.screenDistributions()
	if len(all) == 0 {
		add(0, func() { t.latency() })
		return
	}
	stages := t.r.Stages
	few := len(stages) > 1
	var figures []string
	add(0, func() {
		rows := t.shownPercentiles(all)
		for _, d := range all {
			for _, p := range rows {
				figures = append(figures, d.verdictName(p))
			}
		}
		t.table = t.percentiles(all, rows)
		t.Table(t.table)
	})
	if few {
		shown := stages[:min(len(stages), mostStages)]
		s.Gap()
		add(3, func() {
			x := t.stageTable(shown)
			t.Table(chosen(x, under("messages", "offered", "confirmed", arrived(t.r)), under(headline, "50 %", "99 %", "max")))
			if n := len(stages) - len(shown); n > 0 {
				t.Note(fmt.Sprintf("and %s", quantity.Counted(n, "further stage", "further stages")))
			}
		})
	}
	add(2, func() {
		if says := whyNot(t.r, figures); marked(t.table, "!") && len(says) > 0 {
			of := ""
			if n := len(markedFigures(t.r, figures)); n > 1 {
				of = "the worst is "
			}
			t.Note("! " + of + says[0])
		}
	})
	add(4, func() { t.shortInterval(all) })
	rank := 5
	if t.r.Verdict.Status == result.Invalid && slices.ContainsFunc(t.r.Agents, func(a result.Agent) bool { return a.Missing }) {
		rank = 2
	}
	add(rank, func() { withheld(t.Page, t.table, t.r) })
	add(5, func() { tooFew(t.Page, t.table) })
}

const mostStages = 5

// shownPercentiles returns the percentiles of a screen: those requested, else the usual ones as far as
// known; always the largest.
func (t *single) shownPercentiles(all []distribution) []float64 {
	known := t.rows(all)
	wanted := []float64{50, 90, 99, 99.9, 100}
	if len(t.r.Stages) > 1 {
		wanted = []float64{50, 99, 100}
	}
	if len(t.o.Percentiles) > 0 {
		wanted = append(slices.Clone(known[max(0, len(known)-len(wanted)):]), 100)
	}
	return slices.DeleteFunc(known, func(p float64) bool { return !slices.Contains(wanted, p) })
}

const mostRows = 8

// overviewScreen is several runs in short.
func overviewScreen(entries []Entry, o Options) *Screen {
	if len(o.Searches) == 1 {
		return o.Searches[0].Screen()
	}
	s := new(Screen)
	add := func(rank int, show func(p *layout.Page)) { s.Add(rank, show) }
	add(0, func(p *layout.Page) { tally(p, entries) })
	s.Gap()
	x, several := repeatedScenarios(entries), "scenario"
	if x == nil {
		x, several = overviewTable(entries), "run"
		group := headlineOf(x)
		x = chosen(x, under("", "verdict"), lastOf(x, "rate"), under(group, "p50", "p99"), under("whole run", "lost"),
			under("whole run", "failed", "unknown", "corrupted", "misrouted"), under("", "objectives"))
	}
	more := len(x.Rows) - mostRows
	x.Rows = x.Rows[:min(len(x.Rows), mostRows)]
	add(0, func(p *layout.Page) {
		p.Table(x)
		if more > 0 {
			p.Note("and " + quantity.Counted(uint64(more), "more "+several, "more "+several+"s"))
		}
	})
	add(5, func(p *layout.Page) { marksOf(p, x, entries) })
	add(4, func(p *layout.Page) { differences(p, entries, true) })
	s.Gap()
	add(2, func(p *layout.Page) {
		for _, line := range o.Shown[:min(len(o.Shown), mostSides)] {
			label := min(len(line), 13)
			p.Labelled(strings.TrimSpace(line[:label]), plain(line[label:]))
		}
	})
	add(0, func(p *layout.Page) { summary(p, entries, o) })
	add(1, func(p *layout.Page) { reviews(p, entries) })
	add(0, func(p *layout.Page) {
		if o.Dir != "" {
			written(p, o.Dir, ", with a folder for each run")
			return
		}
		p.Labelled("details", plain("--full: the whole table, and each run"))
	})
	return s
}

// headlineOf is the group of the most informative columns: the response that most runs have.
func headlineOf(x *layout.Table) string {
	most, group := 0, ""
	for _, g := range []string{"rtt response", "e2e response", "send response", "e2e service", "send service"} {
		for i, c := range x.Columns {
			if c.Group != g || c.Head != "p99" {
				continue
			}
			n := 0
			for _, r := range x.Rows {
				if r[i].Text != "-" {
					n++
				}
			}
			if n > most {
				most, group = n, g
			}
		}
	}
	return group
}

// lastOf matches the last column of a group.
func lastOf(x *layout.Table, group string) func(layout.Column) bool {
	head := ""
	for _, c := range x.Columns {
		if c.Group == group {
			head = c.Head
		}
	}
	return under(group, head)
}

// repeatedScenarios returns a row for each scenario with the medians of its runs; nil if some run belongs
// to no repeated scenario.
func repeatedScenarios(entries []Entry) *layout.Table {
	all := repeatedIn(entries)
	n := 0
	for _, s := range all {
		n += len(s.runs) + s.invalid + s.interrupted
	}
	if len(all) < 2 || n < len(entries) {
		return nil
	}
	has := map[string]bool{}
	for _, f := range repeatedFigures(all[0].runs) {
		has[f.name] = true
	}
	names := []string{"confirmed"}
	if rate := arrived(all[0].runs[0].Result); has[rate] {
		names[0] = rate
	}
	for _, group := range []string{"rtt", "e2e", "send"} {
		for _, p := range []float64{50, 99} {
			if name := group + " " + percent(p); has[name] {
				names = append(names, name)
			}
		}
		if len(names) > 1 {
			break
		}
	}
	last := names[len(names)-1]
	x := &layout.Table{Columns: []layout.Column{{Head: "scenario", Kind: layout.Word, Key: true, Tone: layout.Strong}, {Head: "runs", Tone: layout.Strong}}}
	for _, name := range names {
		x.Columns = append(x.Columns, layout.Column{Group: "median", Head: name, Tone: layout.Strong})
	}
	x.Columns = append(x.Columns, layout.Column{Group: last, Head: "lowest", Tone: layout.Faint}, layout.Column{Group: last, Head: "highest", Tone: layout.Faint})
	for _, s := range all {
		row := []layout.Span{plain(layout.Shortened(s.name, longestRow)), plain(quantity.Count(uint64(len(s.runs))))}
		ends := []layout.Span{plain("-"), plain("-")}
		for _, name := range names {
			cell := plain("-")
			for _, f := range repeatedFigures(s.runs) {
				if f.name == name {
					median, lowest, highest := result.Spread(f.values)
					cell = plain(median.Text(f.write))
					if name == last {
						ends = []layout.Span{layout.Faint.Of(lowest.Text(f.write)), layout.Faint.Of(highest.Text(f.write))}
					}
				}
			}
			row = append(row, cell)
		}
		x.Rows = append(x.Rows, append(row, ends...))
	}
	return x
}

// longestRow is how much of a scenario's name a screen shows.
const longestRow = 24
