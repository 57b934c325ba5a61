package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// reportCommand is `weir report`.
type reportCommand struct {
	Dirs        []string `arg:"" name:"dir" help:"Result folder, or a folder that holds some, such as that of a suite."`
	Format      *string  `placeholder:"FORMAT" help:"text, markdown, html, or for other programs benchstat, csv, json, junit, omb, openmetrics (default: what the name of --out ends with, else text)."`
	HTML        bool     `name:"html" help:"The same as --format html: a page with charts that works offline."`
	JSON        bool     `name:"json" help:"The same as --format json: result.json, one after another where there are several; of weir capacity, capacity.json."`
	Out         *string  `short:"o" placeholder:"FILE" help:"Write to this file, which must not exist, instead of stdout."`
	Full        bool     `help:"Show all figures, not only one screen of those that matter most. With several runs, show each in full after the table. Files and HTML always have all."`
	Judge       bool     `help:"Reach each verdict again from what the folder holds, by the rules of this version of weir, and show it in place of the stored one."`
	FailOn      *string  `placeholder:"WHAT" help:"With --judge. change: exit with 4 when a verdict or an objective differs from the stored one. verdict: exit with 5, 7 or 4 as weir run does for such a verdict (default: 0 whatever is found)."`
	Require     *string  `placeholder:"VERDICT" help:"With --fail-on verdict, the least verdict that exits with 0, valid or suspect, as for weir run (default: suspect)."`
	Percentiles *string  `placeholder:"LIST" help:"Percentiles to print, such as --percentiles 50,99,99.9 (default: those with enough samples). Others than the usual ones must be stored: weir run --percentiles stores them."`
	Window      *string  `placeholder:"DURATION" help:"Also show percentiles of each part of a run that is this long, such as 10s or 1m."`
	Session     *uint64  `placeholder:"N" help:"How many messages a user's session has. For each percentile, the table then shows the share of sessions that meet at least one worse message."`
	NoColor     bool     `help:"No colour."`

	require result.Status // from --require and the environment
	window  time.Duration // from --window; 0: none
}

// Help is what kong adds to the verb's help.
func (reportCommand) Help() string {
	return "Shows one folder as weir run showed it, in one screen; --full, --window, --judge and -o FILE show all. Shows several as a table with a row for each run, in the order given, and how they differ. " +
		"Of the folder of weir capacity it also shows the capacity as an interval, and each probe. " +
		"The exit code says whether weir could read the folders, not what is in them: 0, or 2 with nothing on stdout. " +
		"With --judge, --fail-on change exits with 4 when a verdict differs, and with 2 where an older result lacks what a check needs. " +
		"--fail-on verdict exits with 5 when a run is INVALID (with --require valid also SUSPECT), 7 when too many messages failed, 4 when an objective failed."
}

// run ends at the first signal.
func (c *reportCommand) run(ctx context.Context, e *env) Code {
	return e.interruptible(ctx, func() Code { return c.report(e) })
}

// report reads every folder before it writes anything.
func (c *reportCommand) report(e *env) Code {
	format, err := c.format()
	var o view.Options
	if err == nil {
		o.Session, o.Percentiles, err = askedFor(c.Session, c.Percentiles)
	}
	if err == nil && format == view.FormatHTML && c.Out == nil && e.StdoutTerminal {
		err = layout.ErrTerminal
	}
	if err == nil {
		err = c.checkGate(e)
	}
	if err == nil && c.Window != nil {
		if c.window, err = quantity.Duration(*c.Window); err != nil || c.window < time.Second || c.window > 24*time.Hour {
			err = fmt.Errorf("--window: %q does not fit (1s to 24h, such as 10s)", *c.Window)
		}
	}
	if err == nil {
		err = e.outlet().Check(c.Out)
	}
	if err != nil {
		return e.refused(err)
	}
	entries, ok := c.read(e, format)
	if !ok {
		return Usage
	}
	o.Full, o.Colour = c.Full, c.Out == nil && e.color(c.NoColor, false)
	o.Short = c.Out == nil && !c.Full && !c.Judge && c.window == 0
	if c.Out == nil {
		o.Width = e.width(false)
	} else {
		o.Link = view.LinksFrom(*c.Out, e.path)
	}
	loaded := view.Loaded(entries)
	searches, err := series.Searches(e.Dir, c.Dirs, loaded)
	if err != nil {
		return e.refused(err)
	}
	for _, f := range searches {
		o.Searches = append(o.Searches, view.NewSearch(f.Dir, f.Report, f.Measure))
	}
	o.Rest = series.Unfinished(e.Dir, c.Dirs, loaded)
	var b bytes.Buffer
	err = view.Write(&b, format, entries, o, e.path)
	if errors.Is(err, view.ErrOneRun) {
		return e.refused(fmt.Errorf("--format: %w", err))
	}
	if err == nil {
		err = e.outlet().Deliver(c.Out, b.Bytes())
	}
	if code := e.printed("the report", err); code != OK {
		return code
	}
	return c.gate(e, entries)
}

// format returns the requested format.
func (c *reportCommand) format() (f view.Format, err error) {
	if c.HTML && c.JSON {
		return "", errors.New("--html and --json: a report has one format (one of them)")
	}
	for _, short := range []struct {
		given  bool
		format view.Format
	}{{c.HTML, view.FormatHTML}, {c.JSON, view.FormatJSON}} {
		switch {
		case !short.given:
		case c.Format != nil && !strings.EqualFold(*c.Format, string(short.format)):
			return "", fmt.Errorf("--%s: contradicts --format %s (use one of them)", short.format, *c.Format)
		default:
			return short.format, nil
		}
	}
	switch {
	case c.Format != nil:
		if f, err = view.ParseFormat(*c.Format); err != nil {
			return "", fmt.Errorf("--format: %w", err)
		}
		return f, nil
	case c.Out != nil:
		if f, err = view.FormatOfFile(*c.Out); err != nil {
			return "", fmt.Errorf("--out: %w", err)
		}
		return f, nil
	}
	return view.FormatText, nil
}

// read reads all folders, each once. It reports all errors; ok is then false.
func (c *reportCommand) read(e *env, format view.Format) (entries []view.Entry, ok bool) {
	entries, lacks, bad := e.place().Read(c.Dirs, view.Loading{Drawn: format == view.FormatHTML, Judged: c.Judge, Window: c.window})
	for _, x := range bad {
		e.complain(x.Err)
		for _, line := range x.Remains {
			e.say("  %s", line)
		}
	}
	switch {
	case len(bad) == 0:
		for _, line := range lacks {
			e.say("weir: %s", line)
		}
	case len(entries) > 0:
		e.say("weir: cannot read %d of %d folders, and shows none; name only the others to see them", len(bad), len(bad)+len(entries))
	}
	return entries, len(bad) == 0
}
