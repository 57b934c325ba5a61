package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/truth"
)

// quickScale is how much shorter the runs of --quick are.
const quickScale = 0.2

// calibrateCommand is `weir calibrate`.
type calibrateCommand struct {
	Quick   bool `help:"Shorter runs: about 10 s instead of 40 s, with fewer samples."`
	JSON    bool `name:"json" help:"Print a JSON object on stdout and everything else on stderr."`
	NoColor bool `help:"No colour."`
}

// A calibration is what --json prints. Times are in ns.
type calibration struct {
	Schema      string         `json:"schema"`
	Weir        string         `json:"weir"`
	Pass        bool           `json:"pass"` // every truth test was done and passed
	Interrupted bool           `json:"interrupted"`
	Figures     *truth.Figures `json:"figures"` // null: interrupted before they were taken
	Checks      []truth.Check  `json:"checks"`
}

// run takes the figures, does the truth tests and prints both as they come.
func (c *calibrateCommand) run(ctx context.Context, e *env) Code {
	return c.calibrate(ctx, e, truth.Measure, truth.Checks)
}

func (c *calibrateCommand) calibrate(
	ctx context.Context, e *env,
	measure func(context.Context, truth.Options) (*truth.Figures, error),
	check func(context.Context, truth.Options) ([]truth.Check, error),
) Code {
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	p := &calibrationPage{w: e.Stdout, colour: e.color(c.NoColor, c.JSON)}
	if c.JSON {
		p.w = e.Stderr
	}
	o := truth.Options{Scale: 1, Log: e.log, OnCheck: p.check}
	if c.Quick {
		o.Scale = quickScale
	}
	out := calibration{Schema: "weir.calibration/v1", Weir: buildinfo.Version(), Checks: []truth.Check{}}
	figures, err := measure(ctx, o)
	if err == nil {
		out.Figures = figures
		p.figures(figures)
		var checks []truth.Check
		if checks, err = check(ctx, o); len(checks) > 0 {
			out.Checks = checks
		}
	}
	out.Interrupted = err != nil && ctx.Err() != nil
	out.Pass = err == nil && truth.Passed(out.Checks)
	var codes []Code
	switch {
	case out.Interrupted:
		e.complain(fmt.Errorf("interrupted after %d truth tests", len(out.Checks)))
		codes = append(codes, Interrupted)
	case err != nil:
		e.complain(fmt.Errorf("calibrating: %w", err))
		codes = append(codes, Failed)
	case !out.Pass:
		codes = append(codes, Invalid)
	}
	p.end(&out)
	if c.JSON {
		enc := json.NewEncoder(e.Stdout)
		enc.SetIndent("", "  ")
		p.keep(enc.Encode(out))
	}
	if p.err != nil {
		e.complain(fmt.Errorf("writing the calibration: %w", p.err))
		codes = append(codes, Failed)
	}
	return worst(codes...)
}

// A calibrationPage is the text of a calibration; the first error in writing it
// is kept.
type calibrationPage struct {
	w      io.Writer
	colour bool
	err    error
}

func (p *calibrationPage) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *calibrationPage) print(format string, args ...any) {
	_, err := fmt.Fprintf(p.w, format, args...)
	p.keep(err)
}

// table prints rows of cells that are separated by tabs, aligned to the right
// but for the first.
func (p *calibrationPage) table(rows []string) {
	widest := 0
	for _, r := range rows {
		first, _, _ := strings.Cut(r, "\t")
		widest = max(widest, len([]rune(first)))
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range rows {
		first, rest, _ := strings.Cut(r, "\t")
		p.keep(second(fmt.Fprintf(t, "%s%s\t%s\t\n", first, strings.Repeat(" ", widest-len([]rune(first))), rest)))
	}
	p.keep(t.Flush())
	for line := range strings.Lines(b.String()) {
		p.print("%s\n", strings.TrimRight(line, " \n"))
	}
}

func second(_ int, err error) error { return err }

func (p *calibrationPage) paint(escape, s string) string {
	if !p.colour {
		return s
	}
	return escape + s + "\x1b[0m"
}

// figures prints what the instrument costs and how punctual it is.
func (p *calibrationPage) figures(f *truth.Figures) {
	p.print("The instrument on this host (%d cores)\n\n", f.Cores)
	p.print("  clock    %.1f ns a reading\n", f.Calibration.ClockCostNS)
	p.print("  pacing   %s\n", f.Calibration.Why)
	p.print("  ceiling  %s with a system that costs nothing: %.1f ns a message of 64 B, %.2f times the floor of %.1f ns\n",
		report.Rate(f.Ceiling.MessagesPerSecond), f.Ceiling.MessageNS, f.Ceiling.Ratio, f.Ceiling.FloorNS)
	p.print("           (95 %%: %.2f to %.2f times, %d pairs; the floor is two clock readings, one histogram record, one checksum)\n\n",
		f.Ceiling.RatioLo, f.Ceiling.RatioHi, f.Ceiling.Pairs)
	row := func(what string, s truth.Spread, note string) string {
		return fmt.Sprintf("  %s\t%s\t%s\t%s\t%s\t%s", what, report.Time(s.P50), report.Time(s.P99), report.Time(s.P999), report.Time(s.Max), note)
	}
	rows := []string{
		"  late by\tp50\tp99\tp99.9\tmax\t",
		row("waking, sleeping only", f.Slept, ""),
		row("waking, spinning at the end", f.Spun, ""),
		row("host hiccups", f.Hiccups, ""),
	}
	for _, l := range f.Lateness {
		note := ""
		if !l.Reached {
			note = "not reached: " + report.Rate(l.Sent)
		}
		rows = append(rows, row("messages at "+report.Rate(l.Rate), l.Spread, note))
	}
	p.table(rows)
	p.print("\nAgainst exact truths\n")
}

// check prints one truth test.
func (p *calibrationPage) check(c truth.Check) {
	word := p.paint("\x1b[1;32m", "pass")
	if !c.Pass {
		word = p.paint("\x1b[1;31m", "FAIL")
	}
	p.print("\n%s  %s: %s\n", word, c.Name, c.What)
	if c.Why != "" {
		p.print("      %s\n", c.Why)
	}
	notes := []string{report.Count(c.Samples) + " messages"}
	if c.Attempts > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d: before, the host was too slow to tell", c.Attempts))
	}
	if c.Lateness != nil {
		notes = append(notes, fmt.Sprintf("generator late by p50 %s, p99 %s", report.Time(c.Lateness.P50), report.Time(c.Lateness.P99)))
	}
	if c.Tardiness != nil {
		notes = append(notes, fmt.Sprintf("stand-in by p50 %s, p99 %s", report.Time(c.Tardiness.P50), report.Time(c.Tardiness.P99)))
	}
	p.print("      %s\n", strings.Join(notes, "; "))
	timed, waiting := false, false
	for _, r := range c.Rows {
		timed = timed || r.Unit == truth.Nanoseconds
		waiting = waiting || r.Waiting >= 0
	}
	head := "      \ttruth\treported"
	if timed {
		head += "\tallowed\t"
	}
	if waiting {
		head += "\ta generator that waits"
	}
	rows := []string{head}
	for _, r := range c.Rows {
		rows = append(rows, calibrationRow(r, timed, waiting))
	}
	p.table(rows)
}

// calibrationRow is a row's cells.
func calibrationRow(r truth.Row, timed, waiting bool) string {
	show := func(n int64) string { return report.Count(uint64(n)) }
	if r.Unit == truth.Nanoseconds {
		show = report.Time
	}
	cells := []string{"      " + r.What, show(r.Want), show(r.Got)}
	if timed {
		switch {
		case r.Unit != truth.Nanoseconds:
			cells = append(cells, "exactly", "")
		default: // nothing here can be below 0
			cells = append(cells, "-"+show(min(r.Tolerance, r.Want)), "+"+show(r.Tolerance+r.Host))
		}
	}
	if waiting {
		said := ""
		if r.Waiting >= 0 {
			said = show(r.Waiting)
		}
		cells = append(cells, said)
	}
	switch {
	case !r.OK:
		cells = append(cells, "<- wrong")
	case !r.Says:
		cells = append(cells, "<- the host moved it too far to tell")
	}
	return strings.Join(cells, "\t")
}

// end prints how it came out.
func (p *calibrationPage) end(out *calibration) {
	failed := 0
	for _, c := range out.Checks {
		if !c.Pass {
			failed++
		}
	}
	switch {
	case out.Pass:
		p.print("\nAll %d truth tests passed.\n", len(out.Checks))
	case failed > 0:
		p.print("\n%d of %d truth tests failed: figures taken on this host now must not be used.\n", failed, len(out.Checks))
	}
}
