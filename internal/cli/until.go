package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
)

// untilFlags add runs to a series until a figure is known precisely enough.
type untilFlags struct {
	UntilShown *string `placeholder:"[FIGURE=]PERCENT" help:"Add runs in turns until the difference between the first scenario and each other is known to within PERCENT. With one scenario, add runs until their median is known to within PERCENT. FIGURE says which figure, such as e2e.p99 or received.rate (default: none; without FIGURE, the main figure of the mode)."`
	MostRuns   *int    `placeholder:"N" help:"With --until-shown, the most runs of each scenario, with those that the folder has already (6 to 100; default: 32)."`
	MostTime   *string `placeholder:"DURATION" help:"With --until-shown, begin no new round of runs after this time (default: none)."`
}

// Limits of --most-runs.
const (
	fewestRuns  = 6 // per scenario at the first look
	usualRuns   = compare.MostRuns
	mostRunsMay = 100
)

// untilShown parses the flags; nil if none is given.
func (c *runCommand) untilShown(e *env, scenarios []*scenario.Scenario) (*series.Until, error) {
	f := &c.untilFlags
	switch {
	case f.UntilShown == nil && (f.MostRuns != nil || f.MostTime != nil):
		return nil, errors.New("--most-runs and --most-time: are bounds of --until-shown (add it, or leave them out)")
	case f.UntilShown == nil:
		return nil, nil
	case c.Append == nil && len(scenarios) == 1 && scenarios[0].Repeat <= 1:
		return nil, errors.New("--until-shown: is of several runs (--append DIR with a folder of several, or --repeat N for a first round)")
	}
	u := &series.Until{Appends: c.Append != nil, Most: usualRuns, Goal: compare.Goal{Alpha: defaultAlpha}, Now: time.Now}
	if !c.quiet {
		u.Looked = func() {
			e.say("weir: %s after %d runs each: %s; the next look is at %d", u.Figure, u.Look.Runs, strings.Join(u.Sides(), "; "), u.Look.Next)
		}
	}
	for _, s := range scenarios {
		u.Names = append(u.Names, s.Name)
	}
	figure, share, named := strings.Cut(*f.UntilShown, "=")
	if !named {
		figure, share = series.MainFigure(scenarios[0]), figure
	}
	if u.Figure = strings.TrimSpace(figure); !slices.Contains(series.ComparedFigures(), u.Figure) {
		return nil, fmt.Errorf("--until-shown: %q is not a figure that runs can be compared by (such as e2e.p99, send.p50, rtt.max or received.rate)", u.Figure)
	}
	digits, percent := strings.CutSuffix(strings.TrimSpace(share), "%")
	p, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !percent || !(p >= 0.1 && p <= 100) {
		return nil, fmt.Errorf("--until-shown: %q is not a percentage (0.1%% to 100%%, such as 5%%)", share)
	}
	u.Goal.Share = p / 100
	if f.MostRuns != nil {
		if u.Most = *f.MostRuns; u.Most < fewestRuns || u.Most > mostRunsMay {
			return nil, fmt.Errorf("--most-runs: %d does not fit (%d to %d)", u.Most, fewestRuns, mostRunsMay)
		}
	}
	if f.MostTime != nil {
		d, err := quantity.Duration(*f.MostTime)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("--most-time: %q is not a time (above 0, such as 2h)", *f.MostTime)
		}
		u.End = u.Now().Add(d)
	}
	return u, nil
}

// unshown says why the runs ended with the figure unknown.
func unshown(u *series.Until) string {
	switch u.Stop {
	case series.NoFigure:
		return u.Lacks + " has no such figure, or too few samples for it"
	case series.Useless:
		return fmt.Sprintf("the last %d runs are INVALID, and another may be, too (weir doctor shows what on this host disturbs a run; --append continues)", series.MostInvalid)
	case series.MostRuns:
		return fmt.Sprintf("--most-runs %d is reached", u.Most)
	case series.MostTime:
		return "--most-time is over"
	case series.NoRun:
		return "no run of the last round has figures"
	}
	return "the runs were ended before"
}

// shownUntil says what was shown, and why the runs ended.
func shownUntil(u *series.Until) []string {
	share := strconv.FormatFloat(100*u.Goal.Share, 'f', -1, 64) + " %"
	head := fmt.Sprintf("shown        %s is known to within %s, from %d runs each", u.Figure, share, u.Look.Runs)
	if u.Stop != series.Shown {
		head = fmt.Sprintf("not shown    %s is not known to within %s: %s", u.Figure, share, unshown(u))
		if len(u.Look.Spans) > 0 {
			head += fmt.Sprintf("\n             from %d runs each:", u.Look.Runs)
		}
	}
	lines := append([]string{head}, u.Sides()...)
	return strings.Split(strings.Join(lines, "\n             "), "\n")
}
