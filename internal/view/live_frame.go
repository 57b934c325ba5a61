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

// Widths of the wide form: a row's name, a field's name and its value.
const (
	nameWidth  = 10
	fieldWidth = 10
	valueWidth = 12
	widestRow  = 2 + nameWidth + 3*(fieldWidth+valueWidth)
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
			rows = append(rows, liveRow{name: d.name, spare: spare[d.name], fields: []liveField{{"p50", soFar(&d.of[phase], 50)}, {"p99", soFar(&d.of[phase], 99)}, {"max", soFar(&d.of[phase], 100)}}})
		case phase == measure.Measure && d.of[measure.WarmUp].Total() > 0: // measured messages are still in flight
			rows = append(rows, liveRow{name: d.name, spare: spare[d.name], fields: []liveField{{"", "none yet, only of warm-up messages"}}})
		}
	}
	held, wrong := v.held(), f.all.Failed+f.all.Dropped+f.missed > 0
	if (len(held) > 0 || wrong) && anySample(&f.send, &f.e2e, &f.rtt) {
		rows = append(rows, liveRow{spare: spareNote, fields: []liveField{{"", "percentiles of completed messages only"}}})
	}
	var last []liveField
	if anySample(&f.late) {
		last = append(last, liveField{"p99", soFar(&f.late[phase], 99)})
	}
	if p.Sends && p.Receives && !v.counts() {
		last = append(last, liveField{"backlog", quantity.Count(f.backlog)})
	}
	if len(last) > 0 {
		name := "lateness"
		if last[0].name == "backlog" {
			name = ""
		}
		rows = append(rows, liveRow{name: name, spare: spareLateness, fields: last})
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
		rows[i] = liveRow{spare: spareChart, fields: []liveField{{"", line.String()}}}
	}
	rows[0].name = "p99"
	rows[high-1].fields = append(rows[high-1].fields, liveField{"", " " + quantity.Time(least) + " to " + quantity.Time(most)})
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
	var out []paintedLine
	if head := v.head(); v.plan.Which == "" || utf8.RuneCountInString(head) <= most {
		out = append(out, v.paint(bold, cutTo(head, most)))
	} else {
		out = append(out, v.paint(bold, cutTo(v.of()+":", most)), v.paint(bold, cutTo(v.now(), most)))
	}
	if len(rows) > 0 && most >= widestRow-1 {
		rows = append(rows, v.chart(min(most-2-nameWidth-24, mostBars), chartLines(lines))...)
	}
	for {
		block := slices.Clone(out)
		spare := 0
		for _, r := range rows {
			spare = max(spare, r.spare)
			if most >= widestRow-1 {
				block = append(block, v.spread(r))
			} else {
				block = append(block, v.flow(r, most)...)
			}
		}
		switch {
		case lines <= 1 || len(block) < lines:
			return block
		case spare == 0:
			return []paintedLine{v.paint("", cutTo(v.plain(), most))}
		}
		last := len(rows) - 1
		for rows[last].spare != spare {
			last--
		}
		rows = slices.Delete(rows, last, last+1)
	}
}

func (v *Live) paint(code, s string) paintedLine {
	if !v.to.colour || code == "" {
		return paintedLine{s, s}
	}
	return paintedLine{s, code + s + reset}
}

// spread lays a row out in columns.
func (v *Live) spread(r liveRow) paintedLine {
	var text, painted strings.Builder
	put := func(s, code string, width int) {
		l := v.paint(code, s)
		pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
		text.WriteString(s + pad)
		painted.WriteString(l.painted + pad)
	}
	value := ""
	if r.alarm {
		value = red
	}
	put("  ", "", 2)
	put(r.name, dim, nameWidth)
	for i, f := range r.fields {
		if f.name != "" {
			put(f.name, dim, fieldWidth)
		}
		if i == len(r.fields)-1 {
			put(f.value, value, 0)
		} else {
			put(f.value, value, valueWidth)
		}
	}
	return paintedLine{text.String(), painted.String()}
}

// flow writes a row in as many lines of at most width characters as it needs.
func (v *Live) flow(r liveRow, width int) []paintedLine {
	code := ""
	if r.alarm {
		code = red
	}
	var out []paintedLine
	now := r.name
	for _, f := range r.fields {
		s := f.says()
		switch {
		case now == "":
			now = s
		case utf8.RuneCountInString(now)+1+utf8.RuneCountInString(s) > width:
			out = append(out, v.paint(code, cutTo(now, width)))
			now = "  " + s
		default:
			now += " " + s
		}
	}
	return append(out, v.paint(code, cutTo(now, width)))
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
