package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/export"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// untilFlags add runs to a series until a figure is known closely enough.
type untilFlags struct {
	UntilShown *string `placeholder:"[FIGURE=]PERCENT" help:"Add runs in turns until the difference between the first scenario and each other is known to within PERCENT. With one scenario, until the median of its runs is. FIGURE says which figure, such as e2e.p99 or received.rate (default: none; without FIGURE, the main figure of the mode)."`
	MostRuns   *int    `placeholder:"N" help:"With --until-shown, the most runs of each scenario, with those that the folder has already (6 to 100; default: 32)."`
	MostTime   *string `placeholder:"DURATION" help:"With --until-shown, begin no new round of runs after this time (default: none)."`
}

// Bounds of --most-runs.
const (
	fewestRuns  = 6 // of each scenario at the first look
	usualRuns   = 32
	mostRunsMay = 100
)

// An until decides after each round whether another one is to follow.
type until struct {
	figure string
	goal   compare.Goal
	names  []string // of the scenarios, the base first
	most   int      // runs of each
	end    time.Time
	now    func() time.Time
	note   func(format string, args ...any)

	asked bool
	had   int // runs with figures at the last question
	look  compare.Look
	why   string // it stopped; "" while it goes on
}

// untilShown reads the flags; nil where none is given.
func (c *runCommand) untilShown(e *env, scenarios []*scenario.Scenario) (*until, error) {
	f := &c.untilFlags
	switch {
	case f.UntilShown == nil && (f.MostRuns != nil || f.MostTime != nil):
		return nil, errors.New("--most-runs and --most-time: are bounds of --until-shown (add it, or leave them out)")
	case f.UntilShown == nil:
		return nil, nil
	case c.Append == nil && len(scenarios) == 1 && scenarios[0].Repeat <= 1:
		return nil, errors.New("--until-shown: is of several runs (--append DIR with a folder of several, or --repeat N for a first round)")
	}
	u := &until{most: usualRuns, goal: compare.Goal{Alpha: defaultAlpha}, now: time.Now, note: func(string, ...any) {}}
	if !c.quiet {
		u.note = func(format string, args ...any) { e.say("weir: "+format, args...) }
	}
	for _, s := range scenarios {
		u.names = append(u.names, s.Name)
	}
	figure, share, named := strings.Cut(*f.UntilShown, "=")
	if !named {
		figure, share = usualFigure(scenarios[0]), figure
	}
	if u.figure = strings.TrimSpace(figure); !slices.Contains(figuresUntil(), u.figure) {
		return nil, fmt.Errorf("--until-shown: %q is not a figure that runs can be compared by (such as e2e.p99, send.p50, rtt.max or received.rate)", u.figure)
	}
	digits, percent := strings.CutSuffix(strings.TrimSpace(share), "%")
	p, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !percent || !(p >= 0.1 && p <= 100) {
		return nil, fmt.Errorf("--until-shown: %q is not a percentage (0.1%% to 100%%, such as 5%%)", share)
	}
	u.goal.Share = p / 100
	if f.MostRuns != nil {
		if u.most = *f.MostRuns; u.most < fewestRuns || u.most > mostRunsMay {
			return nil, fmt.Errorf("--most-runs: %d does not fit (%d to %d)", u.most, fewestRuns, mostRunsMay)
		}
	}
	if f.MostTime != nil {
		d, err := quantity.Duration(*f.MostTime)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("--most-time: %q is not a time (above 0, such as 2h)", *f.MostTime)
		}
		u.end = u.now().Add(d)
	}
	return u, nil
}

// usualFigure is the one that tells most in a scenario's mode.
func usualFigure(s *scenario.Scenario) string {
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

// figuresUntil are those that can be compared as a part of the base's.
func figuresUntil() []string {
	all := []string{"sent.rate", "confirmed.rate", "received.rate"}
	for _, of := range []string{"send", "send.service", "e2e", "e2e.service", "rtt", "rtt.service"} {
		for _, p := range judge.Percentiles() {
			if p < 100 {
				all = append(all, of+".p"+strconv.FormatFloat(p, 'f', -1, 64))
			}
		}
		all = append(all, of+".max", of+".mean")
	}
	return all
}

// more reports whether another round is to follow these runs.
func (u *until) more(entries []report.Entry) bool {
	sides, count, lacks := u.sides(entries)
	before := u.look.Runs
	u.look = compare.LookAt(sides, u.goal)
	switch {
	case lacks != "":
		u.why = lacks + " has no such figure, or too few samples for it"
	case u.look.Enough:
		u.why = "shown"
	case count >= u.most:
		u.why = fmt.Sprintf("--most-runs %d is reached", u.most)
	case !u.end.IsZero() && !u.now().Before(u.end):
		u.why = "--most-time is over"
	case u.asked && len(entries) == u.had:
		u.why = "no run of the last round has figures"
	default:
		if u.look.Runs > before && len(u.look.Spans) > 0 {
			u.note("%s after %d runs each: %s; the next look is at %d", u.figure, u.look.Runs, strings.Join(u.told(), "; "), u.look.Next)
		}
		u.asked, u.had = true, len(entries)
		return true
	}
	return false
}

// sides returns the figure of the runs of each scenario in their order, those left out
// that compare leaves out, how many runs there are of the one that has most, and the
// folder of a run that has no such figure.
func (u *until) sides(entries []report.Entry) (sides [][]float64, count int, lacks string) {
	for _, name := range u.names {
		var of []report.Entry
		for _, e := range entries {
			if e.Result.Run.Scenario() == name {
				of = append(of, e)
			}
		}
		count = max(count, len(of))
		slices.SortStableFunc(of, func(a, b report.Entry) int { return a.Result.Run.Repeat - b.Result.Run.Repeat })
		side := []float64{}
		for _, e := range of {
			if e.Result.Verdict.Status == result.Invalid || e.Result.Run.Interrupted {
				continue
			}
			v, ok := export.Flat(e.Result)[u.figure]
			if !ok {
				lacks = e.Dir
			}
			side = append(side, v)
		}
		sides = append(sides, side)
	}
	return sides, count, lacks
}

// told says what is known of each side, in a line of its own.
func (u *until) told() []string {
	var lines []string
	write := func(v float64) string { return report.Time(int64(v)) }
	if strings.HasSuffix(u.figure, ".rate") {
		write = report.Rate
	}
	for i, s := range u.look.Spans {
		if len(u.names) == 1 {
			lines = append(lines, fmt.Sprintf("median %s (%s to %s)", write(s.Estimate), write(s.Lo), write(s.Hi)))
			continue
		}
		part := func(v float64) float64 { return 100 * (v - 1) }
		lines = append(lines, fmt.Sprintf("%s %+.1f %% of %s (%+.1f to %+.1f %%)", u.names[i+1], part(s.Estimate), u.names[0], part(s.Lo), part(s.Hi)))
	}
	return lines
}

// write says what was shown, and why no more runs were done.
func (u *until) write(w io.Writer) error {
	share := strconv.FormatFloat(100*u.goal.Share, 'f', -1, 64) + " %"
	head := fmt.Sprintf("shown        %s is known to within %s, from %d runs each", u.figure, share, u.look.Runs)
	if u.why != "shown" {
		why := u.why
		if why == "" {
			why = "the runs were ended before"
		}
		head = fmt.Sprintf("not shown    %s is not known to within %s: %s", u.figure, share, why)
		if len(u.look.Spans) > 0 {
			head += fmt.Sprintf("\n             from %d runs each:", u.look.Runs)
		}
	}
	lines := append([]string{head}, u.told()...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n             "))
	return err
}
