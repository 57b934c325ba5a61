package judge

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// An Objective compares one figure of the measured window with a limit: "e2e.p99.9 <= 10ms", "lost == 0",
// "received.rate >= 19900/s", "ratio(lost, confirmed) <= 0.01%". docs/formats/result.md has the grammar.
// Objectives with the same text are equal.
type Objective struct {
	figure figure
	op     string
	limit  float64 // in the figure's unit
	text   string  // the limit as written, without spaces
}

// A figure identifies what is compared. The kind determines which other fields apply.
type figure struct {
	kind    kind
	of      string  // the distribution, the count, the rate or the ratio's numerator
	over    string  // the ratio's denominator
	service bool    // the distribution's service time; else the response
	system  bool    // what the network and the system took of it, by kernel instants
	stat    string  // "max", "min", "mean" or "p"
	p       float64 // percent, of "p"
}

type kind uint8

const (
	latencyFigure kind = iota
	countFigure
	rateFigure
	ratioFigure
)

// What objectives can be about, as worded in errors.
const (
	allowedOps       = "<=, >=, <, > or =="
	allowedLatencies = "send, e2e, rtt or settle with .p99.9 (any percent), .max, .min or .mean"
	allowedRates     = "offered.rate, sent.rate, confirmed.rate or received.rate"
	allowedRatios    = "ratio(lost, confirmed), of any two counts"
	allowedPercents  = "a percent above 0 and below 100 with at most six decimals, such as p99.9; the largest is .max"
	longestObjective = 200     // bytes
	mostCount        = 1 << 53 // exact in a float64
)

var distributions = [...]string{"send", "e2e", "rtt", "settle"}

// ParseObjective parses an objective. Its error quotes what is wrong, with the allowed values in brackets.
func ParseObjective(s string) (Objective, error) {
	o, err := parseObjective(strings.TrimSpace(s))
	if err != nil {
		return Objective{}, err
	}
	return o, nil
}

func parseObjective(s string) (o Objective, err error) {
	switch {
	case s == "":
		return o, errors.New("is empty (an objective such as e2e.p99 <= 10ms)")
	case len(s) > longestObjective:
		return o, fmt.Errorf("%q... is too long (at most %d bytes)", s[:20], longestObjective)
	}
	const signs = "<>=!≤≥≠"
	from := strings.IndexAny(s, signs)
	if from < 0 {
		return o, fmt.Errorf("%q has no comparison (%s and a limit, such as e2e.p99 <= 10ms)", s, allowedOps)
	}
	rest := strings.TrimLeft(s[from:], signs)
	o.op = s[from : len(s)-len(rest)]
	if plain := map[string]string{"=": "==", "≤": "<=", "≥": ">="}[o.op]; plain != "" {
		o.op = plain
	}
	if !slices.Contains([]string{"<=", ">=", "<", ">", "=="}, o.op) {
		if turned := map[string]string{"=<": "<=", "=>": ">="}[o.op]; turned != "" {
			return o, fmt.Errorf("%q is not a comparison, did you mean %q? (%s)", o.op, turned, allowedOps)
		}
		return o, fmt.Errorf("%q is not a comparison (%s)", o.op, allowedOps)
	}
	if o.figure, err = parseFigure(meant(strings.TrimSpace(s[:from]))); err != nil {
		return o, err
	}
	o.text = strings.Join(strings.Fields(rest), "")
	if o.figure.kind == countFigure && slices.Contains(failures[:], o.figure.of) && strings.HasSuffix(o.text, "%") {
		o.figure = figure{kind: ratioFigure, of: o.figure.of, over: "sent"} // a bare percentage is a fraction of sent
	}
	o.limit, err = o.figure.parseLimit(o.text)
	return o, err
}

// latency matches a figure without its distribution.
var latency = regexp.MustCompile(`^(p[0-9]+(\.[0-9]+)?|max|min|mean)$`)

func parseFigure(s string) (figure, error) {
	head, tail, dotted := strings.Cut(s, ".")
	switch {
	case s == "":
		return figure{}, fmt.Errorf("names no figure to the left of the comparison (%s)", allowedFigures())
	case strings.HasPrefix(s, "ratio"):
		return parseRatio(s)
	case dotted && slices.Contains(distributions[:], head):
		return parseLatency(s, head, tail)
	case dotted && tail == "rate":
		if !slices.Contains([]string{"offered", "sent", "confirmed", "received"}, head) {
			return figure{}, fmt.Errorf("%q is not a rate (%s)", s, allowedRates)
		}
		return figure{kind: rateFigure, of: head}, nil
	case slices.Contains(counted(), s):
		return figure{kind: countFigure, of: s}, nil
	case slices.Contains(distributions[:], s):
		return figure{}, fmt.Errorf("%q is a distribution, not a figure (%s.p99.9 with any percent, %[1]s.max, %[1]s.min or %[1]s.mean)", s, s)
	case latency.MatchString(s):
		return figure{}, fmt.Errorf("%q does not say of what, did you mean %q, %q or %q? (%s)", s, "e2e."+s, "send."+s, "rtt."+s, allowedFigures())
	}
	if other := elsewhere(s); other != "" {
		return figure{}, fmt.Errorf("%q is not a figure of a run, did you mean %s? (%s)", s, other, allowedFigures())
	}
	if near := driver.Nearest(head, append(counted(), distributions[:]...)); near != "" {
		return figure{}, fmt.Errorf("%q is not a figure of a run, did you mean %q? (%s)", s, near, allowedFigures())
	}
	return figure{}, fmt.Errorf("%q is not a figure of a run (%s)", s, allowedFigures())
}

// meant translates a figure from the words of other tools if it is unambiguous: error_rate, errors, loss,
// e2e p99, e2e.p(99), e2e.avg.
func meant(s string) string {
	const failures = "ratio(failed, sent)"
	if name := map[string]string{
		"errors": "failed", "error": "failed", "failures": "failed", "loss": "lost",
		"error_rate": failures, "error rate": failures, "http_req_failed": failures,
	}[strings.ToLower(s)]; name != "" {
		return name
	}
	if m := called.FindStringSubmatch(strings.ToLower(s)); m != nil && slices.Contains(distributions[:], m[1]) {
		return m[1] + ".p" + m[2]
	}
	of, stat, _ := strings.Cut(s, ".")
	if name := map[string]string{"avg": "mean", "average": "mean", "med": "p50", "median": "p50"}[stat]; name != "" {
		return of + "." + name
	}
	return s
}

// called matches a percentile as other tools write it: p(99), e2e p99.
var called = regexp.MustCompile(`^(?:([a-z0-9]+)[ .]+)?p\(?([0-9]+(?:\.[0-9]+)?)\)?$`)

// elsewhere returns weir's name for another tool's figure, quoted; "" if unknown.
func elsewhere(s string) string {
	s = strings.ToLower(s)
	switch s {
	case "dropped", "missing":
		return `"lost"`
	case "throughput", "qps", "rps", "rate":
		return `"received.rate" or "confirmed.rate"`
	case "avg", "average":
		return `"e2e.mean", "send.mean" or "rtt.mean"`
	case "latency", "response_time", "http_req_duration":
		return `"e2e.p99" or "send.p99"`
	}
	m := called.FindStringSubmatch(s)
	if m == nil || m[1] != "" {
		return ""
	}
	return fmt.Sprintf(`"e2e.p%s", "send.p%[1]s" or "rtt.p%[1]s"`, m[2])
}

func allowedFigures() string {
	return allowedLatencies + "; a count: " + strings.Join(counted(), ", ") + "; a rate: " + allowedRates + "; " + allowedRatios
}

// counted returns the names of the counts in result.Messages.
func counted() []string {
	t := reflect.TypeFor[result.Messages]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

var ratio = regexp.MustCompile(`^ratio\s*\(([^,]*),(.*)\)$`)

func parseRatio(s string) (figure, error) {
	m := ratio.FindStringSubmatch(s)
	if m == nil {
		return figure{}, fmt.Errorf("%q is not a ratio (%s)", s, allowedRatios)
	}
	a, b := strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
	for _, x := range []string{a, b} {
		if !slices.Contains(counted(), x) {
			return figure{}, fmt.Errorf("%s: %q is not a count (%s)", s, x, strings.Join(counted(), ", "))
		}
	}
	return figure{kind: ratioFigure, of: a, over: b}, nil
}

func parseLatency(s, of, stat string) (figure, error) {
	f := figure{kind: latencyFigure, of: of}
	if part, rest, ok := strings.Cut(stat, "."); ok && (part == "service" || part == "response") {
		if of == "settle" {
			return figure{}, fmt.Errorf("%q: settle has neither response nor service (settle.p99.9 with any percent, settle.max, settle.min or settle.mean)", s)
		}
		f.service, stat = part == "service", rest
	}
	if rest, ok := strings.CutPrefix(stat, "system."); ok {
		if of != "send" && of != "e2e" {
			return figure{}, fmt.Errorf("%q: kernel instants split up send and e2e alone (e2e.system.p99 with any percent)", s)
		}
		if stat = rest; !strings.HasPrefix(rest, "p") {
			return figure{}, fmt.Errorf("%q: of a sample there is no %s (%s.system.p99 with any percent)", s, rest, of)
		}
		f.system = true
	}
	switch stat {
	case "max", "min", "mean":
		f.stat = stat
		return f, nil
	}
	percent, ok := strings.CutPrefix(stat, "p")
	if !ok || percent != "" && (percent[0] < '0' || percent[0] > '9') {
		return figure{}, fmt.Errorf("%q: a distribution has no %q (p99.9 with any percent, max, min or mean; service. before it for the service time)", s, stat)
	}
	p, err := decimal(percent)
	_, fraction, _ := strings.Cut(percent, ".")
	if err != nil || p <= 0 || p >= 100 || len(fraction) > 6 {
		return figure{}, fmt.Errorf("%q: %q is not a percentile (%s)", s, stat, allowedPercents)
	}
	f.stat, f.p = "p", p
	return f, nil
}

// decimal parses a plain decimal number: no sign, no exponent.
func decimal(s string) (float64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if !digits(whole) || point && !digits(fraction) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// parseLimit parses a limit in the figure's unit.
func (f figure) parseLimit(s string) (float64, error) {
	if s == "" {
		return 0, fmt.Errorf("has no limit to the right of the comparison (%s)", f.allowedLimit())
	}
	wrong := func(what string) (float64, error) {
		return 0, fmt.Errorf("%q %s (%s)", s, what, f.allowedLimit())
	}
	plain, err := decimal(s)
	number := err == nil
	switch f.kind {
	case latencyFigure:
		d, err := quantity.Duration(s)
		switch {
		case number && plain != 0:
			return wrong("has no unit")
		case err != nil:
			return wrong("is not a duration")
		case d < 0 || d > time.Hour:
			return wrong("is out of range")
		}
		return float64(d), nil
	case rateFigure:
		if s == "0/s" {
			return 0, nil
		}
		r, err := schedule.ParseRate(s)
		if err != nil {
			return wrong("is not a rate")
		}
		return r.PerSecond(), nil
	case ratioFigure:
		whole := 1.0
		if part, ok := strings.CutSuffix(s, "%"); ok {
			plain, err = decimal(part)
			whole = 100
		}
		if err != nil {
			return wrong("is not a part of a whole")
		}
		return plain / whole, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case strings.HasSuffix(s, "%"):
		return 0, fmt.Errorf("%q is not a count, and %s is one (%s; for a part write ratio(%s, sent))", s, f.of, f.allowedLimit(), f.of)
	case err != nil || n > mostCount:
		return wrong("is not a count")
	}
	return float64(n), nil
}

func (f figure) allowedLimit() string {
	switch f.kind {
	case latencyFigure:
		return "a duration such as 250µs, 10ms or 1s, up to 1h"
	case rateFigure:
		return "a rate such as 19900/s"
	case ratioFigure:
		return "a percentage such as 0.01%, or the same as a part of 1, 0.0001"
	}
	return "a whole number, such as 0 or 10"
}

// String returns the objective as ParseObjective reads it.
func (o Objective) String() string { return o.figure.String() + " " + o.op + " " + o.text }

func (f figure) String() string {
	if f.kind == ratioFigure {
		return "ratio(" + f.of + ", " + f.over + ")"
	}
	return Objective{figure: f}.Figure()
}

// Latency returns the distribution that the objective is about, "send", "e2e", "rtt" or "settle", and
// whether it uses the service time instead of the response. The name is "" for counts, rates and ratios.
func (o Objective) Latency() (name string, service bool) {
	if o.figure.kind != latencyFigure {
		return "", false
	}
	return o.figure.of, o.figure.service
}

// OfSystem reports whether the objective is about what the network and the system took, by kernel instants.
func (o Objective) OfSystem() bool { return o.figure.system }

// Receiving reports whether the objective is about messages that consumers got, or should have got.
func (o Objective) Receiving() bool { return o.figure.needsReceivers() }

// Booked reports whether the objective counts messages and so needs to know what was sent.
func (o Objective) Booked() bool {
	f := o.figure
	known := func(name string) bool { return name == "foreign" || name == "settled" || name == "refused" }
	return f.kind == countFigure && !known(f.of) || f.kind == ratioFigure && (!known(f.of) || !known(f.over))
}

// Percentile returns the objective's percentile, in percent; the distribution to be judged must include it,
// see Distribution.
func (o Objective) Percentile() (p float64, ok bool) {
	return o.figure.p, o.figure.kind == latencyFigure && o.figure.stat == "p"
}

// Limit returns the limit in base units: nanoseconds, messages, messages per second, or a fraction.
func (o Objective) Limit() float64 { return o.limit }

// Met reports whether a value of the figure, in base units, is within the limit.
func (o Objective) Met(value float64) bool {
	pass, _ := compare(o.op, value, value, o.limit)
	return pass
}

func missing(code string, values ...any) found { return found{why: say(code, values...)} }

// found is a figure with its interval.
type found struct {
	value   float64
	unit    string          // "" if there is no such figure
	atLeast bool            // value is a lower bound
	lo, hi  *float64        // nil if unbounded
	why     finding.Finding // why the figure or an end is missing
}

func exactly(v float64, unit string) found { return found{value: v, unit: unit, lo: &v, hi: &v} }

func (x *found) lacks(code string, values ...any) { x.why = say(code, values...) }

// Judge compares the objective with a run. It is met only if the whole 95 % interval of the figure keeps
// the limit, and missed only if the whole interval misses it. A percentile without an upper end may also be
// bounded by all the samples; see bounded.
func (o Objective) Judge(r *result.Result) result.SLO { return o.judge(r, confidence) }

// judge is Judge for intervals of a given confidence.
func (o Objective) judge(r *result.Result, conf float64) result.SLO {
	f := o.figure.find(r)
	s := result.SLO{Expr: o.String(), Value: f.value, AtLeast: f.atLeast, Unit: f.unit, Lo: f.lo, Hi: f.hi, Status: result.Undecided}
	why := []finding.Finding{f.why}
	lo, hi := math.Inf(-1), math.Inf(1)
	if f.lo != nil {
		lo = *f.lo
	}
	if f.hi != nil {
		hi = *f.hi
	}
	switch pass, fail := compare(o.op, lo, hi, o.limit); {
	case f.unit == "":
	case pass:
		s.Status, s.Pass, why = result.Pass, true, nil
	case fail:
		s.Status, why = result.Fail, nil
	default:
		if bound := o.bounded(r.Dist(o.figure.distribution()), conf); bound.Code != "" {
			s.Status, s.Pass, why = result.Pass, true, []finding.Finding{bound}
			break
		}
		if f.why.Code == "" {
			why[0] = say("objective.inside", "lo", lo, "hi", hi)
		}
		switch s.NeedsS = o.needs(r, f); {
		case s.NeedsS > 0:
			why = append([]finding.Finding{say("objective.needs", "seconds", s.NeedsS)}, why...)
		case f.lo != nil && f.hi != nil && f.why.Code == "":
			why = append(why, say("objective.equal"))
		}
	}
	s.Why = finding.Join(why, "; ")
	s.Codes, s.Values = finding.Data(why...)
	return s
}

// longestNeeded limits the advised length, as a multiple of the run's: if more is needed, the figure equals
// the limit for all practical purposes.
const longestNeeded = 1000

// needs returns the length, in seconds, of a measured window that would probably decide an objective that r
// left open; 0 if unknown or not useful. An interval narrows with the square root of its samples, until it
// ends at the limit. If there are too few samples for an upper end at all, it takes as many as would be
// needed if independent, plus half.
func (o Objective) needs(r *result.Result, f found) float64 {
	if r.Run.MeasureS <= 0 || f.why.Code != "" && o.figure.stat != "p" {
		return 0
	}
	end := f.hi
	if o.limit < f.value {
		end = f.lo
	}
	if end != nil && f.lo != nil && f.hi != nil {
		reach := (*end - f.value) / (o.limit - f.value)
		if times := reach * reach; !math.IsInf(times, 0) && !math.IsNaN(times) && times <= longestNeeded {
			return r.Run.MeasureS * max(times, 1) * needsSpare
		}
		return 0
	}
	d := r.Dist(o.figure.distribution())
	if o.figure.kind != latencyFigure || o.figure.stat != "p" || d == nil || d.Censored > 0 || d.Count == 0 {
		return 0
	}
	row := d.Percentile(o.figure.p)
	if row == nil {
		return 0
	}
	switch row.UnboundedBy {
	case result.ByDependence:
		// Twice the blocks that would just suffice, since so few are a poor estimate.
		return r.Run.MeasureS * min(max(2*stats.FewestIndependent/max(row.Blocks, 1), 2), longestNeeded)
	case result.ByEpisodes:
		return r.Run.MeasureS * fewestEpisodes / float64(max(row.Episodes, 1)) * needsSpare
	}
	p := o.figure.p
	if f.lo == nil && strings.HasPrefix(o.op, ">") { // the lower end is missing
		p = 100 - p
	}
	samples := max(boundedFrom(p)*max(1, row.Deff), float64(stats.Needed(o.figure.p)))
	if times := samples / float64(d.Count); times <= longestNeeded*longestNeeded {
		return r.Run.MeasureS * max(times, 1) * needsSpare
	}
	return 0
}

// needsSpare is a margin on a length that would just suffice if the figures stayed the same.
const needsSpare = 1.5

// boundedFrom returns the least number of independent samples for which the interval of percentile p has an
// upper end: 1 - q^n >= 1 - tail.
func boundedFrom(p float64) float64 {
	return math.Log((1-confidence)/2) / math.Log1p((p-100)/100)
}

// compare reports whether all of lo to hi keeps, or misses, the limit.
func compare(op string, lo, hi, limit float64) (pass, fail bool) {
	switch op {
	case "<=":
		return hi <= limit, lo > limit
	case "<":
		return hi < limit, lo >= limit
	case ">=":
		return lo >= limit, hi < limit
	case ">":
		return lo > limit, hi <= limit
	}
	return lo == limit && hi == limit, lo > limit || hi < limit
}

// find looks up the figure. It is unknown if it needs lost agents.
func (f figure) find(r *result.Result) found {
	lost := r.Lost()
	if !f.needsReceivers() {
		lost.Receivers = nil
	}
	if lost.Any() {
		return missing("objective.agents_lost", "agents", lost.Agents())
	}
	switch f.kind {
	case countFigure:
		return countedBetween(r, f.of, 1, "messages")
	case ratioFigure:
		over := countOf(&r.Messages, f.over)
		if over == 0 {
			return missing("objective.no_ratio", "over", f.over)
		}
		if f.over == lostCount && r.Messages.Pending+r.Messages.Unknown > 0 {
			return found{why: undelivered(r)}
		}
		return countedBetween(r, f.of, float64(over)*owed(r, f), "ratio")
	case rateFigure:
		return f.findRate(r)
	}
	return f.findLatency(r)
}

// lostCount is the only count that can be unknown at the end of a run.
const lostCount = "lost"

// duplicatedCount is known only if no message is unknown.
const duplicatedCount = "duplicated"

// countedBetween returns a count as a fraction of over. Lost messages are at least those found lost, and at
// most also all that were still pending or unknown. If some are unknown, so is the number of duplicates.
func countedBetween(r *result.Result, of string, over float64, unit string) found {
	n := countOf(&r.Messages, of)
	x := exactly(float64(n)/over, unit)
	if of == lostCount && r.Messages.Pending+r.Messages.Unknown > 0 {
		x.atLeast, x.hi, x.why = true, new(float64(n+r.Messages.Pending+r.Messages.Unknown)/over), undelivered(r)
	}
	if of == duplicatedCount && r.Messages.Unknown > 0 {
		x.atLeast, x.hi, x.why = true, nil, undelivered(r)
	}
	return x
}

// owed is the number of subscriptions that each message in a ratio's denominator is owed to, if the
// numerator sums over them.
func owed(r *result.Result, f figure) float64 {
	sending := func(name string) bool { return slices.Contains(senders[:], name) }
	if sending(f.of) || !sending(f.over) {
		return 1
	}
	return float64(max(1, len(r.Subscriptions)))
}

// senders are the counts that do not sum over subscriptions.
var senders = [...]string{"scheduled", "sent", "dropped", "unsent", "confirmed", "failed", "unconfirmed"}

func undelivered(r *result.Result) finding.Finding {
	if n := r.Messages.Unknown; n > 0 {
		return say("objective.unknown", "unknown", n)
	}
	return say("objective.pending", "pending", r.Messages.Pending)
}

func countOf(m *result.Messages, field string) uint64 {
	return reflect.ValueOf(*m).Field(slices.Index(counted(), field)).Uint()
}
