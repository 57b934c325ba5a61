package selftest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Simulated runs that are compared: their responses have a lognormal distribution with a median of
// 200 µs and a p99 of 500 µs, and runs of one system differ by 1 %, as runs on a quiet host do.
const (
	comparedRuns     = 6 // of a side
	comparedMessages = 2000
	comparedMedian   = 200_000 // ns
	comparedWidth    = 0.4
	comparedApart    = 0.01
	comparedAlpha    = 0.05
	comparedTimes    = 300
)

// A changed is a system that differs from another in a known way, and what compare must say of it.
type changed struct {
	what   string
	body   float64 // all responses times that
	tail   bool    // and one in fifty takes 1 ms longer
	figure string  // that must be found worse; "": nothing may be found
	power  float64 // the least share of comparisons that must find it
}

func changes() []changed {
	return []changed{
		{what: "nothing differs: nothing claimed", body: 1},
		{what: "all 3 % slower: p50 found", body: 1.03, figure: "p50", power: 0.35}, // six runs a side see it half of the time
		{what: "all 10 % slower: p50 found", body: 1.1, figure: "p50", power: 0.99},
		{what: "all 10 % slower: p99 found", body: 1.1, figure: "p99", power: 0.85},
		{what: "one in fifty 1 ms slower: p99 found", body: 1, tail: true, figure: "p99", power: 0.99},
	}
}

// differences compares simulated runs of systems that differ in a known way, and counts what compare
// claims.
func differences(ctx context.Context, o Options) (Check, error) {
	times := max(30, int(comparedTimes*o.Scale))
	c := Check{
		Name: "compare", Attempts: 1,
		What: fmt.Sprintf("two sides of %d simulated runs: how many comparisons claim a difference that is none, and find one that is", comparedRuns),
	}
	for i, x := range changes() {
		right := 0
		for n := range times {
			if ctx.Err() != nil {
				return c, ctx.Err()
			}
			rnd := rand.New(rand.NewPCG(uint64(i), uint64(n)))
			found, err := x.found(rnd)
			if err != nil {
				return c, err
			}
			if found == (x.figure != "") {
				right++
			}
			c.Samples += 2 * comparedRuns * comparedMessages
		}
		miss := 1 - x.power
		if x.figure == "" {
			miss = comparedAlpha
		}
		c.Rows = append(c.Rows, ofRuns(x.what, times, right, most(times, miss)))
	}
	c.judge()
	return c, nil
}

// found compares once, and reports whether the figure is worse; without one, whether any figure of the
// responses is said to differ.
func (x *changed) found(rnd *rand.Rand) (bool, error) {
	before, after := compare.Side{Given: "before"}, compare.Side{Given: "after"}
	same := changed{body: 1}
	for i := range comparedRuns {
		before.Runs = append(before.Runs, same.run(rnd, "before-"+strconv.Itoa(i)))
		after.Runs = append(after.Runs, x.run(rnd, "after-"+strconv.Itoa(i)))
	}
	c, err := compare.Compare([]compare.Side{before, after}, compare.Options{Alpha: comparedAlpha})
	if err != nil {
		return false, fmt.Errorf("comparing simulated runs: %w", err)
	}
	for _, f := range c.Figures {
		switch v := f.Sides[1].Change.Verdict; {
		case x.figure != "" && f.Name != x.figure:
		case v == compare.Worse, v == compare.Better && x.figure == "":
			return true, nil
		}
	}
	return false, nil
}

// run draws one run.
func (x *changed) run(rnd *rand.Rand, id string) compare.Run {
	c := new(measure.Counts)
	level := x.body * comparedMedian * math.Exp(comparedApart*rnd.NormFloat64())
	for range comparedMessages {
		v := level * math.Exp(comparedWidth*rnd.NormFloat64())
		if x.tail && rnd.IntN(50) == 0 {
			v += 1_000_000
		}
		c.Add(int64(v), 1)
	}
	r := &result.Result{Schema: result.Schema}
	r.Run = result.Run{ID: id, Name: "simulated", Loop: result.LoopOpen, Mode: "produce"}
	r.Verdict.Status = result.Valid
	r.System = result.System{Driver: "noop", Guarantee: "buffered", Copies: "1", Stable: "none"}
	r.Latency.Send.Response = judge.Distribution(c, nil)
	return compare.Run{Dir: id, Result: r}
}
