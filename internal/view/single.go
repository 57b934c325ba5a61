package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/glossary"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A single writes one result to a page.
type single struct {
	*layout.Page
	Entry
	r     *result.Result // the entry's result
	o     Options
	table *layout.Table // of percentiles
}

// colour is the tone of a verdict or an outcome.
func colour[W ~string](word W) layout.Tone {
	return map[string]layout.Tone{
		string(result.Valid): layout.Good, string(result.Suspect): layout.Doubtful, string(result.Invalid): layout.Bad,
		string(result.Pass): layout.Good, string(result.Undecided): layout.Doubtful, string(result.Fail): layout.Bad,
	}[strings.ToLower(string(word))]
}

// verdict writes the verdict. Of percentiles it names those shown; nil: all.
func (t *single) verdict(shown []float64) {
	word, says := verdictOn(t.r, shown)
	t.Add(layout.Block{Form: layout.Status, Spans: []layout.Span{word, plain("  " + says)}})
}

// findings writes every check that is not valid, with advice.
func (t *single) findings() {
	v := t.r.Verdict
	if t.Review != nil {
		t.reviewed(t.Review)
	}
	if s := saturated(t.r); s != "" {
		t.Item(layout.Doubtful.Of(s))
	}
	var notRun []string
	var said []string // in findings
	for _, c := range v.Checks {
		if c.With != "" {
			continue // another check reports it
		}
		switch c.Status {
		case result.Invalid, result.Suspect:
			text := foundBy(c)
			if c.Limit != "" {
				text += " (limit " + c.Limit + ")"
			}
			said = append(said, text, c.Why)
			t.Add(layout.Block{Form: layout.Item, Mark: colour(c.Status).Of(string(c.Status)), Spans: []layout.Span{plain(text)}, Under: c.Why})
		case result.NotRun:
			if !c.Inapplicable && (t.Review == nil || !slices.Contains(t.Review.Lacking, c.Name)) {
				notRun = append(notRun, c.Name+aside(c.Why))
			}
		}
	}
	if words := glossary.Used(strings.Join(said, " ")); len(words) > 0 {
		for i, w := range words {
			if strings.Contains(w, " ") {
				words[i] = "'" + w + "'"
			}
		}
		t.Item(layout.Faint.Of("words explained by: weir glossary " + strings.Join(words, " ")))
	}
	t.broken()
	t.objectives(false)
	if len(notRun) > 0 {
		t.Item(layout.Faint.Of("not checked: " + strings.Join(notRun, ", ")))
	}
}

// foundBy is what a check found, without its limit.
func foundBy(c result.Check) string {
	if c.Value == "" {
		return c.Name
	}
	return c.Name + ": " + c.Value
}

// broken writes what must not happen but did, in the whole run. The verdict is about the figures: a system
// that loses messages can be measured well, yet users should read this first.
func (t *single) broken() {
	all, v := t.r.MessagesAll, t.r.Verdict
	if all.Lost+all.Corrupted > 0 {
		says := fmt.Sprintf("the system lost %s messages and corrupted %s", quantity.Count(all.Lost), quantity.Count(all.Corrupted))
		if why := discarding(t.r); all.Lost > 0 && why != "" {
			says += "; " + why
		}
		t.Item(layout.Bad.Of(says))
	}
	if slices.ContainsFunc(v.Checks, func(c result.Check) bool { return c.Name == judge.CheckFailed && c.Status == result.Suspect }) {
		all.Failed, all.Unconfirmed = 0, 0 // reported there already
	}
	if all.Misrouted > 0 {
		t.Item(layout.Bad.Of(fmt.Sprintf("the system delivered %s messages from another destination than the one that they were sent to", quantity.Count(all.Misrouted))))
	}
	if all.Failed > 0 {
		t.Item(layout.Bad.Of(fmt.Sprintf("the system failed %s of %s messages", quantity.Count(all.Failed), quantity.Count(all.Sent))))
	}
	if all.Unconfirmed > 0 {
		t.Item(layout.Bad.Of(fmt.Sprintf("%s of %s messages were never confirmed", quantity.Count(all.Unconfirmed), quantity.Count(all.Sent))))
	}
}

// aside puts the first sentence of an explanation in brackets; "" if there is none.
func aside(why string) string {
	if why == "" {
		return ""
	}
	why, _, _ = strings.Cut(why, ". ")
	return " (" + strings.ToLower(why[:1]) + strings.TrimSuffix(why[1:], ".") + ")"
}

// saturated reports the rate taken by a system that did not keep up, "" if it did. This is by design no
// reason against the figures, so the verdict alone would hide it. If the generator itself missed the rate,
// or nothing ran, the checks report that instead.
func saturated(r *result.Result) string {
	if !slices.ContainsFunc(r.Verdict.Checks, judge.Full) {
		return ""
	}
	m, p := r.Messages, r.Throughput
	says, shares := "the system did not take the rate: ", ""
	for _, c := range r.Verdict.Checks {
		if judge.SlowAtFirst(c) {
			says = "the system did not take the rate at first: "
		} else if mostly := judge.MostlyAtFirst(c); mostly.Code != "" {
			shares = fmt.Sprint("; ", mostly)
		}
	}
	if left := m.Scheduled - min(m.Sent, m.Scheduled); left*200 > m.Scheduled { // over half a percent
		var parts []string
		if m.Dropped > 0 {
			parts = append(parts, quantity.Count(m.Dropped)+" dropped")
		}
		if m.Unsent > 0 {
			parts = append(parts, quantity.Count(m.Unsent)+" unsent")
		}
		return fmt.Sprintf("%ssent %s of %s (%s)%s", says, quantity.Count(m.Sent), quantity.Count(m.Scheduled), strings.Join(parts, ", "), shares)
	}
	return fmt.Sprintf("%sin the window %s of %s offered were sent; the others waited for room%s", says, quantity.Rate(p.SentPerS), quantity.Rate(p.OfferedPerS), shares)
}

// system writes the measured system and what a confirmation meant.
func (t *single) system() {
	s := t.r.System
	t.Gap()
	t.Line(t.systemNamed()...)
	t.guaranteed()
	if x := s.StartedOn; x != nil {
		by := "started by agent " + x.Agent
		if x.Hostname != "" {
			by += " on " + x.Hostname
		}
		if !x.Part {
			by += ", which did not take part in the run"
		}
		t.Say(by)
	}
	text := ""
	if s.Client != "" {
		text = "client " + s.Client + ", "
		if s.ClientPath != "" && !t.r.Consuming() {
			t.Say("client " + s.Client + ": " + s.ClientPath)
			text = ""
		}
	}
	if s.Batch != "" {
		text += "batch: " + s.Batch + ", "
	}
	if s.ConsumeBatch != "" {
		text += "consume.batch: " + s.ConsumeBatch + ", "
	}
	text += t.measured()
	if !t.r.Consuming() {
		text += fmt.Sprintf(", seed %d", t.r.Run.Seed)
	}
	t.Say(text)
}

func (t *single) systemNamed() []layout.Span {
	s, text := t.r.System, ""
	if name := server(s); name != "" {
		text += " (" + name + ")"
	}
	switch s.Server.Nodes {
	case 0:
	case 1:
		text += ", 1 node"
	default:
		text += fmt.Sprintf(", %d nodes", s.Server.Nodes)
	}
	return []layout.Span{layout.Strong.Of(s.Driver), plain(text)}
}

func (t *single) guaranteed() {
	s := t.r.System
	if s.Guarantee == "" || t.r.Consuming() {
		return
	}
	came := ""
	if replied(t.r) {
		came = "the reply came, so "
	}
	t.Say("a confirmation means: " + came + meant(s) + lessened(s.Weaker))
}

func (t *single) measured() string {
	text := "measured " + lasting(t.r.Run.MeasureS)
	switch {
	case t.r.Run.Mode == result.ModeBacklog:
		return t.filled()
	case t.r.Consuming() && t.r.Run.MeasureS == 0: // nothing arrived
		return "mode consume: this run did not send"
	case t.r.Consuming():
		return text + ", mode consume: this run did not send"
	case t.r.Run.Loop == result.LoopClosed:
		text += ", closed loop: service times at saturation"
	default:
		text += ", open loop"
	}
	if m := t.r.Run.Mode; m != "" && m != "stream" {
		text += ", mode " + m
	}
	return text
}

// filled is what measured says of a backlog, which is drained after the window: the loop is that of the filling.
func (t *single) filled() string {
	text := "mode backlog: filled for " + lasting(t.r.Run.MeasureS) + ", "
	if t.r.Run.Loop == result.LoopClosed {
		text += "closed loop (service times at saturation)"
	} else {
		text += "open loop"
	}
	if s := t.r.Throughput.ReceiveS; s > 0 {
		text += ", then drained for " + lasting(s)
	}
	return text
}

// lasting writes a length of time, to a millisecond.
func lasting(s float64) string {
	return quantity.Span(time.Duration(s * float64(time.Second)).Round(time.Millisecond))
}

// load describes the load: "load: 1 producer, 1 consumer, 1KiB, 1000/s, at most 10,000 in flight for each
// producer". The result's figures alone do not show it.
func (t *single) load() {
	set := map[string]string{}
	for _, f := range compare.Settings(t.Scenario, shortLine) {
		set[f.Name] = f.Value
	}
	many := func(key, one, more string) string {
		n, err := strconv.ParseUint(set[key], 10, 64)
		if err != nil {
			return ""
		}
		return quantity.Counted(n, one, more)
	}
	producers, consumers, rate, room := many("topology.producers", "producer", "producers"), many("topology.consumers", "consumer", "consumers"), set["load.rate"], ""
	if n := many("topology.subscriptions", "subscription", "subscriptions"); n != "" && set["topology.subscriptions"] != "1" {
		consumers = n + " with " + consumers + " each"
	}
	if n, err := strconv.ParseUint(set["load.in_flight"], 10, 64); err == nil {
		room = "at most " + quantity.Count(n) + " in flight for each producer"
	}
	switch {
	case t.r.Consuming():
		producers, rate, room = "", "", ""
	case t.r.Run.Mode == "produce":
		consumers = ""
	}
	if rate == "max" {
		rate = "as fast as it goes"
	}
	parts := slices.DeleteFunc([]string{producers, consumers, set["message.size"], rate, room}, func(s string) bool { return s == "" })
	if len(parts) > 0 {
		t.Say("load: " + strings.Join(parts, ", "))
	}
}

// replied reports whether replies confirmed the requests of a run, which then has no send latency.
func replied(r *result.Result) bool {
	return r.Run.Mode == "request" && r.Latency.RTT.Service != nil && r.Latency.Send.Service == nil
}

func server(s result.System) string {
	return strings.TrimSpace(s.Server.Name + " " + s.Server.Version)
}

// guarantee says what a confirmation meant: "received, 1 copy, stable os".
func guarantee(s result.System) string {
	return strings.Join(append([]string{s.Guarantee}, promised(s)...), ", ")
}

// meant is guarantee with an explanation of its level.
func meant(s result.System) string {
	where := map[string]string{"none": ", in memory only", "os": ", not synced to disk"}[s.Stable]
	says := map[string]string{
		"buffered":   "only the client has the message",
		"written":    "the client's host has the message",
		"received":   "one node has the message" + where,
		"replicated": "several nodes have the message" + where,
		"persisted":  "the message is on disk",
	}[s.Guarantee]
	if s.Guarantee == "buffered" { // no server has a copy
		s.Copies = ""
	}
	in := strings.Join(append([]string{s.Guarantee}, promised(s)...), ", ")
	if says == "" {
		return in
	}
	return says + " (" + in + ")"
}

// promised lists what a confirmation means besides its level.
func promised(s result.System) []string {
	var parts []string
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
	return parts
}

// lessened says for how long a confirmation meant less: " (for 12.0 s: received, 1 copy, stable os)"; "" if
// never.
func lessened(all []result.Weaker) string {
	var order []string
	lasted := map[string]int64{}
	for _, w := range all {
		text := guarantee(result.System{Guarantee: w.Guarantee, Copies: w.Copies, Stable: w.Stable})
		if _, ok := lasted[text]; !ok {
			order = append(order, text)
		}
		lasted[text] += w.ToNS - w.FromNS
	}
	if len(order) == 0 {
		return ""
	}
	for i, text := range order {
		order[i] = "for " + quantity.Time(lasted[text]) + ": " + text
	}
	return " (" + strings.Join(order, "; ") + ")"
}

// received is the rate of deliveries, 0 if unknown.
func received(r *result.Result) float64 {
	perS, _ := r.Throughput.Received()
	return perS
}

// sent reports whether the run sent anything, or was to.
func sent(r *result.Result) bool { return r.MessagesAll.Scheduled > 0 && !r.Consuming() }

// booked reports whether the number of expected deliveries is known.
func booked(r *result.Result) bool { return !r.Consuming() || r.Booked() }

// watched reports whether a subscription should have delivered what was confirmed: message accounting then
// counts each such message in one of five outcomes. If nothing was confirmed, received messages decide.
func watched(r *result.Result) bool {
	m := r.MessagesAll
	return m.Delivered+m.Corrupted+m.Lost+m.Pending+m.Unknown+m.FailedDelivered+m.UnconfirmedDelivered+m.Foreign+m.Misrouted > 0 || received(r) > 0
}

// rated reports whether the rate of received messages is known.
func rated(r *result.Result) bool {
	_, known := r.Throughput.Received()
	return known && watched(r)
}

// An outcome is a count in the window and, if it must not happen, in the whole run.
type outcome struct {
	name   string
	n, all uint64
	always bool
	bad    bool
}

// outcomes writes the counts of the window, with the whole run's count where it differs and must be 0.
func (t *single) outcomes() {
	m, all := t.r.Messages, t.r.MessagesAll
	receives := watched(t.r) || t.r.Booked()
	t.Gap()
	if !booked(t.r) {
		t.Labelled("messages", plain("received "+quantity.Count(all.Deliveries())+" in the whole run"+ofRun(t.r)+"; this run did not send them, so loss, duplicates and order are not known"))
		if of := t.r.OfRun; of != nil {
			if of.Corrupted > 0 {
				t.Labelled("", layout.Bad.Of(quantity.Count(of.Corrupted)+" of them arrived corrupted"))
			}
			t.Labelled("", plain("--of FOLDER names the run that sent them, and checks loss"))
		}
		return
	}
	t.sendings()
	if !receives {
		if all.Confirmed > 0 {
			t.Labelled("", plain("no consumer received them: loss, duplicates and order were not checked"))
		}
		return
	}
	t.counts("", []outcome{
		{"lost", m.Lost, all.Lost, true, true},
		{"duplicated", m.Duplicated, all.Duplicated, true, true},
		{"reordered", m.Reordered, all.Reordered, true, true},
		{"corrupted", m.Corrupted, all.Corrupted, true, true},
		{"misrouted", m.Misrouted, all.Misrouted, false, true},
		{"redelivered", m.Redelivered, all.Redelivered, false, true},
		{"refused", m.Refused, all.Refused, false, true},
		{"dead-lettered", m.DeadLettered, all.DeadLettered, false, true},
		{"foreign", m.Foreign, all.Foreign, false, true},
	})
	t.Labelled("", plain(t.until()))
	t.shares()
	if all.Pending > 0 {
		t.Labelled("", layout.Doubtful.Of(t.drained()))
	}
}

// sendings writes the outcomes of sending the messages due in the window.
func (t *single) sendings() {
	m, all := t.r.Messages, t.r.MessagesAll
	sends, receives := sent(t.r) || t.r.Booked(), watched(t.r) || t.r.Booked()
	label := "messages"
	if t.r.Booked() {
		t.Labelled(label, plain(fmt.Sprintf("of the earlier run of weir with run number %d, its warm-up included", t.r.OfRun.Number)))
		label = ""
	}
	t.counts(label, []outcome{
		{"scheduled", m.Scheduled, 0, sends, false},
		{"sent", m.Sent, 0, sends, false},
		{"confirmed", m.Confirmed, 0, sends, false},
		{"delivered", m.Delivered, 0, receives, false},
		{"settled", m.Settled, 0, false, false},
		{"dropped", m.Dropped, all.Dropped, false, true},
		{"unsent", m.Unsent, all.Unsent, false, true},
		{"failed", m.Failed, all.Failed, false, true},
		{"unconfirmed", m.Unconfirmed, all.Unconfirmed, false, true},
		{"late", m.Late, all.Late, false, true},
		{"pending", m.Pending, all.Pending, false, true},
		{"unknown", m.Unknown, all.Unknown, false, true},
		{"failed but delivered", m.FailedDelivered, 0, false, false},
		{"unconfirmed but delivered", m.UnconfirmedDelivered, 0, false, false},
	})
}

// ofRun names the weir run that sent what a run in mode consume received; "" if none did.
func ofRun(r *result.Result) string {
	of := r.OfRun
	if of == nil {
		return ""
	}
	what := ", " + quantity.Count(of.Received) + " of them messages"
	if of.Received == r.MessagesAll.Deliveries() {
		what = ": messages"
	}
	if of.Several {
		return what + " of several earlier runs of weir"
	}
	return fmt.Sprintf("%s of an earlier run of weir (run number %d)", what, of.Number)
}

// until says when the counting of deliveries ended: later ones are unknown.
func (t *single) until() string {
	if t.r.Booked() {
		return "what consumers of other runs took counts as lost"
	}
	if listened := time.Duration(t.r.Host.ListenedNS); listened > 0 {
		return "counted until " + quantity.Span(listened.Round(100*time.Millisecond)) + " after the drain"
	}
	return "counted until the end of the drain (--after-drain counts longer)"
}

// drained says how long a drain that ended too early would have needed.
func (t *single) drained() string {
	if len(t.r.Lost().Receivers) > 0 {
		return "an agent was lost, so some pending messages may have been delivered, and some may be lost"
	}
	needs := time.Duration(t.r.Host.DrainNeedsNS)
	if needs <= 0 {
		return "the drain ended while messages were pending; use a longer one (--drain)"
	}
	round := time.Second // a drain's rate is no more precise
	if needs < 10*time.Second {
		round = 100 * time.Millisecond
	}
	more := max(needs.Round(round), round)
	return "the drain ended while messages were pending; at this rate it needs " + quantity.Span(more) + " more: use a longer one (--drain)"
}

func (t *single) counts(label string, outcomes []outcome) {
	var spans []layout.Span
	for _, o := range outcomes {
		if !o.always && o.n == 0 && (!o.bad || o.all == 0) {
			continue
		}
		s := plain(o.name + " " + quantity.Count(o.n))
		if o.bad && o.all != o.n {
			s.Text += " (" + quantity.Count(o.all) + " in the whole run)"
		}
		if o.bad && o.all > 0 {
			s.Tone = layout.Bad
		}
		if len(spans) > 0 {
			spans = append(spans, plain(", "))
		}
		spans = append(spans, s)
	}
	t.Labelled(label, spans...)
}
