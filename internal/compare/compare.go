// Package compare determines how the runs of one side differ from those of another, and how certainly. The
// unit of observation is the run, not the message: a million messages of one run describe that run very
// well, but say nothing about the next run of the same kind. It reads result folders and connects to
// nothing.
package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Schema is the JSON format of a Comparison; docs/formats/compare.md describes it.
const Schema = "weir.compare/v1"

// Errors of Compare.
var (
	// ErrDifferent says that the runs differ in what makes a comparison meaningless.
	ErrDifferent = errors.New("different things were measured")
	// ErrTooFew says that a side has too few runs to show any difference.
	ErrTooFew = errors.New("too few runs")
	// ErrFigure says that a chosen figure cannot be compared.
	ErrFigure = errors.New("cannot be compared")
	// ErrSameRun says that a run is on two sides, or twice on one.
	ErrSameRun = errors.New("counts as one run only")
)

// Options define what counts as a difference.
type Options struct {
	Alpha          float64 // accepted probability of a false claim, per family of figures
	Band           float64 // relative changes up to this are no change: 0.05 is ±5 %; 0: no band
	AllowDifferent bool    // compare even if different things were measured
	Few            bool    // take any number of sides and of runs, and say how many more runs a claim takes
	Recorded       bool    // the runs have no samples: shift functions come from the percentiles of their records, without merged ones

	// Figures are the keys of the figures to compare (Figure.Key), with one correction over all of them;
	// nil: all figures of the runs, with one correction per family.
	Figures []string
}

// A Run is one run of a side: its Record, or its files, from which it is made. Unknown fields are empty.
type Run struct {
	Dir         string  // folder as shown
	Record      *Record // nil: it is made from Result, Scenario and Environment
	Result      *result.Result
	Scenario    []byte                     // its scenario.yaml
	Environment *result.Environment        // its environment.json; nil: unknown
	Counts      map[string]*measure.Counts // compared distributions, by tag; nil: unknown
}

// RunOf converts a loaded run, without its missing files.
func RunOf(e result.Entry, missing []string) Run {
	r := Run{Dir: e.Dir, Result: e.Result, Scenario: e.Scenario, Counts: compared(e.Totals)}
	if !slices.Contains(missing, result.FileEnvironment) {
		r.Environment = &e.Environment
	}
	return r
}

// A Side is a set of runs to compare with another side's.
type Side struct {
	Given string // what the user called it
	Runs  []Run
}

// A Comparison is what Compare found.
type Comparison struct {
	Schema      string          `json:"schema"`
	Weir        string          `json:"weir"` // version that compared
	Alpha       float64         `json:"alpha"`
	Band        float64         `json:"band"`
	Chosen      []string        `json:"chosen,omitempty"` // keys of the chosen figures; absent: all are compared
	Sides       []SideSummary   `json:"sides"`            // the first is the base
	Differences []Difference    `json:"differences"`
	Warnings    []string        `json:"warnings"`
	Figures     []Figure        `json:"figures"`
	Missing     []Missing       `json:"missing"`
	Shifts      []ShiftFunction `json:"shift_functions"`
}

// A SideSummary describes a side and its findings.
type SideSummary struct {
	Side      string       `json:"side"` // A, B and so on
	Given     string       `json:"given"`
	System    string       `json:"system"`    // of the usable runs, joined by semicolons
	Guarantee string       `json:"guarantee"` // what a confirmation meant, likewise
	Runs      []RunSummary `json:"runs"`
	Used      int          `json:"used"`            // number of usable runs
	Tally     *Tally       `json:"tally,omitempty"` // of its figures; absent for the base

	CostPerMillion []float64 `json:"cost_per_million,omitempty"` // of messages, in each usable run; absent unless all of them know it
}

// A RunSummary is one run of a side.
type RunSummary struct {
	Dir     string        `json:"dir"`
	Name    string        `json:"name"`
	Verdict result.Status `json:"verdict"`
	Why     string        `json:"left_out,omitempty"` // why it is not used; absent: it is
}

// A Tally counts figures by verdict.
type Tally struct {
	Worse        int `json:"worse"`
	Better       int `json:"better"`
	NoChange     int `json:"no_change"`
	NothingShown int `json:"nothing_shown"`
	NeedsRuns    int `json:"needs_runs"`
}

// mostSides is the number of letters.
const mostSides = 26

// Compare compares every side with the first. The error wraps ErrTooFew, ErrDifferent, ErrFigure or
// ErrSameRun; all errors are joined.
func Compare(sides []Side, o Options) (*Comparison, error) {
	least := 2
	if o.Few {
		least = 1
	}
	if len(sides) < least || len(sides) > mostSides {
		return nil, fmt.Errorf("comparing %d sides: a comparison has %d to %d", len(sides), least, mostSides)
	}
	sides = slices.Clone(sides)
	for i := range sides {
		sides[i].Runs = Recorded(sides[i].Runs)
	}
	c := &Comparison{Schema: Schema, Alpha: o.Alpha, Band: o.Band, Chosen: o.Figures, Differences: []Difference{}, Warnings: []string{}, Missing: []Missing{}, Shifts: []ShiftFunction{}}
	errs := []error{same(sides)}
	used := make([][]Run, len(sides))
	for i, s := range sides {
		summary, runs := usable(letter(i), s)
		c.Sides, used[i] = append(c.Sides, summary), runs
		if !o.Few || summary.Used == 0 {
			errs = append(errs, enough(summary, o.Alpha))
		}
	}
	c.Differences = differences(used)
	if !o.AllowDifferent {
		errs = append(errs, refused(c.Differences))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := c.compare(used, o); err != nil {
		return nil, err
	}
	for _, f := range shiftFunctions(used, o.Recorded) {
		if len(o.Figures) == 0 || slices.ContainsFunc(c.Figures, func(x Figure) bool { return x.Family == f.Family }) {
			c.Shifts = append(c.Shifts, f)
		}
	}
	c.warn(used, o.Recorded)
	return c, nil
}

// letter names the i-th side.
func letter(i int) string { return string(rune('A' + i)) }

// same refuses a run that is given twice.
func same(sides []Side) error {
	var errs []error
	type place struct{ side, dir string }
	seen := map[string]place{}
	for i, s := range sides {
		for _, r := range s.Runs {
			id := r.Record.ID
			if id == "" {
				id = "in " + r.Dir
			}
			was, twice := seen[id]
			switch {
			case twice && was.dir == r.Dir && was.side == letter(i):
				errs = append(errs, fmt.Errorf("%s is twice on side %s: it %w", r.Dir, was.side, ErrSameRun))
			case twice && was.dir == r.Dir:
				errs = append(errs, fmt.Errorf("%s is on side %s and on side %s: it %w", r.Dir, was.side, letter(i), ErrSameRun))
			case twice:
				errs = append(errs, fmt.Errorf("%s (side %s) is a copy of %s (side %s): it %w", r.Dir, letter(i), was.dir, was.side, ErrSameRun))
			}
			seen[id] = place{letter(i), r.Dir}
		}
	}
	return errors.Join(errs...)
}

// LeftOut says why a run is not used, "" if it is: an INVALID run's figures must not be used, nor those of
// a run that lost an agent (SUSPECT in older versions), and an interrupted run is shorter than the others.
func (r Run) LeftOut() string {
	if r.Record != nil {
		return r.Record.Left
	}
	return leftOut(r.Result)
}

func leftOut(r *result.Result) string {
	switch {
	case r.Verdict.Status == result.Invalid:
		return "INVALID"
	case r.Lost().Any():
		return "lost an agent"
	case r.Run.Interrupted:
		return "interrupted"
	}
	return ""
}

// usable returns the runs of a side that count.
func usable(name string, s Side) (SideSummary, []Run) {
	out := SideSummary{Side: name, Given: s.Given, Runs: []RunSummary{}}
	var runs []Run
	var systems, guarantees []string
	for _, r := range s.Runs {
		x := RunSummary{Dir: r.Dir, Name: r.Record.Name, Verdict: r.Record.Verdict, Why: r.LeftOut()}
		if x.Why == "" {
			runs = append(runs, r)
			if cost := r.Record.Cost; cost != nil {
				out.CostPerMillion = append(out.CostPerMillion, *cost)
			}
			systems = with(systems, strings.TrimSpace(r.Record.Fact("driver")+" "+r.Record.Version))
			guarantee := r.Record.Fact("guarantee")
			if guarantee != "none" {
				guarantee = fmt.Sprintf("%s, copies %s, stable %s", guarantee, r.Record.Fact("copies"), r.Record.Fact("stable"))
			}
			guarantees = with(guarantees, guarantee)
		}
		out.Runs = append(out.Runs, x)
	}
	if out.Used = len(runs); len(out.CostPerMillion) < out.Used {
		out.CostPerMillion = nil
	}
	out.System, out.Guarantee = strings.Join(systems, "; "), strings.Join(guarantees, "; ")
	return out, runs
}

// Lacks is how many more usable runs a side needs before any difference can be shown at that level.
func (s Side) Lacks(alpha float64) int {
	used := 0
	for _, r := range s.Runs {
		if r.LeftOut() == "" {
			used++
		}
	}
	return max(0, stats.MoreRuns(0, 0, alpha, 1)-used)
}

// enough refuses a side that is too small to show anything.
func enough(s SideSummary, alpha float64) error {
	least := stats.MoreRuns(0, 0, alpha, 1)
	if s.Used >= least {
		return nil
	}
	var out []string
	for _, r := range s.Runs {
		if r.Why != "" {
			out = with(out, r.Why)
		}
	}
	left := ""
	if n := len(s.Runs) - s.Used; n > 0 {
		left = fmt.Sprintf(" that can be used of %d (left out: %s)", len(s.Runs), strings.Join(out, ", "))
	}
	return fmt.Errorf("%s, %s: %w: %s%s, needs %d more; with fewer than %d a side no difference can be shown at %v",
		s.Side, s.Given, ErrTooFew, quantity.Plural(s.Used, "run"), left, least-s.Used, least, alpha)
}

// warn adds the caveats.
func (c *Comparison) warn(used [][]Run, byRecord bool) {
	c.Warnings = append(c.Warnings, doubts(c.Differences, used)...)
	c.Warnings = append(c.Warnings, oneAfterTheOther(used)...)
	unread := 0
	for _, r := range slices.Concat(used...) {
		if r.Counts == nil {
			unread++
		}
	}
	switch {
	case byRecord && len(c.Shifts) > 0:
		c.Warnings = append(c.Warnings, fmt.Sprintf("curves begin at p50: they are of the percentiles in %s; weir compare reads all samples", result.FileResult))
	case byRecord:
	case unread > 0:
		c.Warnings = append(c.Warnings, fmt.Sprintf("there is no shift function: %s without %s", quantity.Plural(unread, "run"), result.FileIntervals))
	}
	c.Warnings = append(c.Warnings, c.marked()...)
	for _, f := range c.Figures {
		if f.Family != familyOutcomes || slices.Max(f.Sides[0].Runs) > 0 {
			continue
		}
		for _, v := range f.Sides[1:] {
			n := 0
			for _, x := range v.Runs {
				if x > 0 {
					n++
				}
			}
			if n > 0 && v.Change.Verdict != Worse {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s has %s messages in %d of %s, %s in none: check those runs, whatever the test says",
					v.Side, f.Name, n, quantity.Plural(len(v.Runs), "run"), c.Sides[0].Side))
			}
		}
	}
}

// marked names, a line for each family, the figures that cannot be quoted in some run.
func (c *Comparison) marked() []string {
	var families []string
	names := map[string][]string{}
	for _, f := range c.Figures {
		if !slices.ContainsFunc(f.Sides, func(v Values) bool { return v.Marked > 0 }) {
			continue
		}
		if names[f.Family] == nil {
			families = append(families, f.Family)
		}
		names[f.Family] = append(names[f.Family], f.Name)
	}
	var out []string
	for _, family := range families {
		out = append(out, fmt.Sprintf("in some runs something other than the system moved %s %s by over a tenth", family, strings.Join(names[family], ", ")))
	}
	return out
}

// oneAfterTheOther warns if all runs of one side ran before, or after, all of the base.
func oneAfterTheOther(used [][]Run) []string {
	span := func(runs []Run) (first, last time.Time, ok bool) {
		for _, r := range runs {
			t, err := time.Parse(time.RFC3339Nano, r.Record.StartedAt)
			if err != nil {
				return first, last, false
			}
			if first.IsZero() || t.Before(first) {
				first = t
			}
			if t.After(last) {
				last = t
			}
		}
		return first, last, true
	}
	var names []string
	first, last, ok := span(used[0])
	for i, runs := range used[1:] {
		f, l, also := span(runs)
		if ok && also && (f.After(last) || first.After(l)) {
			names = append(names, letter(i+1))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s and %s were measured one after the other, not in turns: a change on the host looks like a difference between them",
		letter(0), strings.Join(names, ", "))}
}

// compared selects the distributions to compare from a run's samples, by the tags of its intervals.hlog.
// Absent ones stay nil.
func compared(totals map[string]*measure.Counts) map[string]*measure.Counts {
	if totals == nil {
		return nil
	}
	out := map[string]*measure.Counts{}
	for _, k := range latencies() {
		for _, tag := range []string{result.Tag(k, measure.Measure), result.CensoredTag(k, measure.Measure)} {
			if sum := totals[tag]; sum != nil {
				out[tag] = sum
			}
		}
	}
	return out
}
