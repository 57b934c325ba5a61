package judge

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// CheckSteady is the name of the check of the steady state.
const CheckSteady = "steady state"

// A series is a figure of each second of the measured window.
type series struct {
	name   string
	values []float64
	at     []float64 // the beginning of each second, in seconds since the epoch
}

// steady checks that the run was the same throughout: that its beginning does
// not belong to the warm-up, that no percentile goes up or down, and that the
// backlog does not grow, but where it is filled on purpose. A figure of a run that
// is not steady depends on when it was begun and how long it took. Seconds
// without a percentile are left out, and counted. Of a run with too few seconds for a test it
// says only what fell behind throughout.
func steady(s *subject) result.Check {
	limit := fmt.Sprintf("a change of %s, or a backlog that grows by %s of the rate; only changes with p < %v count", percent(driftMost), percent(growthMost), driftAlpha)
	var rows []result.Interval
	for _, x := range s.Intervals {
		if x.Phase == "measure" {
			rows = append(rows, x)
		}
	}
	switch {
	case s.Consuming():
		return inapplicable(CheckSteady, limit, "This run did not send these messages, so it has no latencies for them.")
	case s.evidence.RateVaries:
		return inapplicable(CheckSteady, limit, "The scenario changes the rate in the measured window, so its seconds differ by plan.")
	case s.measuredNothing():
		return notRun(CheckSteady, limit, "The run measured nothing.")
	case s.Lost().Any():
		return notRun(CheckSteady, limit, "An agent was lost, so seconds differ and messages wait for that reason.")
	case s.wholeSeconds(len(rows)) < fewestSeconds || len(rows) < fewestSampled:
		whole := s.wholeSeconds(len(rows))
		c := notRun(CheckSteady, limit, fmt.Sprintf("It needs %d measured seconds, and the run has %d.", fewestSeconds, whole))
		if whole >= fewestSeconds {
			c.Why = fmt.Sprintf("The %d measured seconds have only %d intervals, since weir read some of them late, and this check needs %d.", whole, len(rows), fewestSampled)
		}
		if found, advice := s.behind(); found != "" {
			c.Status, c.Value, c.Why = result.Suspect, found, advice
			c.Limit = fmt.Sprintf("at the end, the largest of %s of all messages, those due in %s, and the average in flight; the other checks of steady state need %d measured seconds", percent(behindMost), nanos(int64(stallS*1e9)), fewestSeconds)
		}
		return c
	}
	c := result.Check{Name: CheckSteady, Status: result.Valid, Limit: limit}
	var found, advice []string
	warm := 0.0 // until when the run was warming up, in seconds since its epoch
	figures, sampled := latencySeries(rows)
	for _, s := range figures {
		cut, change := warmingUp(s.values, strings.HasSuffix(s.name, "p50"))
		if _, still := drift(s.values[cut:]); cut > 0 && !still {
			found = append(found, fmt.Sprintf("%s of the first%s of %d measured seconds differs by %s from that of the others", s.name, more(cut), len(s.values), percent(change)))
			warm = max(warm, s.at[cut])
			continue
		}
		if change, ok := drift(s.values); ok {
			found = append(found, s.moved(change))
			advice = append(advice, "Something fills up or warms up, so the figures hold for a run of this length only. Measure for longer, or look for the cause.")
		}
	}
	// What waits ever longer changes the latencies too: no warm-up helps.
	if grown, ok := growing(rows, backlogs(rows), s.perS); ok && !s.filling() {
		found = append(found, grewBacklog+grown)
		advice, warm = []string{consumersBehind + s.catchUp()}, 0
	} else if grown, ok := growing(rows, s.unconfirmed(), s.perS); ok && s.confirmsAll() {
		found = append(found, grewOpen+grown)
		advice, warm = []string{s.systemBehind()}, 0
	}
	if warm > 0 && len(s.Faults) > 0 { // a longer warm-up moves them along
		f := &s.Faults[0]
		advice = append([]string{fmt.Sprintf("weir's own faults are in these seconds, from %s %s on. A run without faults shows whether the system was warm.", f.Do, f.To)}, advice...)
	} else if warm > 0 {
		advice = append([]string{fmt.Sprintf("The first %.0f s (warm-up included) differ from the rest. If the system was warming up, use a warm-up of at least %v times that (--warmup %gs). If the host was busy then, repeat the run.",
			warm, warmUpMargin, math.Ceil(math.Round(warm)*warmUpMargin))}, advice...)
	}
	switch {
	case len(found) > 0:
	case len(figures) == 0:
		return notRun(CheckSteady, limit, fmt.Sprintf("p50 needs %s samples in a second. %d of %d seconds have them, and this check needs %d.",
			count(stats.Needed(50)), sampled, len(rows), sampledNeeded(len(rows))))
	default:
		c.Value = fmt.Sprintf("no change in %d seconds", sampled) + leftOut(len(rows)-sampled)
		return c
	}
	c.Status, c.Value = result.Suspect, strings.Join(found, "; ")
	if len(figures) > 0 {
		c.Value += leftOut(len(rows) - sampled)
	}
	c.Why = strings.Join(compact(advice), " ")
	return c
}

// What the check says of a backlog that grew, and of confirmations that came ever later,
// begins so; and why that is.
const (
	grewBacklog     = "the backlog grew by "
	grewOpen        = "messages sent and not yet confirmed grew by "
	consumersBehind = "The consumers do not keep up with the rate: the longer the run, the longer messages wait. "
)

// systemBehind says why messages sent and not confirmed grew, and what to do.
func (s *subject) systemBehind() string {
	if by := s.blockedBySystem(); by != "" {
		return strings.TrimSpace(by)
	}
	return "The system does not confirm as fast as messages are sent: the longer the run, the longer they take. Lower the rate."
}

// Growing reports whether a check of the steady state (CheckSteady) found that ever more
// messages wait, so that the rate is too high: for the consumers, or for confirmations.
func Growing(c result.Check) (grows, consumers bool) {
	if c.Name != CheckSteady {
		return false, false
	}
	what := grew.FindString(c.Value)
	return what != "", what != "" && what != grewOpen
}

// grew finds that what waits grew, also in verdicts of older versions.
var grew = regexp.MustCompile(`the backlog (of messages not yet delivered )?grew by |` + grewOpen)

// catchUp is the advice where a backlog grows.
func (s *subject) catchUp() string {
	if s.closed() {
		return "Add consumers, or allow fewer messages in flight (--in-flight), or measure at a fixed rate that they keep up with."
	}
	return "Lower the rate, or add consumers."
}

// compact leaves out what was said before.
func compact(lines []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, l := range lines {
		if !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out
}

// moved says between which values a figure went up or down: the medians of the first and the
// last third of its seconds, since one second may be any.
func (s *series) moved(change float64) string {
	third := (len(s.values) + 2) / 3
	from, to := stats.Median(s.values[:third]), stats.Median(s.values[len(s.values)-third:])
	verb := "rose"
	if change < 0 {
		verb = "fell"
	}
	if (to-from)*change <= 0 { // against the trend, which is of all seconds
		return fmt.Sprintf("%s %s by %s, by a trend over all of %d seconds", s.name, verb, percent(abs(change)), len(s.values))
	}
	return fmt.Sprintf("%s of what completed in a second %s by %s, by a trend over %d seconds; the median is %s in the first and %s in the last %d seconds",
		s.name, verb, percent(abs(change)), len(s.values), nanos(int64(from)), nanos(int64(to)), third)
}

// more writes a number above 1 behind a word that alone says one.
func more(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" %d", n)
}

func abs(v float64) float64 { return max(v, -v) }

// wholeSeconds is how many whole seconds were measured. Rows are more where seconds of the
// clock and of the window do not begin together, and fewer where a busy host made one long.
func (s *subject) wholeSeconds(rows int) int {
	if s.Run.MeasureS <= 0 {
		return rows
	}
	return int(s.Run.MeasureS + 0.05) // a window that ends a few milliseconds early is whole
}

// sampledNeeded is how many of the measured seconds must have a percentile.
func sampledNeeded(rows int) int { return max(fewestSampled, (3*rows+3)/4) }

// leftOut says how many seconds have no percentile. In most of them the system stood still.
func leftOut(seconds int) string {
	switch {
	case seconds <= 0:
		return ""
	case seconds == 1:
		return "; 1 second left out, with too few samples for a percentile"
	}
	return fmt.Sprintf("; %d seconds left out, with too few samples for a percentile", seconds)
}

// latencySeries are the percentiles that most seconds have. sampled is how many seconds have
// one at all.
func latencySeries(rows []result.Interval) (out []series, sampled int) {
	for _, of := range []struct {
		name string
		of   func(*result.Interval) result.Points
	}{
		{"send", func(i *result.Interval) result.Points { return i.Send }},
		{"e2e", func(i *result.Interval) result.Points { return i.E2E }},
		{"rtt", func(i *result.Interval) result.Points {
			if i.RTT == nil {
				return result.Points{}
			}
			return *i.RTT
		}},
	} {
		for _, p := range []struct {
			name string
			at   func(result.Points) *int64
		}{
			{"p50", func(x result.Points) *int64 { return x.P50NS }},
			{"p99", func(x result.Points) *int64 { return x.P99NS }},
		} {
			s := series{name: of.name + " " + p.name}
			for i := range rows {
				if v := p.at(of.of(&rows[i])); v != nil {
					s.values, s.at = append(s.values, float64(*v)), append(s.at, rows[i].TS)
				}
			}
			// A second at an end of the window may be cut short, and one in which
			// nothing came has no percentile.
			if len(s.values) >= sampledNeeded(len(rows)) {
				out = append(out, s)
			}
			sampled = max(sampled, len(s.values))
		}
	}
	return out, sampled
}

// warmingUp returns how many values at the beginning are unlike the rest, and by
// which part of it; 0 where none are. median says that each value is the median
// of its second. MSER finds where the beginning ends; that alone would cut off a
// first second that is a little high by chance.
//
// The tail of a second varies by itself by factors, so that some split of ten of
// them nearly always looks like a beginning: tails are asked only where there are
// enough for means of several.
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
	if !ok { // a whole half or more: the halves are held against each other, and the first against the rest
		candidates = []int{len(values) / 2, 1}
	}
	for _, cut := range candidates {
		if change, unlike := beginning(values, cut, median); unlike {
			return cut, change
		}
	}
	return 0, 0
}

// beginning returns by which part the first values are unlike the rest, and
// whether that is more than chance and worth a word.
func beginning(values []float64, cut int, median bool) (change float64, unlike bool) {
	rest := stats.Median(values[cut:])
	if cut == 0 || rest <= 0 {
		return 0, false
	}
	change = abs(stats.Median(values[:cut])-rest) / rest
	// A median of a second that is twice off is none of chance, also where so few
	// seconds are, or so many are equal, that no test can tell. A tail may be.
	if median && change > beginningMost {
		return change, true
	}
	return change, change > driftMost && stats.MannWhitney(values[:cut], values[cut:]).P < driftAlpha
}

// drift returns by which part of their median values go up or down from the
// first to the last, and whether that is more than chance and worth a word.
func drift(values []float64) (change float64, ok bool) {
	t := stats.FindTrend(values, confidence)
	middle := stats.Median(values)
	if t.Step == 0 || middle <= 0 {
		return 0, false
	}
	change = t.Slope.Estimate * float64(len(values)-1) / middle
	return change, t.P < driftAlpha && abs(change) > driftMost
}

// backlogs are the messages that wait for consumers at the end of each second.
func backlogs(rows []result.Interval) []float64 {
	values := make([]float64, len(rows))
	for i := range rows {
		values[i] = float64(rows[i].Backlog)
	}
	return values
}

// unconfirmed are the messages that are sent and not confirmed at the end of each second
// of the measured window.
func (s *subject) unconfirmed() (values []float64) {
	open := 0.0
	for i := range s.Intervals {
		x := &s.Intervals[i]
		open += float64(x.Sent) - float64(x.Confirmed)
		if x.Phase == "measure" {
			values = append(values, open)
		}
	}
	return values
}

// confirmsAll reports whether what is not confirmed is still to be: what failed is not
// confirmed either, and a closed loop fills the places in flight.
func (s *subject) confirmsAll() bool { return !s.closed() && s.MessagesAll.Failed == 0 }

// growing says by how much what waits at the end of each second grew over the window, where
// that is more than chance and more than a part of what is offered, and where most of it
// still waits at the end.
func growing(rows []result.Interval, waits []float64, offered float64) (says string, ok bool) {
	t := stats.FindTrend(waits, confidence)
	length := rows[len(rows)-1].TS - rows[0].TS
	n := float64(len(waits)/max(t.Step, 1)) - 1
	tau := float64(t.S) / max(1, n*(n+1)/2) // 1: up in every pair of seconds
	if t.Step == 0 || length <= 0 || t.P >= driftAlpha && tau < growthTau {
		return "", false
	}
	grown := t.Slope.Estimate * float64(len(waits)-1)
	perS := grown / length
	if waits[len(waits)-1] < grown/2 { // it shrank again: what stood still has caught up
		return "", false
	}
	return fmt.Sprintf("%s messages (%s/s)", count(uint64(max(0, grown))), count(uint64(max(0, perS)))), perS > growthMost*offered && perS >= 1
}
