package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/result"
)

// Options say how Text writes.
type Options struct {
	Dir    string // the result folder, named at the end; "" leaves it out
	Partly bool   // not all of it could be written
	Colour bool   // ANSI escape sequences
}

// Text writes a result for a terminal: the verdict first, the percentiles with
// response beside service, the outcomes, and where the files are. The error is
// that of w.
func Text(w io.Writer, r *result.Result, o Options) error {
	t := &text{painter: painter(o.Colour), r: r}
	t.verdict()
	t.system()
	t.latency()
	t.outcomes()
	t.throughput()
	if o.Dir != "" {
		t.b.WriteString("\nwritten to " + t.paint(bold, o.Dir) + partly(o.Partly) + events(r.Events) + "\n")
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func partly(is bool) string {
	if !is {
		return ""
	}
	return ", but not all of it: see above"
}

func events(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 event in events.jsonl"
	}
	return fmt.Sprintf(", %s events in events.jsonl", Count(uint64(n)))
}

type text struct {
	painter
	b strings.Builder
	r *result.Result
}

// verdict writes the status, and every check that is not valid with what to do.
func (t *text) verdict() {
	v := t.r.Verdict
	word := strings.ToUpper(string(v.Status))
	says := map[result.Status]struct{ colour, text string }{
		result.Valid:   {green, "the figures can be used"},
		result.Suspect: {yellow, "use the figures with the reservations below"},
		result.Invalid: {red, "the figures must not be used"},
	}[v.Status]
	t.b.WriteString(t.paint(says.colour, word) + "  " + says.text)
	if t.r.Run.Interrupted {
		t.b.WriteString("; interrupted, so these are of what ran until then")
	}
	t.b.WriteString("\n")
	if s := saturated(t.r); s != "" {
		t.b.WriteString(t.paint(yellow, "  "+s) + "\n")
	}
	var notRun []string
	for _, c := range v.Checks {
		switch c.Status {
		case result.Invalid, result.Suspect:
			t.b.WriteString("  " + t.paint(map[result.Status]string{result.Invalid: red, result.Suspect: yellow}[c.Status], string(c.Status)) + "  " + c.Name)
			if c.Value != "" {
				t.b.WriteString(": " + c.Value)
			}
			if c.Limit != "" {
				t.b.WriteString(" (limit " + c.Limit + ")")
			}
			t.b.WriteString("\n")
			if c.Why != "" {
				t.b.WriteString("           " + c.Why + "\n")
			}
		case result.NotRun:
			notRun = append(notRun, c.Name)
		}
	}
	// The verdict is on the figures; a system that loses messages can be measured
	// well, and its user should read that first.
	if all := t.r.MessagesAll; all.Lost+all.Corrupted > 0 {
		t.b.WriteString(t.paint(red, fmt.Sprintf("  the system lost %s messages and corrupted %s", Count(all.Lost), Count(all.Corrupted))) + "\n")
	}
	if all := t.r.MessagesAll; all.Failed > 0 {
		t.b.WriteString(t.paint(red, fmt.Sprintf("  the system failed %s of %s messages", Count(all.Failed), Count(all.Sent))) + "\n")
	}
	if all := t.r.MessagesAll; all.Unconfirmed > 0 {
		t.b.WriteString(t.paint(red, fmt.Sprintf("  %s of %s messages were never confirmed", Count(all.Unconfirmed), Count(all.Sent))) + "\n")
	}
	if len(notRun) > 0 {
		t.b.WriteString(t.paint(dim, "  not checked: "+strings.Join(notRun, ", ")) + "\n")
	}
}

// saturated says what a system took that did not take the rate, "" for one that
// did. That is by design no reason against the figures, so that the verdict
// alone would hide it. Where the generator itself did not keep the rate, or
// nothing ran to be kept, the checks say so instead.
func saturated(r *result.Result) string {
	took := func(c result.Check) bool {
		return c.Name == "offered rate" && c.Status == result.Valid && strings.HasPrefix(c.Value, "the system took ")
	}
	if !slices.ContainsFunc(r.Verdict.Checks, took) {
		return ""
	}
	m, p := r.Messages, r.Throughput
	const says = "the system did not take the rate: "
	if left := m.Scheduled - min(m.Sent, m.Scheduled); left*200 > m.Scheduled { // over half a percent
		var parts []string
		if m.Dropped > 0 {
			parts = append(parts, Count(m.Dropped)+" dropped")
		}
		if m.Unsent > 0 {
			parts = append(parts, Count(m.Unsent)+" left unsent")
		}
		return fmt.Sprintf(says+"sent %s of %s (%s)", Count(m.Sent), Count(m.Scheduled), strings.Join(parts, ", "))
	}
	return fmt.Sprintf(says+"in the window %s were sent of %s offered, the others waited for room", Rate(p.SentPerS), Rate(p.OfferedPerS))
}

// system writes what was measured and what a confirmation meant.
func (t *text) system() {
	s := t.r.System
	t.b.WriteString("\n" + t.paint(bold, s.Driver))
	if name := strings.TrimSpace(s.Server.Name + " " + s.Server.Version); name != "" {
		t.b.WriteString(" (" + name + ")")
	}
	switch s.Server.Nodes {
	case 0:
	case 1:
		t.b.WriteString(", 1 node")
	default:
		fmt.Fprintf(&t.b, ", %d nodes", s.Server.Nodes)
	}
	if s.Guarantee != "" {
		t.b.WriteString(", " + guarantee(s))
	}
	t.b.WriteString("\n")
	if s.Client != "" {
		t.b.WriteString("client " + s.Client + ", ")
	}
	fmt.Fprintf(&t.b, "measured %s", Span(time.Duration(t.r.Run.MeasureS*float64(time.Second)).Round(time.Millisecond)))
	if t.r.Run.Loop == result.LoopClosed {
		t.b.WriteString(", closed loop: service times at saturation")
	} else {
		t.b.WriteString(", open loop")
	}
	fmt.Fprintf(&t.b, ", seed %d\n", t.r.Run.Seed)
}

// guarantee says what a confirmation meant: "confirmed = received, 1 copy,
// stable os".
func guarantee(s result.System) string {
	parts := []string{"confirmed = " + s.Guarantee}
	switch s.Copies {
	case "":
	case "1":
		parts = append(parts, "1 copy")
	case "quorum":
		parts = append(parts, "copies on a quorum")
	default:
		parts = append(parts, s.Copies+" copies")
	}
	if s.Stable != "" {
		parts = append(parts, "stable "+s.Stable)
	}
	return strings.Join(parts, ", ")
}

// A column is one distribution of the table.
type column struct {
	group, name string
	d           *result.Dist
	interval    bool
}

func (t *text) columns() []column {
	l := t.r.Latency
	all := []column{
		{"send", "response", l.Send.Response, true},
		{"send", "service", l.Send.Service, l.Send.Response == nil},
		{"e2e", "response", l.E2E.Response, true},
		{"e2e", "service", l.E2E.Service, l.E2E.Response == nil},
		{"rtt", "response", l.RTT.Response, true},
		{"rtt", "service", l.RTT.Service, l.RTT.Response == nil},
		{"", "settle", l.Settle, false},
		{"", "failed", l.Send.Failed, false},
		{"", "blocked", l.Send.Blocked, false},
		{"", "lateness", l.Send.Lateness, false},
	}
	return slices.DeleteFunc(all, func(c column) bool { return c.d == nil })
}

// latency writes the table of percentiles.
func (t *text) latency() {
	cols := t.columns()
	if len(cols) == 0 {
		t.b.WriteString("\nno message was confirmed or delivered in the measured window\n")
		return
	}
	t.b.WriteString("\n")
	var ps []float64
	for _, c := range cols {
		for _, p := range c.d.Percentiles {
			if !slices.Contains(ps, p.P) {
				ps = append(ps, p.P)
			}
		}
	}
	slices.Sort(ps)
	head1, head2 := []cell{{}}, []cell{{}}
	for i, c := range cols {
		group := c.group
		if i > 0 && cols[i-1].group == group {
			group = ""
		}
		head1 = append(head1, cell{text: group, paint: bold})
		head2 = append(head2, cell{text: c.name, paint: bold})
		if c.interval {
			head1 = append(head1, cell{})
			head2 = append(head2, cell{text: "95 %", paint: dim, left: true})
		}
	}
	rows := [][]cell{head1, head2}
	for _, p := range ps {
		row := []cell{{text: percent(p)}}
		for _, c := range cols {
			row = append(row, t.cells(c, c.d.Percentile(p))...)
		}
		rows = append(rows, row)
	}
	mean, samples := []cell{{text: "mean"}}, []cell{{text: "samples"}}
	for _, c := range cols {
		mean = append(mean, cell{text: meanOf(c.d)})
		samples = append(samples, cell{text: Count(c.d.Count)})
		if c.interval {
			mean, samples = append(mean, cell{}), append(samples, censored(c.d))
		}
	}
	rows = append(rows, mean, samples)
	t.b.WriteString(t.table(rows))
	t.unsupported(cols)
}

func percent(p float64) string {
	if p == 100 {
		return "max"
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

func meanOf(d *result.Dist) string {
	if d.MeanNS == nil {
		return "-"
	}
	return Time(int64(math.Round(*d.MeanNS)))
}

func censored(d *result.Dist) cell {
	if d.Censored == 0 {
		return cell{}
	}
	return cell{text: "+" + Count(d.Censored) + " censored", left: true}
}

// cells returns a percentile and, in a column that has them, its interval.
func (t *text) cells(c column, p *result.Percentile) []cell {
	var value, between cell
	between.left = true
	if p != nil {
		value.text = Time(p.NS)
		if p.AtLeast {
			value.text = ">= " + value.text
		}
		if p.Supported {
			between = cell{text: interval(p), paint: dim, left: true}
		} else {
			value.text, value.paint = "~"+value.text, dim
		}
		if p.P == 100 {
			between.text = ""
		}
	}
	if !c.interval {
		return []cell{value}
	}
	return []cell{value, between}
}

// interval writes lo..hi in the unit of the value.
func interval(p *result.Percentile) string {
	name, size := unitOf(p.NS)
	lo := significant(float64(p.LoNS)/size, name == "ns")
	if p.HiNS == nil {
		return lo + ".."
	}
	return lo + ".." + significant(float64(*p.HiNS)/size, name == "ns")
}

// unsupported explains, for the first distribution that has such rows, what is
// missing for each percentile marked ~.
func (t *text) unsupported(cols []column) {
	for _, c := range cols {
		if c.name != "response" && c.name != "service" {
			continue
		}
		var lines []string
		for _, p := range c.d.Percentiles {
			if p.Supported || p.P >= 100 {
				continue
			}
			need, have := needed(p.P), c.d.Count+c.d.Censored
			line := fmt.Sprintf("%s needs %s samples, has %s", percent(p.P), Count(need), Count(have))
			if rate := t.rate(); rate > 0 {
				line += fmt.Sprintf(": %s at %s", Span(time.Duration(math.Ceil(min(float64(need)/rate, 1e9)))*time.Second), Rate(rate))
			}
			lines = append(lines, line)
		}
		if len(lines) > 0 {
			t.b.WriteString(t.paint(dim, "~ too few samples: "+strings.Join(lines, "\n                   ")) + "\n")
			return
		}
	}
}

// needed returns how many samples leave five beyond percentile p, in integers:
// p has at most six decimals.
func needed(p float64) uint64 {
	beyond := uint64(1e8) - uint64(math.Round(p*1e6))
	return (5*1e8 + beyond - 1) / max(1, beyond)
}

// rate is what samples come at.
func (t *text) rate() float64 {
	if t.r.Run.Loop == result.LoopClosed {
		return max(t.r.Throughput.ConfirmedPerS, t.r.Throughput.ReceivedPerS)
	}
	return max(t.r.Throughput.OfferedPerS, 0)
}

// outcomes writes the counts of the window, and beside those that must not
// happen the whole run's where it differs.
func (t *text) outcomes() {
	m, all := t.r.Messages, t.r.MessagesAll
	type outcome struct {
		name       string
		n, all     uint64
		always     bool
		suspicious bool
	}
	line := func(label string, os []outcome) {
		parts := make([]string, 0, len(os))
		for _, o := range os {
			if !o.always && o.n == 0 && (!o.suspicious || o.all == 0) {
				continue
			}
			s := o.name + " " + Count(o.n)
			if o.suspicious && o.all != o.n {
				s += " (" + Count(o.all) + " in the whole run)"
			}
			if o.suspicious && o.all > 0 {
				s = t.paint(red, s)
			}
			parts = append(parts, s)
		}
		t.b.WriteString(label + strings.Join(parts, ", ") + "\n")
	}
	t.b.WriteString("\n")
	line("messages    ", []outcome{
		{"scheduled", m.Scheduled, 0, true, false},
		{"sent", m.Sent, 0, true, false},
		{"confirmed", m.Confirmed, 0, true, false},
		{"delivered", m.Delivered, 0, true, false},
		{"settled", m.Settled, 0, false, false},
		{"dropped", m.Dropped, all.Dropped, false, true},
		{"unsent", m.Unsent, all.Unsent, false, true},
		{"failed", m.Failed, all.Failed, false, true},
		{"unconfirmed", m.Unconfirmed, all.Unconfirmed, false, true},
		{"pending", m.Pending, all.Pending, false, true},
		{"failed but delivered", m.FailedDelivered, 0, false, false},
		{"unconfirmed but delivered", m.UnconfirmedDelivered, 0, false, false},
	})
	line("            ", []outcome{
		{"lost", m.Lost, all.Lost, true, true},
		{"duplicated", m.Duplicated, all.Duplicated, true, true},
		{"reordered", m.Reordered, all.Reordered, true, true},
		{"corrupted", m.Corrupted, all.Corrupted, true, true},
		{"redelivered", m.Redelivered, all.Redelivered, false, true},
		{"foreign", m.Foreign, all.Foreign, false, true},
	})
}

func (t *text) throughput() {
	p := t.r.Throughput
	t.b.WriteString("throughput  ")
	if t.r.Run.Loop != result.LoopClosed {
		fmt.Fprintf(&t.b, "offered %s, ", Rate(p.OfferedPerS))
	}
	fmt.Fprintf(&t.b, "sent %s, confirmed %s, received %s; %s out, %s in\n",
		Rate(p.SentPerS), Rate(p.ConfirmedPerS), Rate(p.ReceivedPerS), Bytes(p.SentBytesPerS), Bytes(p.ReceivedBytesPerS))
}
