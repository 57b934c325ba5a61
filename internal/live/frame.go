package live

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/measure"
)

// A row is a line of the block: figures with their names.
type row struct {
	name   string
	fields []field
	alarm  bool
}

type field struct{ name, value string }

func (f field) says() string { return strings.TrimSpace(f.name + " " + f.value) }

// Widths of the wide form: a row's name, a field's name and its value.
const (
	nameWidth  = 10
	fieldWidth = 10
	valueWidth = 12
	wide       = 2 + nameWidth + 3*(fieldWidth+valueWidth)
)

// head says in words what is going on and how long it still takes.
func (v *View) head() string {
	what := v.now()
	if v.plan.Which == "" {
		return what
	}
	return v.plan.Which + ": " + what
}

func (v *View) now() string {
	f := v.seen
	if v.doing != "" {
		if took := time.Since(v.since); took >= 2*tick {
			return fmt.Sprintf("%s, %d s", v.doing, took/time.Second)
		}
		return v.doing
	}
	switch v.phase {
	case "":
		return "connecting"
	case "warmup":
		if f == nil {
			return "warming up" + left(v.plan.WarmUp)
		}
		return "warming up" + left(v.plan.WarmUp-time.Duration(f.at))
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
		return "measuring" + left(v.plan.End-time.Duration(f.at))
	case v.plan.Messages > 0:
		return fmt.Sprintf("measuring, %s of %s messages", quantity.Count(min(f.done, v.plan.Messages)), quantity.Count(v.plan.Messages))
	}
	return "measuring for " + quantity.Span(time.Duration(f.at).Round(time.Second))
}

// counts reports whether the head says how many messages the drain waits for: not before
// the first reading of it, and not of what others sent.
func (v *View) counts() bool {
	return v.phase == "drain" && v.plan.Sends && v.seen != nil && v.seen.at >= v.drained
}

func left(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return ""
	}
	return ", " + quantity.Span(d) + " left"
}

// rows are the figures.
func (v *View) rows() []row {
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
	var rows []row
	flow := row{name: "rate"}
	if p.Sends {
		if p.Closed {
			flow.fields = append(flow.fields, field{"sent", rate(f.last.Sent)})
		} else {
			flow.fields = append(flow.fields, field{"offered", rate(f.last.Scheduled)})
		}
		flow.fields = append(flow.fields, field{"confirmed", rate(f.last.Confirmed)})
	}
	if p.Receives {
		flow.fields = append(flow.fields, field{report.Arrived(p.Sends, p.Backlog), rate(f.last.Received)})
	}
	rows = append(rows, flow)
	phase := measure.Measure
	if v.phase == "warmup" {
		phase = measure.WarmUp
	}
	for _, d := range []struct {
		name string
		of   *[measure.NumPhases]measure.Counts
	}{{"send", &f.send}, {"e2e", &f.e2e}, {"rtt", &f.rtt}} {
		switch {
		case d.of[phase].Total() > 0:
			rows = append(rows, row{name: d.name, fields: []field{{"p50", at(&d.of[phase], 50)}, {"p99", at(&d.of[phase], 99)}, {"max", at(&d.of[phase], 100)}}})
		case phase == measure.Measure && d.of[measure.WarmUp].Total() > 0: // what is measured is still on its way
			rows = append(rows, row{name: d.name, fields: []field{{"", "none yet, only of warm-up messages"}}})
		}
	}
	held, bad := v.held(), trouble(&f.all)
	if len(held)+len(bad) > 0 && some(&f.send, &f.e2e, &f.rtt) {
		rows = append(rows, row{fields: []field{{"", "percentiles of completed messages only"}}})
	}
	var last []field
	if some(&f.late) {
		last = append(last, field{"p99", at(&f.late[phase], 99)})
	}
	if p.Sends && p.Receives && !v.counts() {
		last = append(last, field{"backlog", quantity.Count(f.backlog)})
	}
	if len(last) > 0 {
		name := "lateness"
		if last[0].name == "backlog" {
			name = ""
		}
		rows = append(rows, row{name: name, fields: last})
	}
	if len(held) > 0 {
		rows = append(rows, row{name: "waiting", fields: held, alarm: true})
	}
	if len(bad) > 0 {
		rows = append(rows, row{name: "trouble", fields: bad, alarm: true})
	}
	return rows
}

// trouble is what did not go well since the beginning.
func trouble(c *measure.Counters) []field {
	var fields []field
	if c.Failed > 0 {
		fields = append(fields, field{"failed", quantity.Count(c.Failed)})
	}
	if c.Dropped > 0 {
		fields = append(fields, field{"dropped", quantity.Count(c.Dropped)})
	}
	return fields
}

// held is what has piled up in an open loop while the system stalls: a second's
// worth and more that is sent and not confirmed, or due and not sent. In the
// drain the head says it.
func (v *View) held() []field {
	f := v.seen
	if v.plan.Closed || v.phase == "drain" || f.seconds <= 0 {
		return nil
	}
	second := max(float64(f.last.Scheduled)/f.seconds, 1)
	var fields []field
	if n := f.unconfirmed(); float64(n) >= second {
		fields = append(fields, field{quantity.Count(n), "to be confirmed"})
	}
	if n := f.waiting(); float64(n) >= second {
		fields = append(fields, field{quantity.Count(n), "to be sent"})
	}
	return fields
}

// some reports whether any phase of any of them has a sample.
func some(all ...*[measure.NumPhases]measure.Counts) bool {
	return slices.ContainsFunc(all, func(c *[measure.NumPhases]measure.Counts) bool {
		return c[measure.WarmUp].Total()+c[measure.Measure].Total() > 0
	})
}

// at is a percentile so far, for eyes only; "-" where there is none yet.
func at(c *measure.Counts, p float64) string {
	if c.Total() == 0 {
		return "-"
	}
	return quantity.Time(c.Percentile(p))
}

// frame is the block for a terminal of cols columns, and no more lines than it
// can hold; lines 0: not known.
func (v *View) frame(cols, lines int) []line {
	most := cols - 1 // the last column would break the line
	rows := v.rows()
	var out []line
	if head := v.head(); v.plan.Which == "" || utf8.RuneCountInString(head) <= most {
		out = append(out, v.paint(bold, cut(head, most)))
	} else {
		out = append(out, v.paint(bold, cut(v.plan.Which+":", most)), v.paint(bold, cut(v.now(), most)))
	}
	for _, r := range rows {
		if most >= wide-1 {
			out = append(out, v.spread(r))
		} else {
			out = append(out, v.flow(r, most)...)
		}
	}
	if lines > 1 && len(out) > lines-1 {
		return []line{v.paint("", cut(v.plain(), most))}
	}
	return out
}

func (v *View) paint(code, s string) line {
	if !v.to.colour || code == "" {
		return line{s, s}
	}
	return line{s, code + s + reset}
}

// spread writes a row in columns.
func (v *View) spread(r row) line {
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
	return line{text.String(), painted.String()}
}

// flow writes a row in as many lines of at most width characters as it takes.
func (v *View) flow(r row, width int) []line {
	code := ""
	if r.alarm {
		code = red
	}
	var out []line
	now := r.name
	for _, f := range r.fields {
		s := f.says()
		switch {
		case now == "":
			now = s
		case utf8.RuneCountInString(now)+1+utf8.RuneCountInString(s) > width:
			out = append(out, v.paint(code, cut(now, width)))
			now = "  " + s
		default:
			now += " " + s
		}
	}
	return append(out, v.paint(code, cut(now, width)))
}

// plain is all of it in one line.
func (v *View) plain() string {
	parts := []string{v.head()}
	for _, r := range v.rows() {
		words := make([]string, 0, len(r.fields))
		for _, f := range r.fields {
			words = append(words, f.says())
		}
		switch r.name {
		case "rate", "trouble", "":
			parts = append(parts, strings.Join(words, ", "))
		default:
			parts = append(parts, r.name+" "+strings.Join(words, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	if n < 1 {
		return ""
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
