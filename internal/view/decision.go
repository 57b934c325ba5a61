package view

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A Parting says that the runs were grouped into sides by a key. In the zero value each argument is a side.
type Parting struct {
	Given []string // folders as the user gave them
	By    string
	Flags string // other flags of the user, as in " --allow-different"

	// Course returns the course of a run by its folder as the comparison names it; nil if it cannot be
	// drawn. Without Course no run is drawn over time.
	Course func(dir string) *Course

	Link Linking  // HTML: to the pages of the runs
	Left []string // HTML: what is not compared, and why
}

// Conclusion writes the result of a comparison in short, and the commands to run next if it is undecided.
func Conclusion(p *layout.Page, found *compare.Comparison, parting Parting) {
	c := comparison{p, found}
	c.Gap()
	c.answer(len(found.Sides))
	c.next(parting)
}

// answer says for each of the first sides whether it differs from the base: yes, no or undecided. It quotes
// the most informative figure.
func (c comparison) answer(most int) {
	sides := c.Sides[1:]
	for i := range sides[:min(len(sides), most)] {
		word, text := c.decision(i + 1)
		c.Line(layout.Strong.Of(word), plain(": "+text))
	}
	if n := len(sides) - most; n > 0 {
		c.Note("and " + quantity.Counted(uint64(n), "more side", "more sides"))
	}
}

// rank orders figures by how informative they are: end-to-end latencies first, each by its 99th percentile,
// then rates, then errors, then resource use. For closed loops, which have service times only, rates come
// first.
func rank(f *compare.Figure) int {
	families := []string{"e2e", "rtt", "send", "system", "throughput", "service", "outcomes", "resources"}
	head, kind, _ := strings.Cut(f.Family, ".")
	if kind == "service" || kind == "system" {
		head = kind
	}
	names := []string{"p99", "p50", "p99.9", "max", "received", "confirmed", "lost"}
	name := slices.Index(names, f.Name)
	if name < 0 {
		name = len(names)
	}
	return slices.Index(families, head)*len(families)*len(names) + name
}

// closed reports whether the runs have no response times: their service times are measured at saturation
// and say nothing about latency.
func (c comparison) closed() bool {
	has := func(kind string) bool {
		return slices.ContainsFunc(c.Figures, func(f compare.Figure) bool { return strings.HasSuffix(f.Family, kind) })
	}
	return has(".service") && !has(".response")
}

// deciding returns the figures that answer whether sides differ, most informative first. Resource use and
// times of closed loops count only if nothing else was selected.
func (c comparison) deciding() []compare.Figure {
	out := slices.DeleteFunc(slices.Clone(c.Figures), func(f compare.Figure) bool {
		return f.Family == "resources" || f.Unit == compare.UnitTime && c.closed()
	})
	if len(out) == 0 {
		out = slices.Clone(c.Figures)
	}
	slices.SortStableFunc(out, func(a, b compare.Figure) int { return rank(&a) - rank(&b) })
	return out
}

// decision returns whether a side differs from the base, and how.
func (c comparison) decision(side int) (word, text string) {
	name, base := c.called(side), c.called(0)
	figures := c.deciding()
	var worse, better *compare.Figure
	found := map[compare.Verdict]int{}
	for i := range figures {
		f := &figures[i]
		v := f.Sides[side].Change.Verdict
		found[v]++
		switch {
		case v == compare.Worse && worse == nil:
			worse = f
		case v == compare.Better && better == nil:
			better = f
		}
	}
	shown := fmt.Sprintf(", shown at %s %%", percentText(1-c.Alpha))
	switch {
	case worse != nil && better != nil:
		return "yes", fmt.Sprintf("%s %s: %s; but it %s: %s%s", name, verb(worse, true), c.shifted(worse, side), verb(better, false), c.shifted(better, side), shown)
	case worse != nil:
		return "yes", fmt.Sprintf("%s %s: %s%s", name, verb(worse, true), c.shifted(worse, side), shown)
	case better != nil:
		return "yes", fmt.Sprintf("%s %s: %s%s", name, verb(better, false), c.shifted(better, side), shown)
	}
	switch {
	case found[compare.NeedsRuns] > 0:
		return "undecided", fmt.Sprintf("too few runs to tell %s from %s: %s%s", name, base, c.quoted(figures, side), c.beside(figures, side))
	case found[compare.NothingShown] > 0:
		return "undecided", fmt.Sprintf("the runs differ too much to tell %s from %s: %s%s", name, base, c.quoted(figures, side), c.beside(figures, side))
	}
	within := ""
	if c.Band > 0 {
		within = " by more than " + bandText(c.Band)
	}
	return "no", fmt.Sprintf("%s does not differ from %s%s in any of %s%s", name, base, within, quantity.Counted(len(figures), "figure", "figures"), shown)
}

// beside names decided figures of resource use where the main figures are undecided.
func (c comparison) beside(deciding []compare.Figure, side int) string {
	text := ""
	for _, x := range []struct {
		word    string
		verdict compare.Verdict
	}{{"Worse", compare.Worse}, {"Better", compare.Better}} {
		var names []string
		for _, f := range c.Figures {
			if f.Sides[side].Change.Verdict == x.verdict && !slices.ContainsFunc(deciding, func(d compare.Figure) bool { return d.Family == f.Family && d.Name == f.Name }) {
				names = append(names, shortName(&f))
			}
		}
		if n := len(names) - mostBeside; n > 1 {
			names = append(names[:mostBeside], fmt.Sprintf("%d more", n))
		}
		if len(names) > 0 {
			text += ". " + x.word + ": " + strings.Join(names, ", ")
		}
	}
	return text
}

const mostBeside = 3

// figureName is a figure's name where its family is not shown.
func figureName(family, name string) string {
	if slices.Contains([]string{"throughput", "resources", "outcomes"}, family) {
		return name
	}
	group, part, _ := strings.Cut(family, ".")
	if part == "system" {
		group += " " + part
	}
	return group + " " + name
}

func shortName(f *compare.Figure) string { return figureName(f.Family, f.Name) }

// called is a side's short name in the answer: the key and value that selected its runs, as in
// load.in_flight=8, or the driver alone. Sides that are folders are named by their drivers, by the only key
// in which their runs differ, or by letter.
func (c comparison) called(side int) string {
	s := c.Sides[side]
	for _, x := range c.Sides {
		if key, _, ok := strings.Cut(x.Given, "="); !ok || !partingKey.MatchString(key) {
			return cmp.Or(c.apart(side), s.Side)
		}
	}
	return strings.TrimPrefix(s.Given, "system.driver=")
}

// apart returns what distinguishes the runs of a side from those of every other side: their driver, or the
// value of the only difference; "" if nothing does.
func (c comparison) apart(side int) string {
	for _, d := range c.Differences {
		if d.Name != "driver" && len(c.Differences) > 1 || len(d.Sides) != len(c.Sides) {
			continue
		}
		seen := map[string]bool{}
		for _, values := range d.Sides {
			if len(values) != 1 || seen[values[0]] || layout.Length(values[0]) > mostCalled {
				return ""
			}
			seen[values[0]] = true
		}
		if d.Name == "driver" {
			return d.Sides[side][0]
		}
		return d.Name + "=" + d.Sides[side][0]
	}
	return ""
}

// mostCalled is the longest value that can name a side.
const mostCalled = 30

// partingKey matches a scenario key as used to name sides.
var partingKey = regexp.MustCompile(`^[a-z][a-z_-]*(\.[a-z_-]+)*$`)

// quoted returns the change of the most informative undecided figure.
func (c comparison) quoted(figures []compare.Figure, side int) string {
	for i := range figures {
		if v := figures[i].Sides[side].Change.Verdict; v == compare.NeedsRuns || v == compare.NothingShown {
			return c.shifted(&figures[i], side)
		}
	}
	return "no figure can be compared"
}

func verb(f *compare.Figure, worse bool) string {
	words := map[string][2]string{compare.UnitTime: {"is slower", "is faster"}, compare.UnitRate: {"carries less", "carries more"}, compare.UnitCores: {"uses more", "uses less"}, compare.UnitBytes: {"uses more", "uses less"}}[f.Unit]
	if words[0] == "" {
		words = [2]string{"has more messages " + f.Name, "has fewer messages " + f.Name}
	}
	if worse {
		return words[0]
	}
	return words[1]
}

// shifted is the difference of a side's figure from the base's, with its interval.
func (c comparison) shifted(f *compare.Figure, side int) string {
	s := shiftOf(f, side)
	text := shortName(f) + " " + s.text()
	switch {
	case s.lo != nil && s.hi != nil:
		text += fmt.Sprintf(" (%s to %s%s)", s.write(*s.lo), s.write(*s.hi), s.unit)
	case s.lo != nil:
		text += fmt.Sprintf(" (at least %s%s)", s.write(*s.lo), s.unit)
	case s.hi != nil:
		text += fmt.Sprintf(" (at most %s%s)", s.write(*s.hi), s.unit)
	}
	return text
}

func signed(v float64, unit string) string {
	sign := "+"
	switch {
	case v < 0:
		sign = "-"
	case v == 0:
		sign = ""
	}
	return sign + unitText(unit)(math.Abs(v))
}

// next prints the commands that execute the runs needed for a decision. There are none for a side that is
// not one folder of runs, nor for grouped runs that do not begin with such a folder: their user knows how
// they were made.
func (c comparison) next(parting Parting) {
	more, open := 0, false
	for i := range c.Sides[1:] {
		if word, _ := c.decision(i + 1); word != "undecided" {
			continue
		}
		open = true
		for _, f := range c.Figures {
			more = max(more, f.Sides[i+1].Change.MoreRuns)
		}
	}
	if !open {
		c.doubts()
		return
	}
	known := more > 0
	if !known {
		more = fewestMore
	}
	given := parting.Given
	if parting.By == "" {
		given = nil
		for _, x := range c.Sides {
			given = append(given, x.Given)
		}
	}
	command := "weir compare"
	for _, g := range given {
		if !plainPath.MatchString(g) || strings.Contains(g, ",") {
			return
		}
		command += " " + Quoted(g)
	}
	if parting.By != "" {
		command += " --by " + Quoted(parting.By)
	}
	command += parting.Flags
	var lines []string
	folders := c.folders()
	until := ""
	if !known && len(folders) == 1 && c.parted() && c.Band > 0 {
		until = c.open()
	}
	for _, f := range folders {
		if until != "" {
			lines = append(lines, fmt.Sprintf("weir run --append %s --until-shown %s=%s%%", Quoted(f), until, percentText(c.Band)))
			continue
		}
		lines = append(lines, fmt.Sprintf("weir run --append %s --repeat %d", Quoted(f), more))
	}
	if len(lines) == 0 {
		return
	}
	lines = append(lines, command)
	for i, l := range lines {
		label := ""
		if i == 0 {
			label = "next"
		}
		c.Add(layout.Block{Form: layout.Labelled, Mark: plain(label), Spans: []layout.Span{plain(l)}, Whole: true})
	}
	if until != "" {
		c.Labelled("", plain(c.reach()))
	}
}

// reach says how many rounds --until-shown may take, and whether these runs let expect that they suffice: an
// interval narrows with the square root of the number of runs.
func (c comparison) reach() string {
	runs, half := compare.MostRuns, 0.0
	for i, x := range c.Sides {
		runs = min(runs, x.Used)
		if i == 0 {
			continue
		}
		for _, f := range c.deciding() {
			if s := shiftOf(&f, i); f.Sides[i].Change.Verdict == compare.NothingShown && s.lo != nil && s.hi != nil && s.unit == " %" {
				half = max(half, (*s.hi-*s.lo)/200)
				break // the figure that is asked for
			}
		}
	}
	says := fmt.Sprintf("at most %d more rounds", max(0, compare.MostRuns-runs))
	if needs := float64(runs) * (half / c.Band) * (half / c.Band); needs > float64(compare.MostRuns) {
		says += fmt.Sprintf(", probably too few for %s %% on this host: weir doctor", percentText(c.Band))
	}
	return says
}

// doubts points to the reasons if runs that count are SUSPECT.
func (c comparison) doubts() {
	for _, x := range c.Sides {
		for _, r := range x.Runs {
			if r.Why == "" && r.Verdict == result.Suspect && r.Dir != "" {
				next(c.Page, "weir report "+Quoted(r.Dir), "why this run is SUSPECT")
				return
			}
		}
	}
}

// parted reports whether each side has the runs of its own scenario.
func (c comparison) parted() bool {
	all := map[string]int{}
	for i, x := range c.Sides {
		for _, r := range x.Runs {
			name := repeatOf.ReplaceAllString(r.Name, "")
			if side, ok := all[name]; ok && side != i {
				return false
			}
			all[name] = i
		}
	}
	return len(all) == len(c.Sides)
}

// repeatOf matches the suffix of a repeat's name.
var repeatOf = regexp.MustCompile(`-r[0-9]+$`)

// open names the most informative undecided figure in the syntax of an objective; "" if it has none.
func (c comparison) open() string {
	figures := c.deciding()
	for i := range figures {
		f := &figures[i]
		if !slices.ContainsFunc(f.Sides[1:], func(v compare.Values) bool { return v.Change.Verdict == compare.NothingShown }) {
			continue
		}
		switch f.Unit {
		case compare.UnitTime:
			return strings.TrimSuffix(f.Family, ".response") + "." + f.Name
		case compare.UnitRate:
			return f.Name + ".rate"
		}
	}
	return ""
}

// folders returns the parent folders of the compared runs, each once; nil if runs cannot be added to one of
// them. The runs of one folder alternate.
func (c comparison) folders() []string {
	var all []string
	for _, x := range c.Sides {
		for _, r := range x.Runs {
			f := filepath.Dir(r.Dir)
			if !plainPath.MatchString(f) || result.FolderNumber(r.Dir) == "" {
				return nil
			}
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// InTurns returns the commands that repeat two single runs alternately and compare them.
func InTurns(a, b string) []string {
	again := func(dir, to string) string {
		return "weir run " + Quoted(filepath.Join(dir, result.FileScenario)) + " --out turns/" + to + "$i"
	}
	return []string{
		fmt.Sprintf("for i in 1 2 3 4 5 6; do %s; %s; done", again(a, "a"), again(b, "b")),
		"weir compare 'turns/a*' 'turns/b*'",
	}
}

// fewestMore is how many further runs are advised if the number needed is not known.
const fewestMore = 6
