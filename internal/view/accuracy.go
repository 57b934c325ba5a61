package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/internal/view/layout"
)

// An accuracySection is a part of a calibration as a chapter of the page.
type accuracySection struct {
	part  string
	title string
	text  string
}

// accuracySections are the chapters, in order.
func accuracySections() []accuracySection {
	return []accuracySection{
		{selftest.PartFigures, "Lateness by rate, and the cost of a message", "Lateness is how long after its due instant the pacing thread turned to a message, with a driver that does nothing (noop). " +
			"The ceiling is the most that one producer on one core offers to it. " +
			"The floor is what any honest instrument does for a message: read the clock at its start and at its end, record the difference, and make a checksum of 64 B. It reads the clock that a run reads."},
		{selftest.PartStall, "The stall", "A generator that waits for each answer does not see most of what a frozen system did. The right column has what it would have reported. " +
			"The truth follows from the instant of the freeze and the schedule."},
		{selftest.PartQueue, "M/M/1", "First against the formula, in virtual time. Then a real run against Lindley's recursion over its own due instants."},
		{selftest.PartFaults, "Loss, duplication, order, corruption", "A queue that does each of these on purpose, and counts it."},
		{selftest.PartCapacity, "Capacity", "Searches for the highest rate at which a virtual system meets an objective, against the rate from the formula. Both ends may be a quarter off."},
		{selftest.PartClock, "The error of the clock", "A run reads the processor's counter where the kernel does the same. Two threads compare it with CLOCK_MONOTONIC."},
		{selftest.PartKernel, "Kernel instants", "weir run --wire says whose time a message took. A client and a server, in a process each, talk over loopback, and one of them is stopped on purpose. docs/method/kernel-instants.md explains the parts."},
		{selftest.PartIntervals, "Do 95 % intervals hold the truth?", "Systems with known percentiles, simulated through the code that judges real runs. " +
			"Lengths within the horizon, which docs/method/intervals.md explains. At least: 93 %, and three standard deviations for chance."},
		{selftest.PartCompare, "False and missed differences", "weir compare at its default level of 0.05, with sides whose runs differ by 1 % anyway. " +
			"Where nothing differs, no figure of the latencies may be claimed in 95 of 100 comparisons. Where something does, it must be found."},
		{selftest.PartQuoted, "Figures that may be quoted", "Whole runs against simulated systems, while the host is disturbed on purpose. 95 % of all runs must be right, and under each disturbance as many as that allows for chance."},
	}
}

// Accuracy fills the page on the accuracy of weir on one host.
func Accuracy(p *layout.Page, c *selftest.Calibration) {
	p.Heading("How accurate weir is")
	p.Say("What the instrument costs, how late it is, and how far its figures are from the truth, on one host, measured by weir itself. " +
		"METHOD.md defines the words.")
	for _, s := range []struct{ label, text string }{
		{"host", hostLine(c)}, {"date", c.TakenAt}, {"weir", buildLine(c)}, {"outcome", outcomeLine(c)},
	} {
		p.Labelled(s.label, layout.Plain.Of(s.text))
	}
	p.Gap()
	p.Say("The page for your host, and its data:")
	p.Verbatim("weir calibrate --json --out accuracy.md >accuracy.json")
	for _, s := range accuracySections() {
		if len(c.Only) > 0 && !slices.Contains(c.Only, s.part) {
			continue
		}
		s.show(p, c)
	}
}

func hostLine(c *selftest.Calibration) string {
	h := &c.Host
	parts := []string{h.CPUModel, fmt.Sprintf("%d cores", h.Cores), h.Distribution, strings.TrimSpace(h.OS + " " + h.Kernel), h.GoVersion}
	if h.ClockSource != "" {
		parts = append(parts, "clock source "+h.ClockSource)
	}
	if h.Virtual != nil && *h.Virtual {
		parts = append(parts, "virtual")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func buildLine(c *selftest.Calibration) string {
	if c.Revision == "" || strings.HasSuffix(c.Weir, c.Revision[:min(12, len(c.Revision))]) {
		return c.Weir
	}
	return c.Weir + ", commit " + c.Revision
}

func outcomeLine(c *selftest.Calibration) string {
	failed, done := c.Tests()
	if failed > 0 {
		return fmt.Sprintf("%d of %d self-tests failed", failed, done)
	}
	return fmt.Sprintf("all %d self-tests passed", done)
}

// show adds the chapter, and the command that repeats it.
func (s *accuracySection) show(p *layout.Page, c *selftest.Calibration) {
	p.Chapter(s.title)
	p.Say(s.text)
	command := "weir calibrate --only " + s.part
	if s.part == selftest.PartFigures && c.Figures != nil {
		p.Table(lateTable(c.Figures))
		p.Table(costTable(c.Figures))
	}
	for i := range c.Checks {
		if x := &c.Checks[i]; x.Part == s.part {
			showCheck(p, x)
		}
	}
	if s.part == selftest.PartQuoted {
		for i := range c.Quoted {
			q := &c.Quoted[i]
			if q.NotRun != "" {
				p.Say("Not run, " + disturbance(q.Disturbance) + ": " + q.NotRun)
				continue
			}
			p.Line(layout.Strong.Of(disturbance(q.Disturbance)), layout.Plain.Of(fmt.Sprintf(": right in %d of %s; %s", q.Right, quantity.Counted(q.Runs, "run", "runs"), quotedNotes(q))))
			p.Table(quotedTable(q.Rows))
			command = fmt.Sprintf("weir calibrate --only %s --runs %d", s.part, q.Runs)
		}
		if right, runs, _ := selftest.QuotedRight(c.Quoted); runs > 0 {
			p.Say(fmt.Sprintf("In all, right in %d of %s.", right, quantity.Counted(runs, "run", "runs")))
		}
	}
	p.Say("Repeat it:")
	p.Verbatim(command)
}

// partNames are the names of the parts of a message's time in calibrations of older versions, and today's.
func partNames() *strings.Replacer {
	return strings.NewReplacer("host out, ", "client and kernel, sending, ", "host in, ", "kernel and client, receiving, ", "wire and system", "network and system")
}

func showCheck(p *layout.Page, c *selftest.Check) {
	if c.NotRun != "" {
		p.Say("Not run, " + c.Name + ": " + c.NotRun)
		return
	}
	p.Line(passWord(c.Pass), layout.Plain.Of(", "), layout.Strong.Of(c.Name), layout.Plain.Of(": "+c.What+". "+checkNotes(c)+"."))
	if c.Why != "" {
		p.Say(layout.Sentence(c.Why))
	}
	rows := slices.Clone(c.Rows)
	for i := range rows {
		rows[i].What = partNames().Replace(rows[i].What)
	}
	p.Table(truthTable(rows))
}
