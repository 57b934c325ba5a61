package series

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/export"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// An Until decides after each round of runs whether another follows: until a figure is known precisely
// enough, or a limit is reached. Its method More is a Repeats.More.
type Until struct {
	Figure string       // to determine, one of ComparedFigures
	Goal   compare.Goal // the required precision
	Names  []string     // of the scenarios, base first
	Most   int          // runs of each
	End    time.Time    // no round begins later; zero: unlimited

	Now    func() time.Time
	Looked func() // called after an inconclusive look with an interval; may be nil

	Look  compare.Look // the latest
	Stop  Stop         // why no round follows; "" while one does, and for runs ended earlier
	Lacks string       // of NoFigure: the folder of a run that lacks it

	Appends bool // the first question concerns earlier runs

	first int // index of the first new run
	asked bool
	had   int // runs with figures at the last question
}

// A Stop is why an Until ends the rounds.
type Stop string

// The reasons to stop.
const (
	Shown    Stop = "shown"     // the figure is known precisely enough
	NoFigure Stop = "no figure" // a run lacks it, or samples for it
	NoRun    Stop = "no run"    // the last round gave no run with figures
	Useless  Stop = "useless"   // the last MostInvalid runs are INVALID
	MostRuns Stop = "most runs" // the limit on runs is reached
	MostTime Stop = "most time" // the time is over
)

// MostInvalid is how many consecutive runs may be INVALID before the rounds end.
const MostInvalid = 4

// useless reports whether the last runs are INVALID. Earlier runs do not count: the user asked for more
// despite them.
func (u *Until) useless(entries []result.Entry) bool {
	if u.Appends && !u.asked {
		u.first = len(entries)
	}
	of := entries[min(u.first, len(entries)):]
	return len(of) >= MostInvalid && !slices.ContainsFunc(of[len(of)-MostInvalid:], func(e result.Entry) bool { return e.Result.Verdict.Status != result.Invalid })
}

// More reports whether another round follows these runs.
func (u *Until) More(entries []result.Entry) bool {
	sides, count, lacks := u.sides(entries)
	before := u.Look.Runs
	u.Look = compare.LookAt(sides, u.Goal)
	switch {
	case lacks != "":
		u.Stop, u.Lacks = NoFigure, lacks
	case u.Look.Enough:
		u.Stop = Shown
	case u.useless(entries):
		u.Stop = Useless
	case count >= u.Most:
		u.Stop = MostRuns
	case !u.End.IsZero() && !u.Now().Before(u.End):
		u.Stop = MostTime
	case u.asked && len(entries) == u.had:
		u.Stop = NoRun
	default:
		if u.Looked != nil && u.Look.Runs > before && len(u.Look.Spans) > 0 {
			u.Looked()
		}
		u.asked, u.had = true, len(entries)
		return true
	}
	return false
}

// Sides describes each side in a line of its own.
func (u *Until) Sides() []string {
	var lines []string
	write := func(v float64) string { return quantity.Time(int64(v)) }
	if strings.HasSuffix(u.Figure, ".rate") {
		write = quantity.Rate
	}
	for i, s := range u.Look.Spans {
		if len(u.Names) == 1 {
			lines = append(lines, fmt.Sprintf("median %s (%s to %s)", write(s.Estimate), write(s.Lo), write(s.Hi)))
			continue
		}
		part := func(v float64) float64 { return 100 * (v - 1) }
		lines = append(lines, fmt.Sprintf("%s %+.1f %% of %s (%+.1f to %+.1f %%)", u.Names[i+1], part(s.Estimate), u.Names[0], part(s.Lo), part(s.Hi)))
	}
	return lines
}

// sides returns the figure in the runs of each scenario in order, without those that compare leaves out,
// the most runs of any scenario, and the folder of a run without the figure.
func (u *Until) sides(entries []result.Entry) (sides [][]float64, count int, lacks string) {
	for _, name := range u.Names {
		var of []result.Entry
		for _, e := range entries {
			if e.Result.Run.Scenario() == name {
				of = append(of, e)
			}
		}
		count = max(count, len(of))
		slices.SortStableFunc(of, func(a, b result.Entry) int { return a.Result.Run.Repeat - b.Result.Run.Repeat })
		side := []float64{}
		for _, e := range of {
			if e.Result.Verdict.Status == result.Invalid || e.Result.Run.Interrupted {
				continue
			}
			v, ok := export.Flat(e.Result)[u.Figure]
			if !ok {
				lacks = e.Dir
			}
			side = append(side, v)
		}
		sides = append(sides, side)
	}
	return sides, count, lacks
}

// MainFigure is the most informative figure in a scenario's mode.
func MainFigure(s *scenario.Scenario) string {
	switch {
	case s.Mode == engine.Consume, s.Mode == engine.Backlog, s.Load.Closed && s.Mode == engine.Stream:
		return "received.rate"
	case s.Load.Closed:
		return "confirmed.rate"
	case s.Mode == engine.Request:
		return "rtt.p99"
	case s.Mode == engine.Produce:
		return "send.p99"
	}
	return "e2e.p99"
}

// ComparedFigures returns the figures that can be compared as a fraction of the base's.
func ComparedFigures() []string {
	all := []string{"sent.rate", "confirmed.rate", "received.rate"}
	for _, of := range export.Latencies() {
		for _, p := range judge.Percentiles() {
			if p < 100 {
				all = append(all, of+".p"+strconv.FormatFloat(p, 'f', -1, 64))
			}
		}
		if !judge.OfSystem(of) {
			all = append(all, of+".max", of+".mean")
		}
	}
	return all
}
