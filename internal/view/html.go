package view

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/glossary"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// mostDrawn is how many runs of an overview have charts of their own, so that browsers can open the page.
const mostDrawn = 12

// HTML writes a result as an HTML page: the contents of Text, charts of its percentiles and seconds, and
// the evidence. The page is self-contained, loads nothing, runs no script but weir's own, and text from the
// result is inert. o.Dir is not used, so the page does not depend on where its folder is. It returns the
// error of w.
func HTML(w io.Writer, e Entry, o Options) error {
	p := new(layout.Page)
	p.Heading(measured(e.Result))
	one(p, e, Options{Session: o.Session, Percentiles: o.Percentiles, lone: true, first: result.FileScenario, drawn: "c-"})
	if len(o.files) > 0 {
		p.Gap()
		p.Chapter("files of this run")
		var spans []layout.Span
		for i, name := range o.files {
			if i > 0 {
				spans = append(spans, plain(", "))
			}
			spans = append(spans, layout.Span{Text: name, Link: "./" + url.PathEscape(name)})
		}
		p.Line(spans...)
	}
	return browser(measured(e.Result)).Write(w, p)
}

const mostNamed = 3

// measuredIn names the systems of several runs.
func measuredIn(entries []Entry) string {
	var names []string
	for _, e := range entries {
		if name := cmp.Or(layout.Shortened(e.Result.System.Driver, longestLabel), "a system"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if n := len(names); n > mostNamed {
		names = append(names[:mostNamed], quantity.Counted(n-mostNamed, "other system", "other systems"))
	}
	return and(names)
}

// and joins names: "a, b and c".
func and(names []string) string {
	last := len(names) - 1
	if last <= 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// measured names the measured system in a title.
func measured(r *result.Result) string {
	p := r.Throughput
	text := r.System.Driver
	size := ""
	if p.SentPerS > 0 && p.SentBytesPerS > 0 {
		size = " of " + quantity.Bytes(p.SentBytesPerS/p.SentPerS)
	}
	switch perS, known := p.Received(); {
	case r.Consuming():
		text += ": what it delivers"
	case r.Run.Mode == result.ModeBacklog:
		text += ": draining a backlog"
		if known && perS > 0 {
			text += " at " + quantity.Rate(perS)
		}
	case r.Run.Loop == result.LoopClosed:
		text += ": saturated, " + quantity.Rate(p.ConfirmedPerS) + size
	case r.Run.Mode == "request":
		text += ": round trips at " + quantity.Rate(p.OfferedPerS) + size
	default:
		text += ": latency at " + quantity.Rate(p.OfferedPerS) + size
	}
	took := r.Run.MeasureS
	if r.Run.Mode == result.ModeBacklog { // it is drained after the window
		took = p.ReceiveS
	}
	if took > 0 {
		text += " for " + lasting(took)
	}
	text += happened(r)
	if name := title(r); name != r.System.Driver {
		text += " (" + layout.Shortened(name, 60) + ")"
	}
	return text
}

// happened names what happened to a system in a run, as far as it was planned.
func happened(r *result.Result) string {
	var all []string
	for i := range r.Faults[:min(len(r.Faults), mostNamed)] {
		f := &r.Faults[i]
		all = append(all, faulted(f).Text+" at "+originOf(r).says(f.BeganNS))
	}
	if n := len(r.Faults) - mostNamed; n > 0 {
		all = append(all, quantity.Counted(n, "more fault", "more faults"))
	}
	if x := r.Pause; x != nil {
		all = append(all, "consumers paused for "+quantity.Time(x.ResumedNS-x.BeganNS))
	}
	if n := len(r.Stages); n > 1 {
		all = append(all, quantity.Counted(n, "stage", "stages"))
	}
	if len(all) == 0 {
		return ""
	}
	return ", with " + and(all)
}

// OverviewHTML writes several results as an HTML page: the contents of Overview, and each run below it,
// folded. It returns the error of w.
func OverviewHTML(w io.Writer, entries []Entry, o Options) error {
	p := new(layout.Page)
	name := o.named(runs(len(entries)) + " of " + measuredIn(entries))
	p.Heading(name)
	names := labels(entries)
	all := new(layout.Page)
	if len(o.Searches) == 1 {
		summary(p, entries, o)
		p.Contents()
		o.Searches[0].drawn(p, true, o.Link)
		p.Gap()
		tally(p, entries)
		compared(all, entries)
	} else {
		tally(p, entries)
		found, different := scenarios(entries)
		if found == nil {
			p.Item(layout.Doubtful.Of("these runs cannot be put beside one another: " + different.Error()))
			summary(p, entries, o)
			p.Contents()
			p.Gap()
			compared(p, entries)
			sameTime(p, entries, names)
		} else {
			c := comparison{p, found.Comparison}
			c.spoken(different)
			differences(p, entries, true)
			c.systems(different)
			o.spoken = true
			summary(p, entries, o)
			p.Contents()
			of := c.courses(func(dir string) *Course {
				if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Dir == dir }); i >= 0 {
					return entries[i].Course
				}
				return nil
			})
			c.curves(of)
			varied(p, entries)
			c.sameTime(of)
			c.used()
			compared(all, entries)
		}
	}
	p.Gap()
	p.Chapter("each run")
	charts, which := o.drawing(entries)
	if which != "" {
		p.Say(which + " have charts; weir report --html of a folder draws those of any other.")
	}
	if !all.Empty() {
		p.Fold(all, plain("all runs in one table"))
	}
	for i, e := range entries {
		inside := new(layout.Page)
		inside.Line(layout.Faint.Of(cmp.Or(e.Dir, title(e.Result)) + ", " + born(e)))
		if x := o.Link.span("the page of this run", e.Dir); x.Link != "" {
			inside.Line(x)
		}
		x := Options{Session: o.Session, drawn: fmt.Sprintf("c%d-", i+1)}
		if !charts[i] {
			x.drawn = ""
		}
		one(inside, e, x)
		status := e.Result.Verdict.Status
		p.Fold(inside, plain(names[i]+" "), colour(status).Of(strings.ToUpper(string(status))))
	}
	return browser(name).Write(w, p)
}

// drawing reports which of many runs have charts of their own, and says so: of a search those at the ends of its
// range, else the first.
func (o Options) drawing(entries []Entry) (charts []bool, says string) {
	charts, left := make([]bool, len(entries)), mostDrawn
	choose := func(is func(i int) bool) {
		for i := range entries {
			if left > 0 && !charts[i] && is(i) {
				charts[i] = true
				left--
			}
		}
	}
	if len(entries) > mostDrawn {
		says = fmt.Sprintf("The first %d", mostDrawn)
		if len(o.Searches) == 1 {
			r := o.Searches[0].Report
			choose(func(i int) bool {
				return slices.ContainsFunc(r.Probes, func(p capacity.Probed) bool {
					return p.Dir == filepath.Base(entries[i].Dir) && (p.RatePerS == r.Answer.PassPerS || p.RatePerS == r.Answer.FailPerS)
				})
			})
		}
		if left < mostDrawn {
			return charts, "The probes at the ends of the range"
		}
	}
	choose(func(int) bool { return true })
	return charts, says
}

// browser sets how a page becomes HTML.
func browser(title string) layout.HTML {
	return layout.HTML{Title: title, Schema: result.SchemaReport, Words: glossary.Explained(), Footer: "The figures are in result.json. " +
		aboutScript}
}

// aboutScript explains the page's script.
const aboutScript = "This page works offline and loads nothing. Point at a chart for its values."

// born says when a run started, and which run it is.
func born(e Entry) string {
	r := e.Result.Run
	at := r.StartedAt
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = t.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	var parts []string
	for _, s := range []string{at, r.ID} {
		if s != "" {
			parts = append(parts, layout.Shortened(s, 80))
		}
	}
	if e.Result.Events > 0 {
		parts = append(parts, strings.TrimPrefix(events(e.Result.Events), ", "))
	}
	return cmp.Or(strings.Join(parts, ", "), "a run")
}
