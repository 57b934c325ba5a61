package view

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// answered lists the percentiles of an answer, as far as the samples support them.
var answered = [...]float64{50, 99, 99.9, 100}

// answer summarizes the run in a few lines: the main figures of its mode, the losses, the objectives and a
// command to try next. scenario is the path of the run's scenario.yaml as the user would type it; "" leaves
// the command out. verdict is false on a page that begins with its verdict.
func (t *single) answer(scenario string, verdict bool) {
	if verdict {
		word, says := verdictOn(t.r, nil)
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

// next writes a command to paste, on a line that is never broken, with its purpose beside it, or below
// where there is no room.
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

// roomy is the longest text that fits beside a label on a terminal of 80 columns.
const roomy = 68

// verdictOn returns the verdict as a word, and what it means for the figures: the reasons against them, or
// what is marked. Of percentiles it names those shown; nil: all.
func verdictOn(r *result.Result, shown []float64) (word layout.Span, says string) {
	v := &r.Verdict
	can, cannot := judge.Quotable(v)
	marked := "the figures marked !: "
	if len(shown) > 0 {
		of := *v
		of.Figures = slices.DeleteFunc(slices.Clone(v.Figures), func(f result.Figure) bool {
			_, percentile, is := strings.Cut(f.Name, ".p")
			p, err := strconv.ParseFloat(percentile, 64)
			return is && err == nil && !slices.Contains(shown, p)
		})
		if good, bad := judge.Quotable(&of); len(bad) > 0 {
			can, cannot = good, bad
		} else {
			marked = ""
		}
	}
	reasons := because(v)
	switch {
	case v.Status == result.Invalid:
		says = "do not use the figures"
		if len(reasons) > 0 {
			says += ": " + strings.Join(reasons, ", ")
		}
	case len(reasons) > 0:
		says = strings.Join(reasons, ", ") + ": read why before you use a figure"
	case v.Status == result.Suspect:
		says = "read why before you use a figure"
	case len(cannot) > 0 && 2*len(can) < len(cannot):
		says = "but quote only " + grouped(can)
	case len(cannot) > 0:
		says = "but do not quote " + marked + grouped(cannot)
	default:
		says = "the figures can be used"
	}
	if r.Run.Interrupted {
		says += "; interrupted: the figures cover the part that ran"
	}
	status := strings.ToUpper(string(v.Status))
	return colour(status).Of(status), says
}

// because says for each deciding check what it found, in a few words; the name of a check that the catalogue
// does not know, as one of an older version.
func because(v *result.Verdict) (says []string) {
	checks := judge.Deciding(v)
	for i, c := range checks {
		if i == mostBecause && len(checks) > mostBecause+1 {
			return append(says, fmt.Sprintf("and %d more reasons", len(checks)-i))
		}
		text := finding.Verdict(c.Name)
		if c.Name == judge.CheckRun {
			text = c.Value
		}
		says = append(says, cmp.Or(text, c.Name))
	}
	return says
}

const mostBecause = 2

// grouped joins names of figures, those of several latencies with the same percentiles as one: "send and e2e
// p95 up to p99.9".
func grouped(names []string) string {
	var groups, spans []string
	for _, name := range names {
		group, span := name, ""
		if i := strings.Index(name, " p"); i >= 0 {
			group, span = name[:i], name[i:]
		}
		if n := len(groups) - 1; n >= 0 && span != "" && spans[n] == span {
			groups[n] += " and " + group
			continue
		}
		groups, spans = append(groups, group), append(spans, span)
	}
	for i := range groups {
		groups[i] += spans[i]
	}
	return strings.Join(groups, ", ")
}

// outcomesOf counts a run's objectives by outcome, and names the failed ones as far as there is room.
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

// headline returns the main figure of the run's mode: the latency at a fixed rate, or the throughput of a
// run without one.
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

// losses reports what became of the messages of the whole run: every outcome that some message has, but that
// it was delivered.
func losses(r *result.Result) layout.Span {
	m := &r.MessagesAll
	var parts []string
	bad := false
	counted := watched(r) && booked(r) || r.Booked()
	others := outcomesBeside(m)
	clean := !slices.ContainsFunc(others, func(o outcome) bool { return o.all > 0 })
	for _, o := range others {
		if o.all > 0 || counted && (o.name == "lost" || clean && o.always) {
			parts, bad = append(parts, o.name+" "+quantity.Count(o.all)), bad || o.bad && o.all > 0
			if came := map[string]uint64{"failed": m.FailedDelivered, "unconfirmed": m.UnconfirmedDelivered}[o.name]; came > 0 {
				parts[len(parts)-1] += " (" + quantity.Count(came) + " delivered)"
			}
		}
	}
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

// outcomesBeside lists the outcomes of messages other than that each was delivered once and in order. A
// screen has those marked always if nothing else is to be said.
func outcomesBeside(m *result.Messages) []outcome {
	return []outcome{
		{name: "lost", all: m.Lost, always: true, bad: true},
		{name: "late", all: m.Late, bad: true},
		{name: "duplicated", all: m.Duplicated, always: true, bad: true},
		{name: "reordered", all: m.Reordered, always: true, bad: true},
		{name: "corrupted", all: m.Corrupted, bad: true},
		{name: "misrouted", all: m.Misrouted, bad: true},
		{name: "dead-lettered", all: m.DeadLettered, bad: true},
		{name: "pending", all: m.Pending, bad: true},
		{name: "unknown", all: m.Unknown, bad: true},
		{name: "failed", all: m.Failed, bad: true},
		{name: "unconfirmed", all: m.Unconfirmed, bad: true},
		{name: "dropped", all: m.Dropped, bad: true},
		{name: "unsent", all: m.Unsent, bad: true},
		{name: "redelivered", all: m.Redelivered},
		{name: "refused", all: m.Refused},
		{name: "foreign", all: m.Foreign, bad: true},
	}
}

// warmed notes that a count covers the whole run, unlike that of the table.
func warmed(r *result.Result) string {
	if r.MessagesAll.Sent > r.Messages.Sent {
		return " (with warm-up)"
	}
	return ""
}

// finds reports whether a check with one of these names keeps the run from being valid, or a figure from
// being quoted.
func (t *single) finds(names ...string) bool {
	v := &t.r.Verdict
	if v.Status == result.Valid && slices.ContainsFunc(v.Figures, func(f result.Figure) bool { return !f.Quotable && slices.Contains(names, f.By) }) {
		return true
	}
	return slices.ContainsFunc(v.Checks, func(c result.Check) bool {
		is := c.Status == result.Invalid || c.Status == result.Suspect && v.Status != result.Invalid
		return is && slices.Contains(names, c.Name)
	})
}

// below is the fraction of a system's capacity at which weir advises measuring latencies.
const below = 0.8

// keeps is the least fraction of the offered rate carried by a system that did not fall far behind.
// beginsBelow divides the carried rate to find where a search begins.
const (
	keeps       = 0.8
	beginsBelow = 10
)

// advisedWarmUp finds the warm-up that the steady-state check advises, in results of versions that did not
// store it as a value.
var advisedWarmUp = regexp.MustCompile(`--warmup \d+s`)

// next returns the most useful next command after such a run, and its purpose. A run with agents is
// repeated only where it is known how they met.
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
		again, met = strings.TrimSpace(again+" "+t.o.Fleet.Again), t.o.Fleet.Look
	}
	closed := r.Run.Loop == result.LoopClosed
	carried := r.Throughput.ConfirmedPerS
	if perS, known := r.Throughput.Received(); known && perS > 0 && watched(r) && r.Run.Mode != result.ModeBacklog {
		carried = min(carried, perS)
	}
	// A system under overload carries a rate that says little about what it can carry in time.
	far := carried < keeps*r.Throughput.OfferedPerS
	slower := func(perS float64) string { return again + " --rate " + flagRate(perS) }
	search := func() (command, why string) {
		why = "from a tenth of this rate, doubled until the objective fails"
		return t.search(strings.Replace(again, "weir run ", "weir capacity ", 1), carried), why
	}
	searched := r.Run.Mode != result.ModeBacklog // a search is for a rate at which messages are both sent and received
	bounded := (closed || far) && len(r.Stages) == 0 && searched
	warmUp, behind := t.unsteady()
	warmUp = cmp.Or(warmUp, t.warmUpFor(judge.CheckRate))
	switch {
	case t.finds(judge.CheckAccounting):
		return "", ""
	case r.Run.Interrupted && !fleet:
		return again, "runs it to its end"
	case r.Lost().Any() && met != "":
		return met, "what is wrong with the agents"
	case r.MessagesAll.Lost+r.MessagesAll.Corrupted+r.MessagesAll.Misrouted > 0 || r.Lost().Any():
		return "less " + Quoted(filepath.Join(filepath.Dir(scenario), result.FileEvents)), "what happened when"
	case t.warmUpFor(judge.CheckFailed) != "" && !t.finds(judge.CheckRun) && !fleet:
		return again + " " + t.warmUpFor(judge.CheckFailed), "leaves the warm-up out"
	case t.finds(judge.CheckRun, judge.CheckFailed):
		return "less " + Quoted(filepath.Join(filepath.Dir(scenario), result.FileEvents)), "has the errors"
	case t.finds(judge.CheckSamples) && !fleet:
		return again + " --measure " + flagTime(math.Max(10, 2*r.Run.MeasureS)), "more samples"
	case bounded && !closed && carried > 0 && !fleet && (behind != "" || r.Host.PacerWaits > 0 && t.finds(judge.CheckLateness)):
		return search()
	case t.finds(judge.CheckLateness) && r.Host.PacerWaits > 0 && carried > 0 && !fleet:
		return slower(below * carried), "a rate that the system takes"
	case warmUp != "" && !fleet && !t.finds(judge.CheckLateness, judge.CheckHiccups, judge.CheckSteal, judge.CheckThrottling): // else the host may have been busy at the start
		return again + " " + warmUp, "leaves the warm-up out"
	case behind != "" && closed && searched && carried > 0 && !fleet:
		return search()
	case behind != "" && carried > 0 && !fleet:
		return slower(below * carried), "a rate that " + behind
	case t.finds(judge.CheckLateness, judge.CheckRate, judge.CheckHiccups, judge.CheckCPU, judge.CheckSteal, judge.CheckThrottling, judge.CheckSwap, judge.CheckGC, judge.CheckBlocked, judge.CheckFigures):
		switch {
		case len(hosts) > 1 && met != "":
			return met, "what on these hosts disturbs a run"
		case len(hosts) > 1:
			return charts(scenario)
		}
		return "weir doctor", "what disturbs this host; then run again"
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

// search is the command that searches for the highest rate that meets the run's objectives, or a common
// objective if it has none. It begins well below the rate that the run carried.
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

// unsteady returns what the steady-state check advises: warmUp is the warm-up ("" if none), behind a remedy
// for a growing backlog. An INVALID run's figures must not be used, so its reasons come first.
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
		return cmp.Or(warmUpOf(c), advisedWarmUp.FindString(c.Why)), behind
	}
	return "", ""
}

// warmUpFor returns the warm-up that a check of this name advises, as a flag; "" if none.
func (t *single) warmUpFor(check string) string {
	for _, c := range t.r.Verdict.Checks {
		if c.Name == check && t.r.Verdict.Status != result.Invalid {
			return warmUpOf(c)
		}
	}
	return ""
}

func warmUpOf(c result.Check) string {
	if s, advised := c.Values["warmup"].(float64); advised {
		return fmt.Sprintf("--warmup %gs", s)
	}
	return ""
}

func charts(scenario string) (command, why string) {
	dir := filepath.Dir(scenario)
	if dir == "." { // a page in the folder itself
		return "", ""
	}
	return "weir report " + Quoted(dir) + " -o " + Quoted(dir+".html"), "with charts"
}

// flagRate writes a rate in the form of --rate, to two digits.
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
	return quantity.Typed(time.Duration(math.Ceil(s)) * time.Second)
}

// plainPath matches paths that need no shell quoting.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./,:@%+=-]+$`)

// Quoted quotes a path for a shell.
func Quoted(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
