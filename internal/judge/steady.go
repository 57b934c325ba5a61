package judge

import (
	"math"
	"regexp"
	"strings"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

const CheckSteady = "steady state"

// A series is a figure in each second of the measured window.
type series struct {
	name   string  // "e2e p99"
	family string  // "e2e"
	p      float64 // 99
	values []float64
	at     []float64 // start of each second, in seconds since the epoch
}

// steady checks that the run was the same throughout: that its beginning does not belong to the warm-up,
// that no percentile drifts, and that the backlog does not grow unless it is filled on purpose. The figures
// of an unsteady run depend on when it began and how long it lasted. Seconds without a percentile are
// skipped, and counted. For a run with too few seconds for a test it reports only what fell behind
// throughout.
func steady(s *subject) check {
	limit := say("steady.limit", "limit", driftMost, "limit_growth", growthMost, "limit_p", driftAlpha)
	rows := s.measuredRows()
	switch {
	case s.Consuming():
		return inapplicable(CheckSteady, limit, say("no.latencies"))
	case s.evidence.RateVaries:
		return inapplicable(CheckSteady, limit, say("steady.rate_varies"))
	case s.measuredNothing():
		return notRun(CheckSteady, limit, say("steady.nothing"))
	case s.Lost().Any():
		return notRun(CheckSteady, limit, say("steady.agent_lost"))
	case s.wholeSeconds(len(rows)) < fewestSeconds || len(rows) < fewestSampled:
		return s.shortAndSteady(limit, len(rows))
	}
	c := check{name: CheckSteady, status: result.Valid, limit: limit}
	var drifts finding.Finding
	warm := 0.0 // end of the warming up, in seconds since the epoch
	figures, sampled := latencySeries(rows)
	for _, x := range changesIn(figures) {
		if x.cut > 0 {
			c.add("steady.beginning", "of", x.name, "seconds", x.cut, "all", len(x.values), "part", x.part)
			warm = max(warm, x.at[x.cut])
		} else {
			c.value = append(c.value, x.moved(x.part))
			drifts = say("steady.drifts")
		}
	}
	// A growing backlog changes the latencies too, and no warm-up helps.
	backlogs, unconfirmed := s.waiting()
	grown, ok := growing(rows, backlogs, s.perS, "steady.backlog")
	why := s.consumersBehind()
	if !ok || s.filling() {
		grown, ok = growing(rows, unconfirmed, s.perS, "steady.open")
		ok, why = ok && s.confirmsAll(), s.systemBehind()
	}
	switch {
	case ok:
		c.value, c.why = append(c.value, grown), []finding.Finding{why}
	case warm > 0 && len(s.Faults) > 0: // a longer warm-up moves the faults along
		c.why = []finding.Finding{say("steady.fault", "do", s.Faults[0].Do, "to", s.Faults[0].To)}
	case warm > 0:
		c.why = []finding.Finding{say("steady.warm_up", "warm", warm, "margin", warmUpMargin, "warmup", math.Ceil(math.Round(warm)*warmUpMargin))}
	}
	if !ok && drifts.Code != "" {
		c.why = append(c.why, drifts)
	}
	switch {
	case ok:
		c.status = result.Suspect
	case len(c.value) > 0: // their figures are marked
	case len(figures) == 0:
		return notRun(CheckSteady, limit, say("steady.few_sampled", "needs", stats.Needed(50), "sampled", sampled, "seconds", len(rows), "seconds_needed", sampledNeeded(len(rows))))
	default:
		c.add("steady.unchanged", "seconds", sampled)
	}
	if left := len(rows) - sampled; left > 0 && len(figures) > 0 { // the system mostly stalled in them
		c.add("steady.left_out", "left", left)
	}
	return c
}

// measuredRows returns the intervals of the measured window.
func (s *subject) measuredRows() (rows []result.Interval) {
	for _, x := range s.Intervals {
		if x.Phase == "measure" {
			rows = append(rows, x)
		}
	}
	return rows
}

// A change is a percentile of the seconds that was not the same throughout: its first cut seconds differ
// from the rest, or with cut 0 it drifts; by part of it.
type change struct {
	series
	cut  int
	part float64
}

func changesIn(figures []series) (out []change) {
	for _, s := range figures {
		cut, part := warmingUp(s.values, s.p == 50)
		if _, still := drift(s.values[cut:]); cut > 0 && !still {
			out = append(out, change{s, cut, part})
		} else if part, ok := drift(s.values); ok {
			out = append(out, change{s, 0, part})
		}
	}
	return out
}

// changes returns what changed in a run that the steady-state check can judge.
func (s *subject) changes() []change {
	if c := steady(s); c.status == result.NotRun {
		return nil
	}
	figures, _ := latencySeries(s.measuredRows())
	return changesIn(figures)
}

// changeMark says whether a percentile's distribution was not the same throughout the run. The seconds have
// a median and a p99, which stand for the percentiles around them.
func changeMark(all []change, d *Response, row *result.Percentile) (marks []mark) {
	for _, x := range all {
		if family, _, _ := strings.Cut(d.Name, "."); x.family != family || (x.p == 50) != (row.P <= 90) {
			continue
		}
		part := min(1, abs(x.part))
		if x.cut > 0 && x.p == row.P && x.p == 50 { // a short beginning hardly moves the median of all
			part = abs(float64(row.NS)-stats.Median(x.values[x.cut:])) / float64(max(1, row.NS))
		}
		if part > latenessValid {
			marks = append(marks, mark{CheckSteady, part, false, say("figure.unsteady", "of", x.name, "part", part, "beginning", x.cut > 0)})
		}
	}
	return marks
}

// shortAndSteady checks only what fell behind throughout.
func (s *subject) shortAndSteady(limit finding.Finding, rows int) check {
	whole := s.wholeSeconds(rows)
	c := notRun(CheckSteady, limit, say("steady.short", "needs", fewestSeconds, "seconds", whole))
	if whole >= fewestSeconds {
		c.why = []finding.Finding{say("steady.few_intervals", "seconds", whole, "intervals", rows, "needs", fewestSampled)}
	}
	if found, why, ok := s.behind(); ok {
		c.finds(result.Suspect, found, why)
		c.limit = say("steady.limit_short", "limit", behindMost, "limit_stall", stallS*1e9, "limit_seconds", fewestSeconds)
	}
	return c
}

func (s *subject) systemBehind() finding.Finding {
	if by := BlockedBySystem(s.Result); by.Code != "" {
		return say("system.blocks_sentence", "by", by)
	}
	return say("steady.system")
}

func (s *subject) consumersBehind() finding.Finding {
	return say("steady.consumers", "closed", s.closed())
}

// Growing reports whether a steady-state check (CheckSteady) found a growing backlog, so that the rate is
// too high: for the consumers, or for confirmations.
func Growing(c result.Check) (grows, consumers bool) {
	if c.Name != CheckSteady {
		return false, false
	}
	older := ""
	if c.Codes == nil {
		older = grew.FindString(c.Value)
	}
	consumers = says(c, "steady.backlog") || strings.Contains(older, "backlog")
	return consumers || older != "" || says(c, "steady.open"), consumers
}

// grew matches a growing backlog in verdicts of older versions, which stored no codes.
var grew = regexp.MustCompile(`the backlog (of messages not yet delivered )?grew by |messages sent and not yet confirmed grew by `)

// moved says between which values a figure drifted: the medians of the first and the last third of its
// seconds, since a single second may be an outlier.
func (s *series) moved(change float64) finding.Finding {
	third := (len(s.values) + 2) / 3
	from, to := stats.Median(s.values[:third]), stats.Median(s.values[len(s.values)-third:])
	if (to-from)*change <= 0 { // against the trend of all seconds
		return say("steady.against_trend", "of", s.name, "up", change >= 0, "part", abs(change), "all", len(s.values))
	}
	return say("steady.trend", "of", s.name, "up", change >= 0, "part", abs(change), "all", len(s.values), "from", from, "to", to, "third", third)
}

func abs(v float64) float64 { return max(v, -v) }

// wholeSeconds is the number of whole measured seconds. There are more rows if clock seconds and the window
// do not start together, and fewer if a busy host made one long.
func (s *subject) wholeSeconds(rows int) int {
	if s.Run.MeasureS <= 0 {
		return rows
	}
	return int(s.Run.MeasureS + 0.05) // a window may end a few milliseconds early
}

// sampledNeeded is how many measured seconds must have a percentile.
func sampledNeeded(rows int) int { return max(fewestSampled, (3*rows+3)/4) }

// latencySeries returns the percentiles that most seconds have. sampled is how many seconds have any.
func latencySeries(rows []result.Interval) (out []series, sampled int) {
	for of, name := range []string{"send", "e2e", "rtt"} {
		for p, percentile := range []float64{50, 99} {
			s := series{name: name + " " + finding.Percentile(percentile), family: name, p: percentile}
			for i := range rows {
				points := []*result.Points{&rows[i].Send, &rows[i].E2E, rows[i].RTT}[of]
				if points == nil {
					continue
				}
				if v := []*int64{points.P50NS, points.P99NS}[p]; v != nil {
					s.values, s.at = append(s.values, float64(*v)), append(s.at, rows[i].TS)
				}
			}
			// The first and last second may be truncated, and a second without messages has no percentile.
			if len(s.values) >= sampledNeeded(len(rows)) {
				out = append(out, s)
			}
			sampled = max(sampled, len(s.values))
		}
	}
	return out, sampled
}

// warmingUp returns how many values at the beginning differ from the rest, and by what fraction of it; 0 if
// none. median says that each value is the median of its second. MSER finds where the beginning ends; alone
// it would cut a first second that is slightly high by chance.
//
// A second's tail varies by factors, so that nearly always some split of ten of them looks like a
// beginning: tails are tested only if there are enough for batch means.
func warmingUp(values []float64, median bool) (cut int, change float64) {
	batch := 1
	switch {
	case len(values) >= mserFrom:
		batch = mserBatch
	case !median:
		return 0, 0
	}
	cut, ok := stats.MSER(values, batch)
	candidates := []int{cut}
	if !ok { // half or more: compare the halves, and the first with the rest
		candidates = []int{len(values) / 2, 1}
	}
	for _, cut := range candidates {
		if change, unlike := beginning(values, cut, median); unlike {
			return cut, change
		}
	}
	return 0, 0
}

// beginning returns by what fraction the first values differ from the rest, and whether that is significant
// and large enough to report.
func beginning(values []float64, cut int, median bool) (change float64, unlike bool) {
	rest := stats.Median(values[cut:])
	if cut == 0 || rest <= 0 {
		return 0, false
	}
	change = abs(stats.Median(values[:cut])-rest) / rest
	// A second's median that is off by a factor of two is not chance, even if there are too few seconds, or
	// too many ties, for a test. A tail's may be.
	if median && change > beginningMost {
		return change, true
	}
	return change, change > driftMost && stats.MannWhitney(values[:cut], values[cut:]).P < driftAlpha
}

// drift returns by what fraction of their median values change from first to last, and whether that is
// significant and large enough to report.
func drift(values []float64) (change float64, ok bool) {
	t := stats.FindTrend(values, confidence)
	middle := stats.Median(values)
	if t.Step == 0 || middle <= 0 {
		return 0, false
	}
	change = t.Slope.Estimate * float64(len(values)-1) / middle
	return change, t.P < driftAlpha && abs(change) > driftMost
}

// waiting returns the messages waiting for consumers, and those sent but not confirmed, at the end of each
// second of the measured window.
func (s *subject) waiting() (backlogs, unconfirmed []float64) {
	open := 0.0
	for i := range s.Intervals {
		x := &s.Intervals[i]
		open += float64(x.Sent) - float64(x.Confirmed)
		if x.Phase == "measure" {
			backlogs, unconfirmed = append(backlogs, float64(x.Backlog)), append(unconfirmed, open)
		}
	}
	return backlogs, unconfirmed
}

// confirmsAll reports whether unconfirmed messages are still to be confirmed: failed ones are not, and a
// closed loop fills the places in flight.
func (s *subject) confirmsAll() bool { return !s.closed() && s.MessagesAll.Failed == 0 }

// growing returns by how much the backlog grew over the window if that is significant, more than a fraction
// of the offered load, and mostly still waiting at the end.
func growing(rows []result.Interval, waits []float64, offered float64, code string) (says finding.Finding, ok bool) {
	t := stats.FindTrend(waits, confidence)
	length := rows[len(rows)-1].TS - rows[0].TS
	n := float64(len(waits)/max(t.Step, 1)) - 1
	tau := float64(t.S) / max(1, n*(n+1)/2) // 1: up in every pair of seconds
	if t.Step == 0 || length <= 0 || t.P >= driftAlpha && tau < growthTau {
		return says, false
	}
	grown := t.Slope.Estimate * float64(len(waits)-1)
	perS := grown / length
	if waits[len(waits)-1] < grown/2 { // it shrank again: the system caught up after a stall
		return says, false
	}
	return say(code, "grown", grown, "per_s", perS), perS > growthMost*offered && perS >= 1
}
