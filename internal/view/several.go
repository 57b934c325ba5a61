package view

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// scenarios compares the scenarios of several runs with the first one, however few runs each has. A run that
// repeats nothing is a scenario of its own. The comparison is nil if the runs have none; otherwise the error
// says why its changes mean nothing.
func scenarios(entries []Entry) (*comparison, error) {
	names, repeated := labels(entries), repeatedIn(entries)
	o := compare.Usual()
	o.Few = true
	var sides []compare.Side
	for i, e := range entries {
		name := names[i]
		if slices.ContainsFunc(repeated, func(s repeatedSeries) bool { return s.has(e) }) {
			name = layout.Shortened(e.Result.Run.Scenario(), longestLabel)
		}
		name = compare.KeyName + "=" + name
		at := slices.IndexFunc(sides, func(s compare.Side) bool { return s.Given == name })
		if at < 0 {
			at = len(sides)
			sides = append(sides, compare.Side{Given: name})
		}
		var missing []string
		if len(e.Environment.Hosts) == 0 {
			missing = []string{result.FileEnvironment}
		}
		sides[at].Runs = append(sides[at].Runs, compare.RunOf(e.Entry, missing))
		o.Recorded = o.Recorded || e.Totals == nil
	}
	empty := quantity.Counted(uint64(len(sides)), "scenario has", "scenarios have")
	sides = slices.DeleteFunc(sides, func(s compare.Side) bool { return s.Lacks(o.Alpha) == compare.Side{}.Lacks(o.Alpha) })
	if len(sides) == 0 {
		return nil, fmt.Errorf("%s no run whose figures can be used", empty)
	}
	found, err := compare.Compare(sides, o)
	if errors.Is(err, compare.ErrDifferent) {
		o.AllowDifferent = true
		var also error
		if found, also = compare.Compare(sides, o); also != nil {
			return nil, also
		}
	}
	if found == nil {
		return nil, err
	}
	return &comparison{Page: new(layout.Page), Comparison: found}, err
}

// name is the name of a side for a table or a legend.
func (c comparison) name(side int) string {
	return strings.TrimPrefix(c.called(side), compare.KeyName+"=")
}

// headline returns the family of latencies that decides, "" if the runs have none in common.
func (c comparison) headline() string {
	figures := c.deciding()
	if i := slices.IndexFunc(figures, func(f compare.Figure) bool { return f.Unit == compare.UnitTime }); i >= 0 {
		return figures[i].Family
	}
	return ""
}

// figure finds a figure, nil if some run lacks it.
func (c comparison) figure(family, name string) *compare.Figure {
	i := slices.IndexFunc(c.Figures, func(f compare.Figure) bool { return f.Family == family && f.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Figures[i]
}

// rate is the figure of the messages that arrived, or else of those confirmed; nil if the runs have neither.
func (c comparison) rate() *compare.Figure {
	return cmp.Or(c.figure("throughput", "received"), c.figure("throughput", "confirmed"))
}

// spread is the median over the runs of a side, beside it the lowest and the highest of them.
func spread(f *compare.Figure, side int) layout.Span {
	v := f.Sides[side]
	cell := plain(medianText(v, f.Unit))
	if v.Marked > 0 {
		cell.Tone = layout.Doubtful
	}
	if text := ranged(f, side); text != medianText(v, f.Unit) {
		cell.Beside = "[" + text + "]"
	}
	return cell
}

// ranged is the lowest and the highest of a side's runs.
func ranged(f *compare.Figure, side int) string {
	_, low, high := result.Spread(f.Sides[side].Values())
	from, to := low.Text(unitText(f.Unit)), high.Text(unitText(f.Unit))
	if from != to && strings.HasSuffix(to, "/s") {
		from = strings.TrimSuffix(from, "/s")
	}
	return quantity.Range(from, to)
}

// systems writes a table with a row for each side: what it did, what its confirmations meant, what it cost,
// and whether it differs from the first. different says why the last is left out; nil: it is not.
func (c comparison) systems(different error) {
	type column struct {
		layout.Column
		of func(side int) layout.Span
	}
	var all []column
	add := func(group, head string, kind layout.Kind, of func(side int) layout.Span) {
		all = append(all, column{layout.Column{Group: group, Head: head, Kind: kind, Tone: layout.Strong, Key: len(all) == 0}, of})
	}
	figure := func(group, head string, f *compare.Figure) {
		if f != nil {
			add(group, head, layout.Number, func(side int) layout.Span { return spread(f, side) })
		}
	}
	add("", "system", layout.Word, func(side int) layout.Span { return layout.Strong.Of(c.name(side)) })
	add("", "runs", layout.Word, func(side int) layout.Span { return plain(verdictsOf(c.Sides[side])) })
	if len(c.Sides) > 1 && different == nil {
		add("", "against "+c.name(0), layout.Prose, c.word)
	}
	add("", "a confirmation means", layout.Prose, func(side int) layout.Span { return plain(inWords(c.Sides[side].Guarantee)) })
	if f := c.rate(); f != nil {
		figure("", f.Name, f)
	}
	family := c.headline()
	for _, p := range []string{"p50", "p99", "p99.9"} {
		figure(familyTitle(family), p, c.figure(family, p))
	}
	for _, name := range []string{"lost", "failed"} {
		if f := c.figure("outcomes", name); f != nil && (name == "lost" || slices.ContainsFunc(f.Sides, func(v compare.Values) bool { return slices.Max(v.Runs) > 0 })) {
			add("", name, layout.Number, func(side int) layout.Span {
				cell := spread(f, side)
				if slices.Max(f.Sides[side].Runs) > 0 {
					cell.Tone = layout.Bad
				} else {
					cell.Beside = ""
				}
				return cell
			})
		}
	}
	if slices.ContainsFunc(c.Sides, func(s compare.SideSummary) bool { return s.CostPerMillion != nil }) {
		add("", "cost of a million", layout.Number, func(side int) layout.Span {
			costs := slices.Sorted(slices.Values(c.Sides[side].CostPerMillion))
			if len(costs) == 0 {
				return layout.Faint.Of("not known")
			}
			cell := plain(quantity.Significant(costs[len(costs)/2], false))
			if low, high := quantity.Significant(costs[0], false), quantity.Significant(costs[len(costs)-1], false); low != high {
				cell.Beside = "[" + quantity.Range(low, high) + "]"
			}
			return cell
		})
	}
	t := &layout.Table{Cards: true}
	for _, x := range all {
		t.Columns = append(t.Columns, x.Column)
	}
	for side := range c.Sides {
		var row []layout.Span
		for _, x := range all {
			row = append(row, x.of(side))
		}
		t.Rows = append(t.Rows, row)
	}
	c.Table(t)
	notes := []string{"median over the runs [lowest to highest]; one run counts once, however many messages it has"}
	if slices.ContainsFunc(c.Sides, func(s compare.SideSummary) bool { return s.CostPerMillion != nil }) {
		notes = append(notes, "the cost of a million messages is that of --price-per-hour at the measured rate: at a higher rate it is lower")
	} else {
		notes = append(notes, "the cost of a million messages is not known: run with --price-per-hour, the price of the servers")
	}
	if family == "" {
		notes = append(notes, "these runs have no latency in common: see each run")
	}
	if slices.ContainsFunc(c.Figures, func(f compare.Figure) bool {
		return slices.ContainsFunc(f.Sides, func(v compare.Values) bool { return v.Marked > 0 })
	}) {
		notes = append(notes, "! in some run something other than the system moved it by over a tenth")
	}
	for _, m := range c.Missing {
		if m.Family == family && slices.Contains([]string{"p50", "p99", "p99.9"}, m.Name) && m.Needs > 0 {
			notes = append(notes, fmt.Sprintf("no %s: it needs %s messages in each run, and the shortest has %s", m.Name, quantity.Count(m.Needs), quantity.Count(m.Has)))
		}
	}
	if different != nil {
		notes = append(notes, "no system is called better or worse: "+different.Error())
	}
	c.Note(notes...)
}

// recordedGuarantee matches what a comparison says of a guarantee.
var recordedGuarantee = regexp.MustCompile(`^(\S+), copies (\S+), stable (\S+)$`)

// inWords explains a guarantee of a comparison; as it is if the runs of a side have several.
func inWords(guarantee string) string {
	m := recordedGuarantee.FindStringSubmatch(guarantee)
	if m == nil {
		return guarantee
	}
	return meant(result.System{Guarantee: m[1], Copies: m[2], Stable: m[3]})
}

// word says in a few words how a side differs from the first.
func (c comparison) word(side int) layout.Span {
	if side == 0 {
		return layout.Faint.Of("the others are compared with it")
	}
	some := func(v compare.Verdict) string {
		names := c.decided(side, v)
		if n := len(names) - mostBeside; n > 0 {
			names = append(names[:mostBeside], fmt.Sprintf("%d more", n))
		}
		return strings.Join(names, ", ")
	}
	better, worse := some(compare.Better), some(compare.Worse)
	more, open := 0, false
	for _, f := range c.deciding() {
		change := f.Sides[side].Change
		more = cmp.Or(more, change.MoreRuns)
		open = open || change.Verdict == compare.NothingShown
	}
	switch {
	case better != "" && worse != "":
		return layout.Doubtful.Of("better: " + better + "; worse: " + worse)
	case better != "":
		return layout.Good.Of("better: " + better)
	case worse != "":
		return layout.Bad.Of("worse: " + worse)
	case more > 0:
		return layout.Doubtful.Of("undecided: " + quantity.Counted(more, "more run", "more runs") + " of each could show a difference")
	case open:
		return layout.Doubtful.Of("undecided: the runs differ too much among themselves; " + quantity.Counted(fewestMore, "more run", "more runs") + " of each may decide")
	}
	return plain("no difference")
}

// decided names the deciding figures in which a side has a verdict.
func (c comparison) decided(side int, v compare.Verdict) (names []string) {
	for _, f := range c.deciding() {
		if f.Sides[side].Change.Verdict == v {
			names = append(names, shortName(&f))
		}
	}
	return names
}

// spoken says what the table of systems shows, in sentences to read aloud.
func (c comparison) spoken(different error) {
	var says []string
	say := func(format string, args ...any) { says = append(says, fmt.Sprintf(format, args...)) }
	f, what, lowest := c.figure(c.headline(), "p99"), "", true
	if f != nil {
		what = "99 % of the messages took at most"
	} else if f = c.rate(); f != nil {
		what, lowest = "Messages "+f.Name+":", false
	}
	switch {
	case f == nil:
		say("These runs have no figure in common.")
	case len(c.Sides) == 1:
		say("%s %s with %s, the median of %s (%s).", what, strings.TrimPrefix(medianText(f.Sides[0], f.Unit), "!"), c.name(0), runs(c.Sides[0].Used), ranged(f, 0))
	default:
		order := make([]int, len(c.Sides))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if !lowest {
				a, b = b, a
			}
			return cmp.Compare(f.Sides[a].Median, f.Sides[b].Median)
		})
		var each []string
		for _, i := range order[:min(len(order), mostSides)] {
			each = append(each, strings.TrimPrefix(medianText(f.Sides[i], f.Unit), "!")+" with "+c.name(i))
		}
		if n := len(order) - mostSides; n > 0 {
			each = append(each, quantity.Counted(n, "other below", "others below"))
		}
		say("%s %s (medians over runs).", what, and(each))
		if different == nil {
			says = append(says, c.certain(f))
		}
	}
	if f != nil && slices.ContainsFunc(f.Sides, func(v compare.Values) bool { return v.Marked > 0 }) {
		say("Do not quote these figures: in some run something other than the system moved them by over a tenth.")
	}
	c.Add(layout.Block{Form: layout.Status, Spans: []layout.Span{plain(strings.Join(says, " "))}})
	says = nil
	if len(c.Sides) > 1 {
		if !slices.ContainsFunc(c.Sides, func(s compare.SideSummary) bool { return s.Guarantee != c.Sides[0].Guarantee }) {
			say("A confirmation means the same with all: %s.", inWords(c.Sides[0].Guarantee))
		}
	}
	if lost := c.figure("outcomes", "lost"); lost != nil {
		var who []string
		for i, v := range lost.Sides {
			if n := len(slices.DeleteFunc(slices.Clone(v.Runs), func(x float64) bool { return x == 0 })); n > 0 {
				who = append(who, fmt.Sprintf("%s in %d of %s", c.name(i), n, runs(len(v.Runs))))
			}
		}
		if len(who) == 0 {
			say("No message was lost.")
		} else {
			says = append(says, "Messages were lost: "+strings.Join(who, ", ")+".")
		}
	}
	c.Say(strings.Join(says, " "))
}

// certain says whether the sides differ from the first in a figure, and where others say otherwise.
func (c comparison) certain(f *compare.Figure) string {
	found := map[string][]string{}
	more := 0
	var others []string
	for i := range c.Sides[1:] {
		change := f.Sides[i+1].Change
		more = max(more, change.MoreRuns)
		word := map[compare.Verdict]string{compare.Better: "better", compare.Worse: "worse", compare.NoChange: "no different"}[change.Verdict]
		found[word] = append(found[word], c.name(i+1))
		var but []string
		for _, v := range []compare.Verdict{compare.Better, compare.Worse} {
			switch names := c.decided(i+1, v); {
			case len(names) == 0 || v == change.Verdict:
			case len(names) == 1:
				but = append(but, string(v)+" in "+names[0])
			default:
				but = append(but, fmt.Sprintf("%s in %d figures, such as %s", v, len(names), names[0]))
			}
		}
		if len(but) > 0 {
			others = append(others, c.name(i+1)+" is "+strings.Join(but, ", and "))
		}
	}
	var parts []string
	for _, word := range []string{"better", "worse", "no different"} {
		if who := found[word]; who != nil {
			parts = append(parts, and(who)+map[bool]string{true: " is ", false: " are "}[len(who) == 1]+word+" in "+shortName(f))
		}
	}
	if who := found[""]; who != nil {
		open := "whether " + and(who) + map[bool]string{true: " differs", false: " differ"}[len(who) == 1] + " in " + shortName(f) + " is undecided"
		if more > 0 {
			open += ", and takes at least " + quantity.Counted(more, "more run", "more runs") + " of each"
		}
		parts = append(parts, open)
	}
	if len(others) > 0 {
		parts = append(parts, "but "+strings.Join(others, ", and "))
	}
	return "Compared with " + c.name(0) + ", " + strings.Join(parts, "; ") + "."
}

// used writes a table of what the servers of each side, and weir, used.
func (c comparison) used() {
	t := &layout.Table{Columns: columns("system"), Cards: true}
	var figures []*compare.Figure
	for i := range c.Figures {
		if f := &c.Figures[i]; f.Family == "resources" {
			figures = append(figures, f)
			t.Columns = append(t.Columns, layout.Column{Head: f.Name, Tone: layout.Strong})
		}
	}
	if len(figures) == 0 {
		return
	}
	for side := range c.Sides {
		row := []layout.Span{plain(c.name(side))}
		for _, f := range figures {
			row = append(row, spread(f, side))
		}
		t.Rows = append(t.Rows, row)
	}
	c.Gap()
	c.Chapter("hosts and servers")
	c.Table(t)
}
