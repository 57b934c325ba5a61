package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// historyCommand is `weir history`.
type historyCommand struct {
	Dirs   []string `arg:"" name:"dir" help:"Folder that holds the folders of runs, at any depth. Several, or a pattern in quotes, count as one."`
	FailOn *string  `placeholder:"CHANGE" help:"change: exit with 4 when a figure changed in the latest runs. regression: only when one is worse. nothing: exit with 0 (default: change)."`
	Latest *string  `placeholder:"N" help:"How many runs at the end of a series are the latest (default: 10)."`
	Least  *string  `placeholder:"PERCENT" help:"Leave out changes smaller than this, such as 2% (default: 0, which leaves out none)."`
	Alpha  *string  `placeholder:"ALPHA" help:"Accepted chance that a series without a change shows one (default: 0.05)."`
	layout.Output
}

// Help is what kong adds to the verb's help.
func (historyCommand) Help() string {
	return "Looks for runs at which a figure changed and stayed so. Runs with the same name, guarantee, size, rate, mode and topology are a series, " +
		"in the order in which they began. A series needs 10 runs, and up to 14 where many figures vary. INVALID and interrupted runs are left out. " +
		"For each change it shows the run, the size and p, and what else differs between that run and the one before it. " +
		"The exit code is 4 when the latest runs contain a change, and 2 when there are too few runs to show one."
}

// The values of --fail-on for a history.
const (
	onChange     = "change"
	onRegression = "regression"
	onNothing    = "nothing"
)

// run ends at the first signal.
func (c *historyCommand) run(ctx context.Context, e *env) Code {
	return e.interruptible(ctx, func() Code { return c.look(ctx, e) })
}

// look reads every folder before it writes anything.
func (c *historyCommand) look(ctx context.Context, e *env) Code {
	o, fail, err := c.options()
	if err := errors.Join(err, c.Check(e.outlet(), "a history")); err != nil {
		e.complainEach(err)
		return Usage
	}
	var runs []compare.Run
	ok := true
	for _, given := range c.Dirs {
		found, err := e.place().History(ctx, given, e.indexFile)
		runs = append(runs, found...)
		e.complainEach(err)
		ok = ok && err == nil
	}
	if !ok {
		return Usage
	}
	o.Memo = history.OpenMemo(e.cached(changesFile), buildinfo.Version())
	found, err := history.Of(runs, o)
	e.keep(o.Memo)
	if err != nil {
		e.complainEach(err)
		few := (*history.FewError)(nil)
		switch {
		case errors.As(err, &few) && len(c.Dirs) == 1 && e.appends(c.Dirs[0]):
			e.say("this adds runs: weir run --append %s --repeat %d", view.Quoted(c.Dirs[0]), few.More)
		case errors.Is(err, history.ErrTooFew):
			e.say("weir run FILE --repeat N makes runs of one name; weir run --append DIR --repeat N adds to them")
		}
		return Usage
	}
	found.Weir = buildinfo.Version()
	if code := e.printed("the history", c.print(e, found)); code != OK {
		return code
	}
	all, worse := found.New()
	if fail == onChange && all > 0 || fail == onRegression && worse > 0 {
		return Missed
	}
	return OK
}

// changesFile is the file of a history.Memo in the user's cache.
const changesFile = "changes.json"

// keep saves a memo. Without it the next history only takes longer.
func (e *env) keep(m *history.Memo) {
	if err := m.Save(); err != nil {
		e.log.Debug("changes of histories are not kept", "error", err)
	}
}

// cached returns the path of a file in the user's cache for verbs that read many runs; "" if there is no place for it.
func (e *env) cached(name string) string {
	cache, err := broker.CacheDir(e.Env)
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "serve", name)
}

// indexFile returns the file of a folder's index in the user's cache; "" if there is no place for it.
func (e *env) indexFile(dir string) string {
	cache := e.cached("")
	if cache == "" {
		return ""
	}
	file, err := index.FileIn(cache, dir)
	if err != nil {
		return ""
	}
	return file
}

// options parses the flags and joins all errors.
func (c *historyCommand) options() (o history.Options, fail string, err error) {
	o, fail = history.Options{Alpha: defaultAlpha, Latest: 10, Seed: 1}, onChange
	var errs []error
	if c.Alpha != nil {
		v, err := level(*c.Alpha)
		o.Alpha, errs = v, append(errs, err)
	}
	if c.Least != nil {
		var ok bool
		if o.Least, ok = quantity.Share(*c.Least); !ok {
			errs = append(errs, fmt.Errorf("--least: %q is not a percentage (0 to leave none out, or below 100 such as 2%%)", *c.Least))
		}
	}
	if c.Latest != nil {
		v, err := strconv.Atoi(*c.Latest)
		if err != nil || v < stats.LeastSegment || v > history.MostRuns {
			errs = append(errs, fmt.Errorf("--latest: %q is not a number of runs (%d to %d: a change shows once three runs follow it)", *c.Latest, stats.LeastSegment, history.MostRuns))
		}
		o.Latest = v
	}
	if c.FailOn != nil {
		fail = *c.FailOn
		if fail != onChange && fail != onRegression && fail != onNothing {
			errs = append(errs, fmt.Errorf("--fail-on: %q is not known (%s, %s, %s)", fail, onChange, onRegression, onNothing))
		}
	}
	return o, fail, errors.Join(errs...)
}

// print writes the history in the requested format.
func (c *historyCommand) print(e *env, found *history.History) error {
	return c.Write(e.outlet(), layout.Document{
		Title: "History", JSON: found,
		HTML: func(w io.Writer) error { return view.HistoryHTML(w, found) },
		Show: func(p *layout.Page) { view.History(p, found) },
	})
}

// level parses the value of --alpha.
func level(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0.0001 && v <= 0.5) {
		return 0, fmt.Errorf("--alpha: %q is not a level (0.0001 to 0.5, such as 0.05)", s)
	}
	return v, nil
}
