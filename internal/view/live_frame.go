package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/measure"
)

// A liveRow is a line of the block: figures with their names.
type liveRow struct {
	name   string
	fields []liveField
	table  bool // of the table of percentiles
	drawn  bool // a line of a chart, which is never wrapped
	alarm  bool
	spare  int // a block that is too high leaves out the rows with the largest first; 0: it never does
}

// What a low terminal can spare.
const (
	spareWaiting = iota + 1
	spareSend
	spareLateness
	spareChart
	spareNote
)

type liveField struct{ name, value string }

func (f liveField) says() string { return strings.TrimSpace(f.name + " " + f.value) }

// Widths of the columns of the block: names take as much as the label of a line.
const (
	nameWidth  = 10
	valueWidth = 7
	chartSides = nameWidth + 26 // what stands before and behind the chart
	leastChart = 10
)

// head says what is happening and how long it will take.
func (v *Live) head() string {
	if of := v.of(); of != "" {
		return of + ": " + v.now()
	}
	return v.now()
}

// now says what is happening, how much of it is over and how much is left.
func (v *Live) now() string { return v.stage() + v.left() }

// left says how much of a stage is left, where that is known.
func (v *Live) left() string {
	at := time.Duration(0)
	if v.seen != nil {
		at = time.Duration(v.seen.at)
	}
	switch {
	case v.doing != "":
		return ""
	case v.phase == "warmup":
		return timeLeft(v.plan.WarmUp - at)
	case v.phase == "measure" && v.seen != nil && v.plan.End > 0:
		return timeLeft(v.plan.End - at)
	}
	return ""
}

// of names the run and its system.
func (v *Live) of() string {
	switch {
	case v.plan.Which == "" && v.doing != "": // it names the system if need be
		return ""
	case v.plan.Which == "":
		return v.plan.System
	case strings.Contains(v.plan.Which, v.plan.System):
		return v.plan.Which
	}
	return v.plan.Which + " of " + v.plan.System
}

// stage says what is happening, and how much of it is over.
func (v *Live) stage() string {
	f := v.seen
	if v.doing != "" {
		if took := time.Since(v.since); took >= 2*liveTick {
			return fmt.Sprintf("%s, %d s", v.doing, took/time.Second)
		}
		return v.doing
	}
	switch v.phase {
	case "":
		return "connecting"
	case "warmup":
		if f == nil {
			return "warming up"
		}
		return "warming up" + v.elapsed()
	case "after the drain":
		return "listening for late messages"
	case "drain":
		what, open := "draining", "delivered"
		switch {
		case v.plan.Backlog:
			what = "draining the backlog"
		case !v.plan.Receives:
			open = "confirmed"
		}
		if !v.counts() {
			return what
		}
		n := f.underWay()
		if n == 0 {
			return what + ": all messages " + open
		}
		s := what + ": " + quantity.Count(n) + " not yet " + open
		if most := (v.plan.Drain - time.Duration(f.at-v.drained)).Round(time.Second); most > 0 {
			s += ", " + quantity.Span(most) + " more at most"
		}
		return s
	}
	switch {
	case f == nil:
		return "measuring"
	case v.plan.End > 0:
		return "measuring" + v.elapsed()
	case v.plan.Messages > 0:
		return fmt.Sprintf("measuring, %s of %s messages", quantity.Count(min(f.done, v.plan.Messages)), quantity.Count(v.plan.Messages))
	}
	return "measuring for " + quantity.Span(time.Duration(f.at).Round(time.Second))
}

// counts reports whether the head shows how many messages the drain waits for: not before its first
// reading, and not for messages that others sent.
func (v *Live) counts() bool {
	return v.phase == "drain" && v.plan.Sends && v.seen != nil && v.seen.at >= v.drained
}

// elapsed says how much of the run is over.
func (v *Live) elapsed() string {
	at := time.Duration(v.seen.at).Round(time.Second)
	if v.plan.End <= 0 || at >= v.plan.End {
		return ""
	}
	return fmt.Sprintf(", %s of %s", quantity.Span(at), quantity.Span(v.plan.End))
}

func timeLeft(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return ""
	}
	return ", " + quantity.Span(d) + " left"
}

// rows returns the figures.
func (v *Live) rows() []liveRow {
	f, p := v.seen, v.plan
	if f == nil || v.phase == "" {
		return nil
	}
	rate := func(n uint64) string {
		if f.seconds <= 0 {
			return quantity.Rate(0)
		}
		return quantity.Rate(float64(n) / f.seconds)
	}
	var rows []liveRow
	flow := liveRow{name: "rate"}
	if p.Sends {
		if p.Closed {
			flow.fields = append(flow.fields, liveField{"sent", rate(f.last.Sent)})
		} else {
			flow.fields = append(flow.fields, liveField{"offered", rate(f.last.Scheduled)})
		}
		flow.fields = append(flow.fields, liveField{"confirmed", rate(f.last.Confirmed)})
	}
	if p.Receives {
		flow.fields = append(flow.fields, liveField{Arrived(p.Sends, p.Backlog), rate(f.last.Received)})
	}
	if p.Sends && p.Receives && !v.counts() {
		flow.fields = append(flow.fields, liveField{"backlog", quantity.Count(f.backlog)})
	}
	rows = append(rows, flow)
	phase := measure.Measure
	if v.phase == "warmup" {
		phase = measure.WarmUp
	}
	spare := map[string]int{}
	if p.Receives {
		spare["send"] = spareSend
	}
	for _, d := range []struct {
		name string
		of   *[measure.NumPhases]measure.Counts
	}{{"send", &f.send}, {"e2e", &f.e2e}, {"rtt", &f.rtt}} {
		switch {
		case d.of[phase].Total() > 0:
			rows = append(rows, liveRow{name: d.name, table: true, spare: spare[d.name], fields: []liveField{{"p50", soFar(&d.of[phase], 50)}, {"p99", soFar(&d.of[phase], 99)}, {"max", soFar(&d.of[phase], 100)}}})
		case phase == measure.Measure && d.of[measure.WarmUp].Total() > 0: // measured messages are still in flight
			rows = append(rows, liveRow{name: d.name, spare: spare[d.name], fields: []liveField{{"", "none yet, only of warm-up messages"}}})
		}
	}
	if f.late[phase].Total() > 0 {
		rows = append(rows, liveRow{name: "lateness", table: true, spare: spareLateness, fields: []liveField{{"p99", soFar(&f.late[phase], 99)}}})
	}
	held, wrong := v.held(), f.all.Failed+f.all.Dropped+f.missed > 0
	if (len(held) > 0 || wrong) && anySample(&f.send, &f.e2e, &f.rtt) {
		rows = append(rows, liveRow{spare: spareNote, fields: []liveField{{"", "percentiles of completed messages only"}}})
	}
	if len(held) > 0 {
		rows = append(rows, liveRow{name: "waiting", spare: spareWaiting, fields: held, alarm: true})
	}
	rows = append(rows, liveRow{name: "so far", fields: v.outcomes(), alarm: wrong})
	if len(v.faults) > 0 {
		rows = append(rows, liveRow{name: "fault", fields: []liveField{{"", strings.Join(v.faults, ", ")}}, alarm: true})
	}
	return rows
}

// outcomes lists what went wrong since the start. Most losses are known only at the end.
func (v *Live) outcomes() []liveField {
	var fields []liveField
	if v.plan.Receives {
		known := "none known"
		if n := v.seen.missed; n > 0 {
			known = quantity.Count(n)
		}
		fields = append(fields, liveField{"lost", known})
	}
	if v.plan.Sends {
		fields = append(fields, liveField{"failed", quantity.Count(v.seen.all.Failed)})
	}
	if n := v.seen.all.Dropped; n > 0 {
		fields = append(fields, liveField{"dropped", quantity.Count(n)})
	}
	return fields
}

// bars are the parts of a character cell that a bar fills, in eighths.
const bars = " ▁▂▃▄▅▆▇█"

// chart draws p99 of each interval on a logarithmic scale, in high lines of at most width characters: the latest last.
func (v *Live) chart(width, high int) []liveRow {
	if v.seen == nil {
		return nil
	}
	all := v.seen.p99[max(0, len(v.seen.p99)-max(0, width)):]
	least, most := int64(math.MaxInt64), int64(0)
	for _, ns := range all {
		if ns > 0 {
			least, most = min(least, ns), max(most, ns)
		}
	}
	if len(all) < 2 || most == 0 {
		return nil
	}
	from := min(float64(least), float64(most)/10) // a decade at least: small differences stay small
	cells := []rune(bars)
	rows := make([]liveRow, high)
	for i := range rows {
		var line strings.Builder
		for _, ns := range all {
			eighths := 0
			if ns > 0 {
				eighths = 1 + int(math.Round(float64(8*high-1)*math.Log(float64(ns)/from)/math.Log(float64(most)/from)))
			}
			line.WriteRune(cells[min(8, max(0, eighths-8*(high-1-i)))])
		}
		rows[i] = liveRow{drawn: true, spare: spareChart, fields: []liveField{{"", line.String()}}}
	}
	rows[0].name = "p99"
	rows[high-1].fields[0].value += "  " + quantity.Time(least) + " to " + quantity.Time(most)
	return rows
}

// chartLines is how many lines the chart may have on a terminal of lines lines: a part of those that are left.
func chartLines(lines int) int { return min(max(1, (lines-16)/4), 6) }

// held shows messages that pile up in an open loop while the system stalls: at least a second's worth sent
// and not confirmed, or due and not sent. In the drain the head shows it.
func (v *Live) held() []liveField {
	f := v.seen
	if v.plan.Closed || v.phase == "drain" || f.seconds <= 0 {
		return nil
	}
	second := max(float64(f.last.Scheduled)/f.seconds, 1)
	var fields []liveField
	if n := f.unconfirmed(); float64(n) >= second {
		fields = append(fields, liveField{quantity.Count(n), "to be confirmed"})
	}
	if n := f.waiting(); float64(n) >= second {
		fields = append(fields, liveField{quantity.Count(n), "to be sent"})
	}
	return fields
}

// anySample reports whether any phase of any of them has a sample.
func anySample(all ...*[measure.NumPhases]measure.Counts) bool {
	return slices.ContainsFunc(all, func(c *[measure.NumPhases]measure.Counts) bool {
		return c[measure.WarmUp].Total()+c[measure.Measure].Total() > 0
	})
}

// soFar is a percentile so far, for display only; "-" if there is none yet.
func soFar(c *measure.Counts, p float64) string {
	if c.Total() == 0 {
		return "-"
	}
	return quantity.Time(c.Percentile(p))
}

// frame returns the block for a terminal of cols columns, with no more lines than fit; lines 0: unknown.
func (v *Live) frame(cols, lines int) []paintedLine {
	most := cols - 1 // writing the last column would wrap the line
	rows := v.rows()
	if wide := min(most-chartSides, mostBars); len(rows) > 0 && wide >= leastChart {
		rows = append(rows, v.chart(wide, chartLines(lines))...)
	}
	for {
		block := v.block(rows, most)
		if lines <= 1 || len(block) < lines {
			return block
		}
		spare, at := 0, 0
		for i, r := range rows {
			if r.spare > 0 && r.spare >= spare {
				spare, at = r.spare, i
			}
		}
		if spare == 0 {
			line := cutTo(v.plain(), most)
			return []paintedLine{{line, line}}
		}
		rows = slices.Delete(rows, at, at+1)
	}
}

// block lays rows out, below the head, in lines of at most most characters.
func (v *Live) block(rows []liveRow, most int) []paintedLine {
	p := new(layout.Page)
	p.Line(layout.Strong.Of(v.head()))
	for i, r := range rows {
		tone := layout.Plain
		if r.alarm {
			tone = layout.Bad
		}
		switch {
		case !r.table:
			says := make([]string, len(r.fields))
			for i, f := range r.fields {
				says[i] = f.says()
			}
			p.Add(layout.Block{Form: layout.Labelled, Mark: layout.Faint.Of(r.name), Whole: r.drawn, Spans: []layout.Span{tone.Of(strings.Join(says, ", "))}})
		case i == 0 || !rows[i-1].table:
			p.Table(percentiles(rows[i:]))
		}
	}
	text := layout.Text{Width: most, Fold: true, Colour: v.to.colour}
	painted := strings.Split(strings.TrimSuffix(text.Page(p), "\n"), "\n")
	text.Colour = false
	plain := strings.Split(strings.TrimSuffix(text.Page(p), "\n"), "\n")
	out := make([]paintedLine, len(plain))
	for i, l := range plain {
		out[i] = paintedLine{l, painted[i]}
		if utf8.RuneCountInString(l) > most { // a long word
			out[i].text = cutTo(l, most)
			out[i].painted = out[i].text
		}
	}
	return out
}

// percentiles is the table of the first rows that belong into one.
func percentiles(rows []liveRow) *layout.Table {
	heads := []string{"p50", "p99", "max"}
	t := &layout.Table{Columns: append([]layout.Column{{Kind: layout.Word, Key: true, Least: nameWidth}}, layout.Columns(layout.Number, layout.Faint, heads...)...)}
	for i := range heads {
		t.Columns[i+1].Key, t.Columns[i+1].Least = false, valueWidth
	}
	for _, r := range rows {
		if !r.table {
			break
		}
		cells := []layout.Span{layout.Faint.Of(r.name), {}, {}, {}}
		for _, f := range r.fields {
			cells[1+slices.Index(heads, f.name)] = layout.Plain.Of(f.value)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// Limits of a line in place of the block: of all, and of the names at its start where they would take the room
// of figures.
const (
	widestLine = 100
	widestName = 30
)

// plain returns the line in place of the block: what matters of it, the most important first, as far as
// there is room.
func (v *Live) plain() string {
	name, line, mark := v.of(), v.stage(), "; "
	if name != "" {
		line = ": " + line
	}
	room := widestLine - min(utf8.RuneCountInString(name), widestName)
	for _, s := range v.brief() {
		if utf8.RuneCountInString(line+mark+s) > room {
			break
		}
		line += mark + s
		mark = ", "
	}
	return layout.Shortened(name, widestLine-utf8.RuneCountInString(line)) + line
}

// brief lists the figures of the line: the rate of what completes, what went wrong, p99, and what waits if
// it becomes more.
func (v *Live) brief() []string {
	f := v.seen
	if f == nil || v.phase == "" || v.doing != "" {
		return nil
	}
	var out []string
	say := func(name, value string) { out = append(out, name+" "+value) }
	rate := func(n uint64) float64 { return float64(n) / max(f.seconds, shortestInterval.Seconds()) }
	drains := v.phase != "warmup" && v.phase != "measure"
	switch {
	case v.plan.Sends && !drains:
		say("confirmed", quantity.Rate(rate(f.last.Confirmed)))
	case v.plan.Receives && (!drains || v.plan.Backlog):
		say(Arrived(v.plan.Sends, v.plan.Backlog), quantity.Rate(rate(f.last.Received)))
	}
	wrong := false
	for _, x := range []struct {
		name string
		n    uint64
	}{{"lost", f.missed}, {"failed", f.all.Failed}, {"dropped", f.all.Dropped}} {
		if x.n > 0 {
			say(x.name, quantity.Count(x.n))
			wrong = true
		}
	}
	if drains {
		return out
	}
	held := v.held()
	phase := measure.Measure
	if v.phase == "warmup" {
		phase = measure.WarmUp
	}
	for _, d := range []struct {
		name string
		of   *measure.Counts
	}{{"e2e", &f.e2e[phase]}, {"rtt", &f.rtt[phase]}, {"send", &f.send[phase]}} {
		if d.of.Total() == 0 {
			continue
		}
		if wrong || len(held) > 0 {
			d.name += " of completed"
		}
		say(d.name, "p99 "+soFar(d.of, 99))
		break
	}
	for _, h := range held {
		out = append(out, h.says())
	}
	if b := float64(f.backlog); f.backlog > v.lined.backlog && b >= max(rate(f.last.Confirmed), rate(f.last.Scheduled))*growsFrom {
		say("backlog", quantity.Count(f.backlog))
	}
	return out
}

// growsFrom is the least backlog that a line shows, in seconds of the load: below it are messages on their way.
const growsFrom = 0.1

// cutTo shortens s to n characters.
func cutTo(s string, n int) string {
	if n < 1 {
		return ""
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
