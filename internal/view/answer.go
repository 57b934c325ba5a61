package view

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// answered are the percentiles that an answer has, where they are supported.
var answered = [...]float64{50, 99, 99.9, 100}

// answer says in a few lines what came of the run: the figures that matter in its mode,
// the loss, the objectives, and a command that helps next. scenario is the path of the
// run's scenario.yaml, as it is to be typed; "" leaves the command out. A page that
// begins with its verdict does not say it again.
func (t *single) answer(scenario string, verdict bool) {
	if verdict {
		word, says := verdictOn(t.r)
		t.Add(layout.Block{Form: layout.Labelled, Mark: word, Spans: []layout.Span{plain(says)}})
	}
	if label, spans := t.headline(); len(spans) > 0 {
		t.Labelled(label, spans...)
	}
	t.Labelled("loss", losses(t.r))
	t.outages()
	if len(t.r.Verdict.SLO) > 0 {
		t.Labelled("objectives", outcomesOf(t.r))
	}
	if command, why := t.next(scenario); command != "" {
		next(t.Page, command, why)
	}
}

// next writes a command to paste, on a line that is never broken, with its purpose: behind
// it, or below where there is no room.
func next(p *layout.Page, command, why string) {
	with := command + "  # " + why
	room := layout.Length(with) < roomy
	if room {
		command = with
	}
	p.Add(layout.Block{Form: layout.Labelled, Mark: plain("next"), Spans: []layout.Span{plain(command)}, Whole: true})
	if !room {
		p.Labelled("", plain(why))
	}
}

// roomy is how long a text beside a label is at most on a terminal of 80 columns.
const roomy = 68

// verdictOn is the verdict: a word, and what it means for the figures.
func verdictOn(r *result.Result) (word layout.Span, says string) {
	says = map[result.Status]string{
		result.Valid:   "the figures can be used",
		result.Suspect: "read why before you use a figure",
		result.Invalid: "do not use the figures",
	}[r.Verdict.Status]
	if why := judge.Reasons(&r.Verdict); why != "" {
		says = "for " + why + ": " + says
	}
	if r.Run.Interrupted {
		says += "; interrupted: the figures cover the part that ran"
	}
	status := strings.ToUpper(string(r.Verdict.Status))
	return colour(status).Of(status), says
}

// outcomesOf counts what became of a run's objectives, and names those that failed while
// there is room.
func outcomesOf(r *result.Result) layout.Span {
	text := objectivesOf(r)
	for i := range r.Verdict.SLO {
		if s := &r.Verdict.SLO[i]; s.Outcome() == result.Fail {
			if with := strings.Replace(text.Text, " failed", " failed ("+s.Expr+")", 1); layout.Length(with) < roomy {
				text.Text = with
			}
			break
		}
	}
	return text
}

// headline is what matters in the mode of the run: the latency of a rate that was kept,
// or the rate of one that takes what it gets.
func (t *single) headline() (label string, spans []layout.Span) {
	perS, known := t.r.Throughput.Received()
	known = known && perS > 0
	switch {
	case t.r.Run.Loop == result.LoopClosed && sent(t.r):
		text := "confirmed " + quantity.Rate(t.r.Throughput.ConfirmedPerS)
		if known && watched(t.r) {
			text += ", " + arrived(t.r) + " " + quantity.Rate(perS)
		}
		return "rate", []layout.Span{plain(text)}
	case t.r.Run.Mode == result.ModeBacklog && known:
		return "rate", []layout.Span{plain("drained " + drainedMessages(t.r) + quantity.Rate(perS))}
	case t.r.Consuming() && known:
		return "rate", []layout.Span{plain("received " + quantity.Rate(perS))}
	}
	for _, group := range []string{"rtt", "e2e", "send"} {
		for _, c := range distributions(t.r) {
			if c.group != group || !c.interval {
				continue
			}
			for _, p := range answered {
				row := c.d.Percentile(p)
				if row == nil || !row.Supported {
					continue
				}
				name := " p" + strings.TrimSuffix(percent(p), " %") + " "
				if p == 100 {
					name = " max "
				}
				if len(spans) > 0 {
					name = "," + name
				}
				spans = append(spans, plain(name), c.figure(t.r, p))
			}
			if len(spans) > 0 {
				spans[0].Text = strings.TrimSpace(spans[0].Text) + " "
			}
			return group, spans
		}
	}
	return "", nil
}

// losses says of the whole run what must not happen to a message.
func losses(r *result.Result) layout.Span {
	m := &r.MessagesAll
	var parts []string
	bad := false
	all := m.Lost + m.Duplicated + m.Reordered + m.Corrupted + m.Misrouted + m.Pending + m.Unknown + m.Failed + m.Unconfirmed
	counted := watched(r) && booked(r) || r.Booked()
	checked := counted && all == 0
	add := func(name string, n uint64, always bool) {
		if n > 0 || always {
			parts, bad = append(parts, name+" "+quantity.Count(n)), bad || n > 0
		}
	}
	add("lost", m.Lost, counted)
	add("duplicated", m.Duplicated, checked)
	add("reordered", m.Reordered, checked)
	add("corrupted", m.Corrupted, false)
	add("misrouted", m.Misrouted, false)
	add("pending", m.Pending, false)
	add("unknown", m.Unknown, false)
	add("failed", m.Failed, false)
	add("unconfirmed", m.Unconfirmed, false)
	text := strings.Join(parts, ", ")
	switch {
	case !booked(r):
		text = quantity.Count(m.Deliveries()) + " received; loss was not checked"
	case text == "":
		text = quantity.Count(m.Confirmed) + " confirmed; loss was not checked"
	default:
		text += fmt.Sprintf(", of %s sent%s", quantity.Count(m.Sent), warmed(r))
	}
	if bad {
		return layout.Bad.Of(text)
	}
	return plain(text)
}

// warmed says of a count of the whole run that it is not that of the table.
func warmed(r *result.Result) string {
	if r.MessagesAll.Sent > r.Messages.Sent {
		return " (with warm-up)"
	}
	return ""
}

// finds reports whether a check of one of these names is why the run is not valid.
func (t *single) finds(names ...string) bool {
	v := &t.r.Verdict
	return slices.ContainsFunc(v.Checks, func(c result.Check) bool {
		is := c.Status == result.Invalid || c.Status == result.Suspect && v.Status != result.Invalid
		return is && slices.Contains(names, c.Name)
	})
}

// below is the part of what a system carries that is advised to measure latencies at.
const below = 0.8

// keeps is the least part of the rate that a system carries which did not fall far behind,
// and beginsBelow is by what a search divides what the run carried.
const (
	keeps       = 0.8
	beginsBelow = 10
)

// advisedWarmUp finds the warm-up that the check of the steady state advises, in results of
// versions that stored no values.
var advisedWarmUp = regexp.MustCompile(`--warmup \d+s`)

// next is the command that helps most after such a run, and what it is for. What agents did
// is done again only where it is known how they met.
func (t *single) next(scenario string) (command, why string) {
	r := t.r
	if scenario == "" {
		return "", ""
	}
	hosts := map[string]bool{}
	for _, a := range r.Agents {
		hosts[a.Hostname] = true
	}
	again, met := "weir run "+Quoted(scenario), ""
	fleet := len(r.Agents) > 0 && t.o.Fleet == nil // one that is not known
	if t.o.Fleet != nil {
		again, met = strings.TrimSpace(again+" "+t.o.Fleet.Again), strings.TrimSpace("weir fleet doctor "+t.o.Fleet.Meet)
	}
	closed := r.Run.Loop == result.LoopClosed
	carried := r.Throughput.ConfirmedPerS
	if perS, known := r.Throughput.Received(); known && perS > 0 && watched(r) && r.Run.Mode != result.ModeBacklog {
		carried = min(carried, perS)
	}
	// Where the system was full, what it carried says little of what it carries in time.
	far := carried < keeps*r.Throughput.OfferedPerS
	slower := func(perS float64) string { return again + " --rate " + flagRate(perS) }
	search := func() (command, why string) {
		why = "finds the highest rate that keeps the objectives"
		if len(r.Verdict.SLO) == 0 {
			why = "finds the highest rate that keeps --slo: put your own limit there"
		}
		return t.search(strings.Replace(again, "weir run ", "weir capacity ", 1), carried), why
	}
	searched := r.Run.Mode != result.ModeBacklog // a search is of a rate at which messages are sent and received
	bounded := (closed || far) && len(r.Stages) == 0 && searched
	warmUp, behind := t.unsteady()
	switch {
	case t.finds(judge.CheckBooks):
		return "", ""
	case r.Run.Interrupted && !fleet:
		return again, "runs it to its end"
	case r.Lost().Any() && met != "":
		return met, "what is wrong with the agents"
	case r.MessagesAll.Lost+r.MessagesAll.Corrupted+r.MessagesAll.Misrouted > 0 || r.Lost().Any():
		return "less " + Quoted(filepath.Join(filepath.Dir(scenario), result.FileEvents)), "what happened when"
	case t.finds(judge.CheckRun, judge.CheckFailed):
		return "less " + Quoted(filepath.Join(filepath.Dir(scenario), result.FileEvents)), "has the errors"
	case t.finds(judge.CheckSamples) && !fleet:
		return again + " --measure " + flagTime(math.Max(10, 2*r.Run.MeasureS)), "more samples"
	case bounded && !closed && carried > 0 && !fleet && (behind != "" || r.Host.LaneWaits > 0 && t.finds(judge.CheckLateness)):
		return search()
	case t.finds(judge.CheckLateness) && r.Host.LaneWaits > 0 && carried > 0 && !fleet:
		return slower(below * carried), "a rate that the system takes"
	case warmUp != "" && !fleet && !t.finds(judge.CheckLateness, judge.CheckHiccups, judge.CheckSteal, judge.CheckThrottling): // else the host may have been busy at first
		return again + " " + warmUp, "leaves the warm-up out"
	case behind != "" && closed && searched && carried > 0 && !fleet:
		return search()
	case behind != "" && carried > 0 && !fleet:
		return slower(below * carried), "a rate that " + behind
	case t.finds(judge.CheckLateness, judge.CheckRate, judge.CheckHiccups, judge.CheckCPU, judge.CheckSteal, judge.CheckThrottling, judge.CheckSwap, judge.CheckGC, judge.CheckBlocked):
		switch {
		case len(hosts) > 1 && met != "":
			return met, "what on these hosts disturbs a run"
		case len(hosts) > 1:
			return charts(scenario)
		}
		return "weir doctor", "what on this host disturbs a run"
	case fleet:
		return charts(scenario)
	case t.finds(judge.CheckHeadroom, judge.CheckRecording) && !closed && r.Throughput.OfferedPerS > 0:
		return slower(r.Throughput.OfferedPerS / 2), "leaves the generator headroom"
	case t.finds(judge.CheckSteady):
		return again + " --measure " + flagTime(2*r.Run.MeasureS), "shows whether it settles"
	case r.MessagesAll.Pending > 0:
		return again + " --drain " + flagTime(math.Max(60, 2*float64(r.Host.DrainNeedsNS)/1e9)), "waits for what is pending"
	case saturated(r) != "" && carried > 0 && bounded:
		return search()
	case saturated(r) != "" && carried > 0:
		return slower(below * carried), "a rate that the system takes"
	}
	for i := range r.Verdict.SLO {
		if s := &r.Verdict.SLO[i]; s.Outcome() == result.Undecided && s.NeedsS > 0 {
			return again + " --measure " + flagTime(s.NeedsS), "decides " + s.Expr
		}
	}
	switch {
	case r.Consuming() || r.Run.Series != "":
		return "", ""
	case closed && searched && carried > 0:
		return search()
	}
	return again + " --repeat 6", "runs differ: six can be compared"
}

// search is a search for the highest rate that keeps the objectives of the run; without
// any, for one that most users know. It begins well below what the run carried.
func (t *single) search(command string, carried float64) string {
	command += " --rate " + flagRate(carried/beginsBelow)
	if len(t.r.Verdict.SLO) > 0 {
		return command
	}
	of := "e2e"
	switch {
	case t.r.Latency.RTT.Service != nil:
		of = "rtt"
	case !watched(t.r):
		of = "send"
	}
	return command + " --slo '" + of + ".p99 <= 10ms'"
}

// unsteady is what the reason of a run that is not steady says to do: the warm-up that it
// advises, "" without one, or what of a rate would help where what waits grew. Of an INVALID
// run the figures must not be used, so its reasons come first.
func (t *single) unsteady() (warmUp, behind string) {
	if t.r.Verdict.Status == result.Invalid {
		return "", ""
	}
	for _, c := range t.r.Verdict.Checks {
		if c.Name != judge.CheckSteady || c.Status != result.Suspect {
			continue
		}
		if grows, consumers := judge.Growing(c); consumers {
			behind = "the consumers keep up with"
		} else if grows {
			behind = "the system takes"
		}
		if s, advised := c.Values["warmup"].(float64); advised {
			return fmt.Sprintf("--warmup %gs", s), behind
		}
		return advisedWarmUp.FindString(c.Why), behind
	}
	return "", ""
}

func charts(scenario string) (command, why string) {
	dir := filepath.Dir(scenario)
	if dir == "." { // a page in the folder itself
		return "", ""
	}
	return "weir report " + Quoted(dir) + " -o " + Quoted(dir+".html"), "with charts"
}

// flagRate writes a rate as --rate takes it, to two digits.
func flagRate(perS float64) string {
	if perS <= 0 {
		return "1/s"
	}
	unit := math.Pow(10, math.Floor(math.Log10(perS))-1)
	if perS < 10 {
		return fmt.Sprintf("%.1f/s", math.Max(0.1, perS))
	}
	return fmt.Sprintf("%.0f/s", math.Floor(perS/unit)*unit)
}

func flagTime(s float64) string {
	return (time.Duration(math.Ceil(s)) * time.Second).String()
}

// plainPath are the characters of a path that a shell leaves alone.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./,:@%+=-]+$`)

// Quoted writes a path for a shell.
func Quoted(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
