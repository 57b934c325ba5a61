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

// A Parting says that the runs of folders were parted into sides by a key. The zero value
// says that each side was given by itself.
type Parting struct {
	Given []string // the folders, as the user gave them
	By    string
	Flags string // " --allow-different": what else the user gave

	// Course gives the course of a run that a comparison names by its folder; nil for one
	// that cannot be drawn. Where there is none, no run is drawn over time.
	Course func(dir string) *Course
}

// Conclusion puts on a page what a comparison found, in short, and the commands that help
// where it decides nothing.
func Conclusion(p *layout.Page, found *compare.Comparison, parting Parting) {
	c := comparison{p, found}
	c.Gap()
	c.answer(len(found.Sides))
	c.next(parting)
}

// answer says for each of the first sides whether it differs from the base: yes, no or
// undecided. The figure that is quoted is the one that tells users most.
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

// rank orders figures by what they tell users: latencies from end to end first, each by
// its 99th percentile, then rates, then what went wrong, then what was used. Of closed
// loops, which have service times only, the rates come first.
func rank(f *compare.Figure) int {
	families := []string{"e2e", "rtt", "send", "throughput", "service", "outcomes", "resources"}
	head, kind, _ := strings.Cut(f.Family, ".")
	if kind == "service" {
		head = kind
	}
	names := []string{"p99", "p50", "p99.9", "max", "received", "confirmed", "lost"}
	name := slices.Index(names, f.Name)
	if name < 0 {
		name = len(names)
	}
	return slices.Index(families, head)*len(families)*len(names) + name
}

// closed reports whether the runs have no response: their service times are those at
// saturation, and say nothing about latency.
func (c comparison) closed() bool {
	has := func(kind string) bool {
		return slices.ContainsFunc(c.Figures, func(f compare.Figure) bool { return strings.HasSuffix(f.Family, kind) })
	}
	return has(".service") && !has(".response")
}

// deciding are the figures that answer whether sides differ, in the order in which they
// tell users most. What was used, and times of closed loops, do only where nothing else was
// chosen.
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

// decision says whether a side differs from the base, and how.
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

// beside names the figures that are decided where those that tell users most are not:
// what the sides used.
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

// figureName is what a figure is called where its family is not told.
func figureName(family, name string) string {
	if slices.Contains([]string{"throughput", "resources", "outcomes"}, family) {
		return name
	}
	group, _, _ := strings.Cut(family, ".")
	return group + " " + name
}

func shortName(f *compare.Figure) string { return figureName(f.Family, f.Name) }

// called is what a side is called in the answer: what its runs were chosen by, as
// load.in_flight=8, of drivers the name alone. Sides that are folders are called by their
// drivers, or by the only key in which their runs differ, or have their letters.
func (c comparison) called(side int) string {
	s := c.Sides[side]
	for _, x := range c.Sides {
		if key, _, ok := strings.Cut(x.Given, "="); !ok || !partingKey.MatchString(key) {
			return cmp.Or(c.apart(side), s.Side)
		}
	}
	return strings.TrimPrefix(s.Given, "system.driver=")
}

// apart is what the runs of a side have that those of each other side have not: their
// driver, or the value of the only difference; "" where there is no such thing.
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

// mostCalled is how long a value may be by which a side is called.
const mostCalled = 30

// partingKey is a key of a scenario, as sides that were parted by one are named.
var partingKey = regexp.MustCompile(`^[a-z][a-z_-]*(\.[a-z_-]+)*$`)

// quoted is the change of the figure that tells users most and is not decided.
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

// shifted is by how much a figure of a side lies above the base's, with the interval.
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

// next says which commands make the runs that decide. Sides that are not one folder of
// runs have none, nor has what was parted but does not begin with such a folder: their user
// knows how they were made.
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
}

// doubts shows the way to the reasons, where runs that count are SUSPECT.
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

// parted reports whether each side has the runs of a scenario of its own.
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

// repeatOf is how the name of a repeat ends.
var repeatOf = regexp.MustCompile(`-r[0-9]+$`)

// open names the figure that tells users most of those that are not decided, as an
// objective names it; "" where it has no such name.
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

// folders returns those that hold the folders of the runs compared, each once; nil where
// more runs cannot be added to one of them. The runs of one folder take turns.
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

// InTurns are the commands that repeat two single runs in turns, and compare them.
func InTurns(a, b string) []string {
	again := func(dir, to string) string {
		return "weir run " + Quoted(filepath.Join(dir, result.FileScenario)) + " --out turns/" + to + "$i"
	}
	return []string{
		fmt.Sprintf("for i in 1 2 3 4 5 6; do %s; %s; done", again(a, "a"), again(b, "b")),
		"weir compare 'turns/a*' 'turns/b*'",
	}
}

// fewestMore is how many more runs are advised where it is not known how many decide.
const fewestMore = 6
