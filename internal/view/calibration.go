package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/disturb"
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/internal/view/layout"
)

// A CalibrationPage writes a calibration piece by piece and keeps the first write error.
type CalibrationPage struct {
	Out  io.Writer
	Text layout.Text
	err  error
}

func (p *CalibrationPage) write(fill func(*layout.Page)) {
	page := new(layout.Page)
	fill(page)
	if _, err := io.WriteString(p.Out, p.Text.Page(page)); p.err == nil {
		p.err = err
	}
}

// Figures writes the instrument's overhead and timing accuracy.
func (p *CalibrationPage) Figures(f *selftest.Figures) {
	p.write(func(page *layout.Page) {
		page.Say(fmt.Sprintf("The instrument on this host (%d cores)", f.Cores))
		page.Gap()
		page.Inset(2).Table(costTable(f))
		page.Gap()
		page.Inset(4).Table(lateTable(f))
		page.Gap()
		page.Say("Against exact truths")
	})
}

// costTable says what the clock and a message cost.
func costTable(f *selftest.Figures) *layout.Table {
	costs := layout.Listing("", "")
	costs.Row("clock", fmt.Sprintf("%.1f ns a reading", f.Calibration.ClockCostNS))
	costs.Row("pacing", f.Calibration.Why)
	costs.Row("ceiling", fmt.Sprintf("%s with a driver that does nothing (noop): %.1f ns a message of 64 B, %.2f times the floor of %.1f ns",
		quantity.Rate(f.Ceiling.MessagesPerSecond), f.Ceiling.MessageNS, f.Ceiling.Ratio, f.Ceiling.FloorNS))
	costs.Row("", fmt.Sprintf("(95 %%: %.2f to %.2f times, %d pairs; the floor is two clock readings, one histogram record, one checksum)",
		f.Ceiling.RatioLo, f.Ceiling.RatioHi, f.Ceiling.Pairs))
	return costs
}

// lateTable says how late threads and messages were.
func lateTable(f *selftest.Figures) *layout.Table {
	late := &layout.Table{Columns: layout.Columns(layout.Number, layout.Plain, "late by", "p50", "p99", "p99.9", "max", "")}
	late.Columns[0].Kind = layout.Word
	row := func(what string, s selftest.Spread, note string) {
		late.Row(what, quantity.Time(s.P50), quantity.Time(s.P99), quantity.Time(s.P999), quantity.Time(s.Max), note)
	}
	row("waking, sleeping only", f.Slept, "")
	row("waking, spinning at the end", f.Spun, "")
	row("stalls of the host", f.Hiccups, "")
	for _, l := range f.Lateness {
		note := ""
		if !l.Reached {
			note = "not reached: " + quantity.Rate(l.Sent)
		}
		row("messages at "+quantity.Rate(l.Rate), l.Spread, note)
	}
	return late
}

// Check writes one self-test.
func (p *CalibrationPage) Check(c selftest.Check) {
	p.write(func(page *layout.Page) {
		page.Gap()
		if c.NotRun != "" {
			page.Line(layout.Plain.Of("not run  " + c.Name + ": " + c.NotRun))
			return
		}
		page.Line(passWord(c.Pass), layout.Plain.Of("  "+c.Name+": "+c.What))
		inside := page.Inset(6)
		if c.Why != "" {
			inside.Say(c.Why)
		}
		inside.Say(checkNotes(&c))
		inside.Inset(2).Table(truthTable(c.Rows))
	})
}

func passWord(pass bool) layout.Span {
	if pass {
		return layout.Good.Of("pass")
	}
	return layout.Bad.Of("FAIL")
}

// checkNotes says of how many messages a check is, and what the host did meanwhile.
func checkNotes(c *selftest.Check) string {
	notes := []string{quantity.Count(c.Samples) + " messages"}
	if c.Part == selftest.PartClock {
		notes[0] = quantity.Count(c.Samples) + " readings"
	}
	if c.Attempts > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d: before, the host was too slow to tell", c.Attempts))
	}
	if c.Lateness != nil {
		notes = append(notes, fmt.Sprintf("generator late by p50 %s, p99 %s", quantity.Time(c.Lateness.P50), quantity.Time(c.Lateness.P99)))
	}
	if c.Tardiness != nil {
		notes = append(notes, fmt.Sprintf("simulated system late by p50 %s, p99 %s", quantity.Time(c.Tardiness.P50), quantity.Time(c.Tardiness.P99)))
	}
	return strings.Join(notes, "; ")
}

// Quoting writes whether the figures that runs under a disturbance call quotable are true.
func (p *CalibrationPage) Quoting(q selftest.Quoting) {
	p.write(func(page *layout.Page) {
		page.Gap()
		name := "figures that may be quoted, " + disturbance(q.Disturbance)
		if q.NotRun != "" {
			page.Line(layout.Plain.Of("not run  " + name + ": " + q.NotRun))
			return
		}
		page.Line(passWord(q.Passed()), layout.Plain.Of(fmt.Sprintf("  %s: right in %d of %s", name, q.Right, quantity.Counted(q.Runs, "run", "runs"))))
		inside := page.Inset(6)
		inside.Say(quotedNotes(&q))
		inside.Inset(2).Table(quotedTable(q.Rows))
		for i, f := range q.Wrong {
			if i == mostWrongShown {
				break
			}
			inside.Say(fmt.Sprintf("wrong: %s of %s is %s, the truth is %s", f.Name(), f.System, quantity.Time(f.Reported), quantity.Time(f.Truth)))
		}
	})
}

func quotedNotes(q *selftest.Quoting) string {
	reported, quotable, right := q.Figures()
	return fmt.Sprintf("%d VALID; %d of %d percentiles quotable, %d of these within 10 %% of the truth or with it in their interval", q.Valid, quotable, reported, right)
}

// mostWrongShown bounds the wrong figures that the page names.
const mostWrongShown = 4

func disturbance(k disturb.Kind) string {
	switch k {
	case disturb.Spin:
		return "two programs spinning"
	case disturb.Stop:
		return "generator stopped for 20 ms at a time"
	case disturb.Throttle:
		return "generator throttled by its control group"
	}
	return "host as it is"
}

// quotedTable has a row for each percentile, over all responses.
func quotedTable(rows []selftest.QuotedRow) *layout.Table {
	t := &layout.Table{Columns: layout.Columns(layout.Number, layout.Plain, "", "reported", "quotable", "within 10 %", "right")}
	t.Columns[0].Kind = layout.Word
	byPercentile := map[float64]selftest.QuotedRow{}
	for _, r := range rows {
		sum := byPercentile[r.P]
		byPercentile[r.P] = selftest.QuotedRow{Reported: sum.Reported + r.Reported, Quotable: sum.Quotable + r.Quotable, Near: sum.Near + r.Near, Right: sum.Right + r.Right}
	}
	for _, p := range slices.Sorted(maps.Keys(byPercentile)) {
		r := byPercentile[p]
		t.Row(finding.Percentile(p), strconv.Itoa(r.Reported), strconv.Itoa(r.Quotable), strconv.Itoa(r.Near), strconv.Itoa(r.Right))
	}
	return t
}

func truthTable(rows []selftest.Row) *layout.Table {
	timed, waiting := false, false
	if len(rows) > 0 && rows[0].Unit == selftest.Runs {
		return runsTable(rows)
	}
	for _, r := range rows {
		timed = timed || r.Unit == selftest.Nanoseconds
		waiting = waiting || r.Waiting >= 0
	}
	heads := []string{"", "truth", "reported"}
	if timed {
		heads = append(heads, "allowed", "")
	}
	if waiting {
		heads = append(heads, "a generator that waits")
	}
	t := &layout.Table{Columns: layout.Columns(layout.Number, layout.Plain, append(heads, "")...)}
	t.Columns[0].Kind, t.Columns[len(heads)].Kind = layout.Word, layout.Word
	for _, r := range rows {
		t.Row(truthRow(r, timed, waiting)...)
	}
	return t
}

// runsTable says in how many runs, or comparisons, the instrument was right.
func runsTable(rows []selftest.Row) *layout.Table {
	t := &layout.Table{Columns: layout.Columns(layout.Number, layout.Plain, "", "of", "right", "", "at least", "")}
	t.Columns[0].Kind, t.Columns[5].Kind = layout.Word, layout.Word
	for _, r := range rows {
		wrong := ""
		if !r.OK {
			wrong = "<- wrong"
		}
		t.Row(r.What, strconv.FormatInt(r.Want, 10), strconv.FormatInt(r.Got, 10),
			fmt.Sprintf("%.1f %%", 100*float64(r.Got)/float64(max(1, r.Want))), strconv.FormatInt(r.Want-r.Tolerance, 10), wrong)
	}
	return t
}

func truthRow(r selftest.Row, timed, waiting bool) []string {
	show := func(n int64) string { return quantity.Count(uint64(n)) }
	if r.Unit == selftest.Nanoseconds {
		show = quantity.Time
	}
	cells := []string{r.What, show(r.Want), show(r.Got)}
	if timed {
		switch {
		case r.Unit != selftest.Nanoseconds:
			cells = append(cells, "exactly", "")
		default: // no figure here can be below 0
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
		return append(cells, "<- wrong")
	case !r.Says:
		return append(cells, "<- the host moved it too far to tell")
	}
	return append(cells, "")
}

// mostLate is the largest fraction of a percentile that may be generator lateness in a VALID run.
const mostLate = 0.10

// resolution says what the host can measure: the highest rate it kept, and the shortest latency at that
// rate that lateness does not blur.
func resolution(f *selftest.Figures) string {
	if f == nil {
		return ""
	}
	rate, p99 := 0.0, int64(0)
	for _, l := range f.Lateness {
		if l.Reached && l.Rate > rate {
			rate, p99 = l.Rate, l.P99
		}
	}
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf("It tried rates and kept up to %s, with messages %s late at p99. At that rate it can measure a p99 of %s or more (lateness at most %.0f %% of it).",
		quantity.Rate(rate), quantity.Time(p99), quantity.Time(int64(float64(p99)/mostLate)), mostLate*100)
}

// End writes the result of the calibration, and returns the first error of all writes.
func (p *CalibrationPage) End(out *selftest.Calibration) error {
	failed, tests := out.Tests()
	if !out.Pass && failed == 0 { // it did not complete
		return p.err
	}
	p.write(func(page *layout.Page) {
		page.Gap()
		switch {
		case out.Pass && len(out.Only) > 0:
			page.Say(fmt.Sprintf("Passed: %s.", strings.Join(out.Only, ", ")))
		case out.Pass:
			page.Say(fmt.Sprintf("All %d self-tests passed: weir can be trusted on this host now.", tests))
			if says := resolution(out.Figures); says != "" {
				page.Say(says)
			}
			page.Labelled("next", layout.Plain.Of("weir run --out first"))
		default:
			page.Say(fmt.Sprintf("%d of %d self-tests failed: do not use figures taken on this host now.", failed, tests))
			page.Labelled("next", layout.Plain.Of("weir doctor  # what disturbs this host"))
		}
	})
	return p.err
}
