package judge

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

func TestObjectiveRoundTrip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"e2e.p99.9 <= 10ms":                "e2e.p99.9 <= 10ms",
		"  e2e.p99.9<=10 ms ":              "e2e.p99.9 <= 10ms",
		"send.p50 < 250µs":                 "send.p50 < 250µs",
		"send.p50 < 250us":                 "send.p50 < 250us",
		"rtt.max > 0":                      "rtt.max > 0",
		"settle.mean >= 1.5ms":             "settle.mean >= 1.5ms",
		"e2e.service.p99 <= 1m":            "e2e.service.p99 <= 1m",
		"e2e.response.p99 <= 1h":           "e2e.p99 <= 1h",
		"send.service.min <= 1ns":          "send.service.min <= 1ns",
		"send.p99.999999 <= 1s":            "send.p99.999999 <= 1s",
		"send.p99.90 <= 1s":                "send.p99.9 <= 1s",
		"lost == 0":                        "lost == 0",
		"failed<=10":                       "failed <= 10",
		"unconfirmed_delivered == 0":       "unconfirmed_delivered == 0",
		"received.rate >= 19900/s":         "received.rate >= 19900/s",
		"offered.rate >= 100/m":            "offered.rate >= 100/m",
		"confirmed.rate > 0/s":             "confirmed.rate > 0/s",
		"ratio(lost, confirmed) <= 0.01%":  "ratio(lost, confirmed) <= 0.01%",
		"ratio( lost,confirmed )<= 0.01 %": "ratio(lost, confirmed) <= 0.01%",
		"ratio(failed, sent) < 0.001":      "ratio(failed, sent) < 0.001",
		"lost = 0":                         "lost == 0",
		"lost==0":                          "lost == 0",
		"loss=0":                           "lost == 0",
		"e2e.p99 ≤ 1ms":                    "e2e.p99 <= 1ms",
		"received.rate≥5/s":                "received.rate >= 5/s",
		"errors == 0":                      "failed == 0",
		"errors <1%":                       "ratio(failed, sent) < 1%",
		"error_rate<1%":                    "ratio(failed, sent) < 1%",
		"http_req_failed < 0.01":           "ratio(failed, sent) < 0.01",
		"e2e p99 <= 10ms":                  "e2e.p99 <= 10ms",
		"e2e.p(99.9)<10ms":                 "e2e.p99.9 < 10ms",
		"send.avg<200ms":                   "send.mean < 200ms",
		"rtt.med < 5ms":                    "rtt.p50 < 5ms",
	} {
		o, err := ParseObjective(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if o.String() != want {
			t.Errorf("%q reads as %q; want %q", in, o.String(), want)
		}
		if again, err := ParseObjective(o.String()); err != nil || again != o {
			t.Errorf("%q does not read as itself: %v, %+v", o.String(), err, again)
		}
	}
}

func TestEveryCountMayBeAnObjective(t *testing.T) {
	t.Parallel()
	for _, c := range counted() {
		if _, err := ParseObjective(c + " == 0"); err != nil {
			t.Error(err)
		}
	}
}

func TestLimitsAreInBaseUnits(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]float64{
		"e2e.p99 <= 10ms":                 10e6,
		"failed <= 10":                    10,
		"received.rate >= 600/m":          10,
		"received.rate >= 2k":             2000,
		"sent.rate >= 1,000/s":            1000,
		"e2e.max <= 1 min 30 sec":         90e9,
		"ratio(lost, confirmed) <= 0.25%": 0.0025,
		"ratio(lost, confirmed) <= 0.5":   0.5,
	} {
		if o, err := ParseObjective(in); err != nil || math.Abs(o.Limit()-want) > 1e-12 {
			t.Errorf("%q: limit %v, %v; want %v", in, o.Limit(), err, want)
		}
	}
}

func TestInvalidObjectiveErrorNamesAlternatives(t *testing.T) {
	t.Parallel()
	const unit, percents = "(a duration such as 250µs, 10ms or 1s, up to 1h)", "(a percent above 0 and below 100 with at most six decimals, such as p99.9; the largest is .max)"
	for in, want := range map[string]string{
		"":                             "is empty (an objective such as e2e.p99 <= 10ms)",
		"  ":                           "is empty (an objective such as e2e.p99 <= 10ms)",
		strings.Repeat("x", 201):       `"xxxxxxxxxxxxxxxxxxxx"... is too long (at most 200 bytes)`,
		"e2e.p99":                      `"e2e.p99" has no comparison (<=, >=, <, > or == and a limit, such as e2e.p99 <= 10ms)`,
		"e2e.p99 =< 1ms":               `"=<" is not a comparison, did you mean "<="? (<=, >=, <, > or ==)`,
		"lost != 0":                    `"!=" is not a comparison (<=, >=, <, > or ==)`,
		"e2e.p99 ≠ 1ms":                `"≠" is not a comparison (<=, >=, <, > or ==)`,
		"<= 1ms":                       `names no figure to the left of the comparison (send, e2e, rtt or settle with`,
		"e2e.p99 <=":                   "has no limit to the right of the comparison " + unit,
		"e2e.p99 <= 10":                `"10" has no unit ` + unit,
		"e2e.p99 <= ten":               `"ten" is not a duration ` + unit,
		"e2e.p99 <= 1%":                `"1%" is not a duration ` + unit,
		"e2e.p99 <= -1ms":              `"-1ms" is out of range ` + unit,
		"e2e.p99 <= 61m":               `"61m" is out of range ` + unit,
		"1ms <= e2e.p99 <= 2ms":        `"1ms" is not a figure of a run (`,
		"e2e.p99 <= 1ms <= 2ms":        `"1ms<=2ms" is not a duration ` + unit,
		"e2e <= 10ms":                  `"e2e" is a distribution, not a figure (e2e.p99.9 with any percent, e2e.max, e2e.min or e2e.mean)`,
		"e2e.p0 <= 1ms":                `"e2e.p0": "p0" is not a percentile ` + percents,
		"e2e.p100 <= 1ms":              `"e2e.p100": "p100" is not a percentile ` + percents,
		"e2e.p99.9999999 <= 1ms":       `"e2e.p99.9999999": "p99.9999999" is not a percentile ` + percents,
		"e2e.p <= 1ms":                 `"e2e.p": "p" is not a percentile ` + percents,
		"e2e.p9e1 <= 1ms":              `"e2e.p9e1": "p9e1" is not a percentile ` + percents,
		"e2e.range <= 1ms":             `"e2e.range": a distribution has no "range" (p99.9 with any percent, max, min or mean; service. before it for the service time)`,
		"e2e. <= 1ms":                  `"e2e.": a distribution has no ""`,
		"settle.service.p9 < 1s":       `"settle.service.p9": settle has neither response nor service`,
		"losst == 0":                   `"losst" is not a figure of a run, did you mean "lost"? (`,
		"p99.9 <= 1ms":                 `"p99.9" does not say of what, did you mean "e2e.p99.9", "send.p99.9" or "rtt.p99.9"? (`,
		"ete.p99 <= 1ms":               `"ete.p99" is not a figure of a run, did you mean "e2e"? (`,
		"throughput >= 1/s":            `"throughput" is not a figure of a run, did you mean "received.rate" or "confirmed.rate"? (`,
		"p(99)<10ms":                   `"p(99)" is not a figure of a run, did you mean "e2e.p99", "send.p99" or "rtt.p99"? (`,
		"avg<200ms":                    `"avg" is not a figure of a run, did you mean "e2e.mean", "send.mean" or "rtt.mean"? (`,
		"missing == 0":                 `"missing" is not a figure of a run, did you mean "lost"? (`,
		"lost <= 1%":                   `"1%" is not a count, and lost is one (a whole number, such as 0 or 10; for a part write ratio(lost, sent))`,
		"lost <= 0.5":                  `"0.5" is not a count (a whole number, such as 0 or 10)`,
		"lost <= 1ms":                  `"1ms" is not a count (a whole number, such as 0 or 10)`,
		"lost <= 99999999999999999999": `"99999999999999999999" is not a count (a whole number, such as 0 or 10)`,
		"lost.rate <= 1/s":             `"lost.rate" is not a rate (offered.rate, sent.rate, confirmed.rate or received.rate)`,
		"sent.rate >= 1,00/s":          `"1,00/s" is not a rate (a rate such as 19900/s)`,
		"ratio(lost) == 0":             `"ratio(lost)" is not a ratio (ratio(lost, confirmed), of any two counts)`,
		"ratio lost/sent == 0":         `"ratio lost/sent" is not a ratio (ratio(lost, confirmed), of any two counts)`,
		"ratio(lost, all) == 0":        `ratio(lost, all): "all" is not a count (scheduled, sent,`,
		"ratio(lost, sent) < 1ms":      `"1ms" is not a part of a whole (a percentage such as 0.01%, or the same as a part of 1, 0.0001)`,
		"ratio(lost, sent) < -1%":      `"-1%" is not a part of a whole (`,
		"ratio(lost, sent) < 1e9":      `"1e9" is not a part of a whole (`,
	} {
		_, err := ParseObjective(in)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", in, err, want)
		}
	}
}

// judged is a run of 1,000 answers of 1 to 1,000 µs, and for e2e of 900 and 100 that had not come after at
// least 2 s.
func judged() *result.Result {
	open := new(measure.Counts)
	open.Add(2_000_000_000, 100)
	sent := Distribution(upTo(1000, 1000), nil, 99.5, 0.1)
	sent.MeanDeff = 1
	return &result.Result{
		Run:        result.Run{Loop: result.LoopOpen, MeasureS: 10},
		Messages:   result.Messages{Scheduled: 1000, Sent: 1000, Confirmed: 1000, Delivered: 900, Lost: 100},
		Throughput: result.Throughput{OfferedPerS: 100, SentPerS: 100, ConfirmedPerS: 99.9, ReceivedPerS: new(90.0)},
		Latency: result.Latency{
			Send:   result.Send{Response: sent},
			E2E:    result.Pair{Response: Distribution(upTo(900, 1000), open), Service: Distribution(upTo(900, 1000), nil)},
			Settle: Distribution(upTo(4, 1000), nil, 1),
		},
	}
}

func TestObjectivesJudgedByWholeInterval(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		// send.p50 is 500 µs, between 469 and 532 µs.
		"send.p50 <= 540µs": "pass",
		"send.p50 < 540µs":  "pass",
		"send.p50 <= 510µs": "undecided: measure about 3 min to decide it; the limit lies inside its 95 % interval, 469 µs to 532 µs",
		"send.p50 <= 490µs": "undecided: measure about 3 min to decide it; the limit lies inside its 95 % interval, 469 µs to 532 µs",
		"send.p50 <= 460µs": "fail",
		"send.p50 >= 460µs": "pass",
		"send.p50 > 460µs":  "pass",
		"send.p50 >= 540µs": "fail",
		"send.p50 > 540µs":  "fail",
		"send.p50 == 1ms":   "fail",
		"send.p50 == 500µs": "undecided: the limit lies inside its 95 % interval, 469 µs to 532 µs; no run of a useful length decides it, because the figure equals the limit",
		// An objective's own percentile.
		"send.p99.5 <= 1.1ms": "pass",
		"send.p98 <= 1ms":     "undecided: the result has no p98 (it has p0.1, p50, p75, p90, p95, p99, p99.5, p99.9, p99.99, p99.999, p99.9999)",
		"send.p0.1 >= 1µs":    "undecided: measure about 56 s to decide it; 1,000 samples are too few to bound p0.1 from below",
		// Unsupported: it can miss a limit and not keep one.
		"send.p99.9 <= 10ms": "undecided: measure about 75 s to decide it; p99.9 needs 5,000 samples, has 1,000",
		"send.p99.9 <= 10µs": "fail",
		"send.p99.9 >= 10µs": "pass",
		"settle.p50 >= 1µs":  "undecided: measure about 38 s to decide it; p50 needs 10 samples, has 4",
		"settle.p50 <= 1s":   "undecided: measure about 38 s to decide it; p50 needs 10 samples, has 4",
		// Censored: the same.
		"e2e.p50 <= 1ms":        "pass",
		"e2e.p95 <= 10s":        "undecided: 100 of 1,000 messages had not completed when the run ended: the figure is at least this",
		"e2e.p95 <= 1s":         "fail",
		"e2e.p95 >= 1s":         "pass",
		"e2e.p90 <= 1s":         "undecided: 100 of 1,000 messages had not completed when the run ended: the figure is at least this",
		"e2e.max <= 1s":         "fail",
		"e2e.max <= 10s":        "undecided: 100 of 1,000 messages had not completed when the run ended: the figure is at least this",
		"e2e.mean <= 10s":       "undecided: the mean is not known: 100 of 1,000 messages had not completed when the run ended: the figure is at least this",
		"e2e.min >= 1µs":        "undecided: 100 of 1,000 messages had not completed when the run ended: the figure is at least this",
		"e2e.min <= 1µs":        "pass",
		"e2e.service.p50 < 1ms": "pass",
		// Facts of this run.
		"send.max <= 1ms": "pass",
		"send.max < 1ms":  "fail",
		"send.min == 1µs": "pass",
		// The mean is 500.5 µs, ±17.9 µs.
		"send.mean <= 520µs": "pass",
		"send.mean <= 510µs": "undecided: measure about 54 s to decide it; the limit lies inside its 95 % interval, 483 µs to 518 µs",
		"send.mean <= 480µs": "fail",
		"settle.mean <= 1s":  "undecided: a mean needs 30 samples for an interval, has 4",
		// Counts, rates and ratios.
		"lost == 0":                       "fail",
		"lost <= 100":                     "pass",
		"duplicated == 0":                 "pass",
		"received.rate >= 90/s":           "pass",
		"received.rate >= 91/s":           "fail",
		"sent.rate == 100/s":              "pass",
		"offered.rate > 100/s":            "fail",
		"confirmed.rate >= 99.5/s":        "pass",
		"ratio(lost, confirmed) <= 10%":   "pass",
		"ratio(lost, confirmed) <= 0.099": "fail",
		"ratio(lost, dropped) <= 10%":     "undecided: dropped is 0, so the ratio has no value",
		// Absent.
		"rtt.p99 <= 1s":          "undecided: the run has no rtt times",
		"rtt.service.p99 <= 1s":  "undecided: the run has no rtt.service times",
		"send.service.p99 <= 1s": "undecided: the run has no send.service times",
	} {
		o := must.Get(ParseObjective(expr))(t)
		s := o.Judge(judged())
		got := string(s.Status)
		if s.Why != "" {
			got += ": " + s.Why
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", expr, got, want)
		}
		if s.Pass != (s.Status == result.Pass) || s.Expr != expr {
			t.Errorf("%s: %+v", expr, s)
		}
	}
}

// Checks the rule of ADR 25 against its closed form: none of n independent samples lies beyond p99 with
// probability 0.99^n, which is 2.5 % at n = 367.04, and beyond p90 at n = 35.01.
func TestObjectiveKeptByAllMessages(t *testing.T) {
	t.Parallel()
	const ms = 1_000_000
	row := func(p float64, by string, deff float64, hi *int64) result.Percentile {
		return result.Percentile{P: p, NS: ms, LoNS: new(int64(ms / 2)), HiNS: hi, Supported: true, UnboundedBy: by, Deff: deff, Blocks: 20, Episodes: 3}
	}
	dist := func(count uint64, rows ...result.Percentile) *result.Dist {
		return &result.Dist{Count: count, MaxNS: new(int64(5 * ms)), Percentiles: rows}
	}
	with := func(d *result.Dist, change func(*result.Dist)) *result.Dist { change(d); return d }
	for name, x := range map[string]struct {
		objective string
		d         *result.Dist
		pass      bool
		why       string
	}{
		"just enough":                               {"e2e.p99 <= 50ms", dist(3680, row(99, result.ByEpisodes, 10, nil)), true, "all 3,680 messages kept the limit (at most 5.00 ms) and are worth 368 independent ones; with p99 over the limit, 97.5 % of such runs have a message over it"},
		"one too few":                               {"e2e.p99 <= 50ms", dist(3670, row(99, result.ByEpisodes, 10, nil)), false, "the messages beyond p99 came in 3 separate bursts, and an upper end needs 6"},
		"just enough for p90":                       {"e2e.p90 < 50ms", dist(360, row(90, result.ByEpisodes, 10, nil)), true, "worth 36 independent ones"},
		"one too few for p90":                       {"e2e.p90 < 50ms", dist(350, row(90, result.ByEpisodes, 10, nil)), false, ""},
		"the slowest is too slow":                   {"e2e.p99 < 5ms", dist(99999, row(99, result.ByEpisodes, 10, nil)), false, ""},
		"the slowest is the limit":                  {"e2e.p99 <= 5ms", dist(99999, row(99, result.ByEpisodes, 10, nil)), true, ""},
		"their worth is not known":                  {"e2e.p99 <= 50ms", dist(99999, row(99, result.ByDependence, 0, nil)), false, "the upper end of p99 is not known"},
		"their worth near the end is not known":     {"e2e.p99 <= 50ms", dist(99999, row(99, result.ByDependence, 10, nil)), false, ""},
		"a larger percentile is bounded":            {"e2e.p99 <= 50ms", dist(99999, row(99, result.ByDependence, 0, nil), row(99.9, "", 10, new(int64(4*ms)))), true, "the interval of p99.9 ends at 4.00 ms, and p99 is at most that"},
		"a larger percentile is bounded elsewhere":  {"e2e.p99 <= 3ms", dist(99999, row(99, result.ByDependence, 0, nil), row(99.9, "", 10, new(int64(4*ms)))), false, ""},
		"a smaller percentile bounds nothing":       {"e2e.p99 <= 50ms", dist(99999, row(50, "", 10, new(int64(4*ms))), row(99, result.ByDependence, 0, nil)), false, ""},
		"the worth of a larger percentile":          {"e2e.p99 <= 50ms", dist(36880, row(99, result.ByDependence, 0, nil), row(99.9, result.ByEpisodes, 10, nil)), true, "with p99.9 over the limit"},
		"the worth of a larger percentile, too few": {"e2e.p99 <= 50ms", dist(36870, row(99, result.ByDependence, 0, nil), row(99.9, result.ByEpisodes, 10, nil)), false, ""},
		"a message did not end":                     {"e2e.p99 <= 50ms", with(dist(99999, row(99, result.ByEpisodes, 10, nil)), func(d *result.Dist) { d.Censored = 1 }), false, ""},
		"a message took over an hour":               {"e2e.p99 <= 50ms", with(dist(99999, row(99, result.ByEpisodes, 10, nil)), func(d *result.Dist) { d.Overflow = 1 }), false, ""},
		"the clocks may be off":                     {"e2e.p99 <= 6ms", with(dist(99999, row(99, result.ByEpisodes, 10, nil)), func(d *result.Dist) { d.ClockBoundNS = new(int64(ms)) }), true, ""},
		"the clocks may be off by too much":         {"e2e.p99 <= 6ms", with(dist(99999, row(99, result.ByEpisodes, 10, nil)), func(d *result.Dist) { d.ClockBoundNS = new(int64(ms + 1)) }), false, ""},
		"the clocks could not be compared":          {"e2e.p99 <= 50ms", with(dist(99999, row(99, result.ByEpisodes, 10, nil)), func(d *result.Dist) { d.Percentiles[0].UnsupportedBy = result.ByUnknownClock }), false, ""},
		"a limit from below":                        {"e2e.p99 >= 10ms", dist(99999, row(99, result.ByEpisodes, 10, nil)), false, ""},
		"a percentile with too few samples":         {"e2e.p99 <= 50ms", with(dist(400, row(99, result.ByEpisodes, 1, nil)), func(d *result.Dist) { d.Percentiles[0].Supported = false }), false, ""},
	} {
		o := must.Get(ParseObjective(x.objective))(t)
		r := o.resultOf(x.d)
		r.Run.MeasureS = 10
		s := o.Judge(r)
		if s.Pass != x.pass || (s.Status == result.Pass) != x.pass || s.Status == result.Fail || !strings.Contains(s.Why, x.why) {
			t.Errorf("%s: %s: %q; want pass %v and %q", name, s.Status, s.Why, x.pass, x.why)
		}
		if x.pass != (s.NeedsS == 0) && x.objective == "e2e.p99 <= 50ms" && x.d.Censored == 0 && x.d.Percentiles[0].Supported && x.d.Percentiles[0].UnsupportedBy == "" {
			t.Errorf("%s: %s, and a run of %v s would decide it", name, s.Status, s.NeedsS)
		}
	}
	// A look during a run has a smaller error probability.
	o := must.Get(ParseObjective("e2e.p99 <= 50ms"))(t)
	for conf, want := range map[float64]result.Outcome{0.95: result.Pass, 0.975: result.Undecided} {
		if got := o.judge(o.resultOf(dist(4000, row(99, result.ByEpisodes, 10, nil))), conf).Status; got != want {
			t.Errorf("at %v: %s; want %s", conf, got, want)
		}
	}
}

// Pending messages may be lost, unknown ones may also be duplicates, and a closed loop has neither response
// nor offered rate.
func TestUnknownOutcomesLeaveObjectiveUndecided(t *testing.T) {
	t.Parallel()
	const pass, fail, undecided = result.Pass, result.Fail, result.Undecided
	pending, unknown, closed := judged(), judged(), judged()
	pending.Messages.Delivered, pending.Messages.Lost, pending.Messages.Pending = 900, 20, 80
	unknown.Messages.Delivered, unknown.Messages.Lost, unknown.Messages.Unknown, unknown.Messages.Duplicated = 900, 0, 100, 3
	closed.Run.Loop, closed.Latency.E2E.Response = result.LoopClosed, nil
	for _, x := range []struct {
		r      *result.Result
		expr   string
		status result.Outcome
		lo, hi float64 // 0: none
		code   string
	}{
		{pending, "lost == 0", fail, 20, 100, ""},
		{pending, "lost <= 20", undecided, 20, 100, "objective.pending"},
		{pending, "lost <= 100", pass, 20, 100, ""},
		{pending, "ratio(lost, sent) <= 5%", undecided, 0.02, 0.1, "objective.pending"},
		{pending, "ratio(failed, lost) < 1", undecided, 0, 0, "objective.pending"},
		{pending, "pending <= 80", pass, 80, 80, ""},
		{unknown, "lost <= 99", undecided, 0, 100, "objective.unknown"},
		{unknown, "lost <= 100", pass, 0, 100, ""},
		{unknown, "duplicated <= 2", fail, 3, 0, ""},
		{unknown, "duplicated <= 10", undecided, 3, 0, "objective.unknown"},
		{closed, "e2e.p99 <= 1s", undecided, 0, 0, "objective.closed"},
		{closed, "offered.rate >= 10/s", undecided, 0, 0, "objective.no_offered"},
	} {
		o := must.Get(ParseObjective(x.expr))(t)
		s, end := o.Judge(x.r), func(v *float64) float64 {
			if v == nil {
				return 0
			}
			return *v
		}
		if s.Status != x.status || s.Pass != (x.status == pass) || end(s.Lo) != x.lo || end(s.Hi) != x.hi || strings.Join(s.Codes, " ") != x.code {
			t.Errorf("%+v; want %+v", s, x)
		}
		if s.AtLeast != (x.lo != x.hi) {
			t.Errorf("%s: at least %v: %v", x.expr, s.Value, s.AtLeast)
		}
	}
}

func TestRatioCountsEachSubscription(t *testing.T) {
	t.Parallel()
	r := judged()
	r.Messages = result.Messages{Scheduled: 1000, Sent: 1000, Confirmed: 1000, Delivered: 1900, Lost: 100}
	r.Subscriptions = make([]result.Subscription, 2)
	for expr, want := range map[string]float64{
		"ratio(lost, confirmed) <= 5%":      0.05,
		"ratio(delivered, sent) == 95%":     0.95,
		"ratio(lost, delivered) <= 6%":      100.0 / 1900,
		"ratio(confirmed, scheduled) == 1":  1,
		"ratio(scheduled, delivered) < 0.6": 1000.0 / 1900,
	} {
		o := must.Get(ParseObjective(expr))(t)
		if s := o.Judge(r); s.Value != want || !s.Pass {
			t.Errorf("%s: %+v; want %v", expr, s, want)
		}
	}
}

func TestNothingMeasuredDecidesNoRate(t *testing.T) {
	t.Parallel()
	o := must.Get(ParseObjective("received.rate <= 10/s"))(t)
	if s := o.Judge(&result.Result{}); s.Status != result.Undecided || s.Why != "nothing was measured, so the rate is not known" {
		t.Errorf("got %+v", s)
	}
}

func TestOutcomeHasFigureAndInterval(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]result.SLO{
		"send.p50 <= 1ms":          {Value: 500e3 + 223, Unit: "ns", Lo: new(468992.0), Hi: new(532479.0)},
		"lost <= 100":              {Value: 100, Unit: "messages", Lo: new(100.0), Hi: new(100.0)},
		"ratio(lost, sent) <= 10%": {Value: 0.1, Unit: "ratio", Lo: new(0.1), Hi: new(0.1)},
		"received.rate >= 90/s":    {Value: 90, Unit: "per_s", Lo: new(90.0), Hi: new(90.0)},
		"e2e.p95 >= 1s":            {Value: 1999634432, AtLeast: true, Unit: "ns", Lo: new(1999634432.0)},
	} {
		o := must.Get(ParseObjective(expr))(t)
		want.Expr, want.Status, want.Pass = expr, result.Pass, true
		if diff := cmp.Diff(want, o.Judge(judged())); diff != "" {
			t.Errorf("%s: %s", expr, diff)
		}
	}
}

func TestObjectiveAccessors(t *testing.T) {
	t.Parallel()
	o := must.Get(ParseObjective("e2e.service.p99.95 <= 1s"))(t)
	if of, service := o.Latency(); of != "e2e" || !service {
		t.Errorf("Latency() = %q, %v", of, service)
	}
	if p, ok := o.Percentile(); p != 99.95 || !ok {
		t.Errorf("Percentile() = %v, %v", p, ok)
	}
	o = must.Get(ParseObjective("lost == 0"))(t)
	if of, service := o.Latency(); of != "" || service {
		t.Errorf("Latency() = %q, %v", of, service)
	}
	if _, ok := o.Percentile(); ok {
		t.Error("a count has a percentile")
	}
}

func FuzzParseObjective(f *testing.F) {
	for _, s := range []string{"e2e.p99.9 <= 10ms", "lost == 0", "received.rate >= 19900/s", "ratio(lost, confirmed) <= 0.01%", "settle.max<1 s", "<", "ratio(", "e2e.p0.000001>0", "sent.rate >= 0/s"} {
		f.Add(s)
	}
	r := judged()
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseObjective(s)
		if err != nil {
			if o != (Objective{}) {
				t.Errorf("%q: an error and %+v", s, o)
			}
			return
		}
		again, err := ParseObjective(o.String())
		if err != nil || again != o {
			t.Errorf("%q reads as %q, which reads as %+v, %v", s, o, again, err)
		}
		if math.IsNaN(o.Limit()) || math.IsInf(o.Limit(), 0) || o.Limit() < 0 {
			t.Errorf("%q: limit %v", s, o.Limit())
		}
		slo := o.Judge(r)
		if slo.Pass != (slo.Status == result.Pass) || slo.Status == result.Undecided && slo.Why == "" {
			t.Errorf("%q: %+v", s, slo)
		}
	})
}
