package history

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// nightly draws runs of one scenario, a day apart: runs that differ by a percent, and from
// at on are slower by the factor step, on a new server.
func nightly(seed uint64, n, at int, step float64) []compare.Run {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []compare.Run
	for i := range n {
		r := &result.Result{Schema: result.Schema}
		r.Run = result.Run{
			ID: fmt.Sprintf("%d-%d", seed, i), Name: "nightly", Loop: result.LoopOpen, Mode: "stream",
			StartedAt: time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC).AddDate(0, 0, i).Format(time.RFC3339Nano),
		}
		r.Verdict.Status = result.Valid
		r.System = result.System{Driver: "chan", Guarantee: "received", Server: result.Server{Name: "s", Version: "1.0"}}
		slow := math.Exp(0.01 * rng.NormFloat64())
		if i >= at {
			slow *= step
			r.System.Server.Version = "1.1"
		}
		c := new(measure.Counts)
		for range 2000 {
			c.Add(int64(200_000*slow*math.Exp(0.1*rng.NormFloat64())), 1)
		}
		r.Latency.Send.Response = judge.Distribution(c, nil)
		r.Throughput = result.Throughput{SentPerS: 1000 + rng.NormFloat64(), ConfirmedPerS: 1000 + rng.NormFloat64()}
		out = append(out, compare.Run{Dir: fmt.Sprintf("runs/%02d", i+1), Result: r})
	}
	return out
}

func options() Options { return Options{Alpha: 0.05, Latest: 10, Seed: 1} }

func TestFivePercentStepIsLocated(t *testing.T) {
	runs := nightly(1, 60, 40, 1.05)
	rand.New(rand.NewPCG(9, 9)).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] }) // folders come in any order
	h := must.Get(Of(runs, options()))(t)
	var got []string
	for _, f := range h.Series[0].Figures {
		for _, c := range f.Changes {
			got = append(got, fmt.Sprintf("%s %s %s from %s", f.Family, f.Name, c.Verdict, h.Series[0].Runs[c.At].Dir))
			if *c.PercentLo > 5 || *c.PercentHi < 5 {
				t.Errorf("%s %s: the interval %.2f to %.2f %% does not hold the planted 5 %%", f.Family, f.Name, *c.PercentLo, *c.PercentHi)
			}
			if c.New {
				t.Errorf("run 41 of 60 is said to be among the latest 10")
			}
			want := []compare.Difference{{Name: "server", Sides: [][]string{{"s 1.0"}, {"s 1.1"}}}}
			golden.Equal(t, want, c.Differs, "what differs")
		}
	}
	want := []string{"send.response p50 worse from runs/41", "send.response p99 worse from runs/41"}
	golden.Equal(t, want, got, "changes")
}

// With a level of 5 % over all figures, of 20 histories without a change one is expected
// to show any; more than 4 have a probability of 0.003.
func TestHistoriesWithoutAChangeShowNone(t *testing.T) {
	wrong := 0
	for seed := range uint64(20) {
		h := must.Get(Of(nightly(100+seed, 60, 60, 1), options()))(t)
		for _, f := range h.Series[0].Figures {
			if len(f.Changes) > 0 {
				wrong++
				break
			}
		}
	}
	if wrong > 4 {
		t.Errorf("%d of 20 histories without a change show one", wrong)
	}
}

func TestNewChangeIsInLatestRuns(t *testing.T) {
	for _, c := range []struct {
		what       string
		step       float64
		all, worse int
	}{{"slower", 1.3, 2, 2}, {"faster", 0.7, 2, 0}} {
		h := must.Get(Of(nightly(2, 40, 34, c.step), options()))(t)
		if all, worse := h.New(); all != c.all || worse != c.worse {
			t.Errorf("%s from run 35 of 40: %d new changes, %d worse; want %d and %d", c.what, all, worse, c.all, c.worse)
		}
	}
}

func TestSmallChangesAreLeftOut(t *testing.T) {
	o := options()
	o.Least = 0.1
	h := must.Get(Of(nightly(1, 60, 40, 1.05), o))(t)
	for _, f := range h.Series[0].Figures {
		if len(f.Changes) > 0 {
			t.Errorf("%s %s: a change of 5 %% is shown, where those below 10 %% are left out", f.Family, f.Name)
		}
	}
}

func TestDifferentSettingsFormSeparateSeries(t *testing.T) {
	runs := append(nightly(1, 12, 12, 1), nightly(2, 12, 12, 2)...)
	for _, r := range runs[12:] {
		r.Result.System.Guarantee = "persisted"
	}
	runs[3].Result.Verdict.Status = result.Invalid
	runs[4].Result.Run.Interrupted = true
	runs[5].Result.Agents = []result.Agent{{Name: "a", Producers: 1}, {Name: "b", Consumers: 1, Missing: true}} // an earlier weir called it SUSPECT
	h := must.Get(Of(runs, options()))(t)
	if len(h.Series) != 2 || len(h.Series[0].Runs) != 9 || len(h.Series[1].Runs) != 12 {
		t.Fatalf("%d series, want two of 9 and 12 runs", len(h.Series))
	}
	want := []LeftOut{{Dir: "runs/04", Why: "INVALID"}, {Dir: "runs/05", Why: "interrupted"}, {Dir: "runs/06", Why: "lost an agent"}}
	golden.Equal(t, want, h.Series[0].LeftOut, "left out")
}

// eight adds figures that vary to those of nightly, so that at least eight do.
func eight(runs []compare.Run) []compare.Run {
	for i, r := range runs {
		n := uint64(i) //nolint:gosec // G115: small
		r.Result.Messages.Duplicated, r.Result.MessagesAll.Duplicated = n%4, n%4
		r.Result.Messages.Reordered, r.Result.MessagesAll.Reordered = n%5, n%5
		r.Result.Messages.Lost, r.Result.MessagesAll.Lost = n%2, n%2
	}
	return runs
}

// Of 252 orders of ten runs two have a step in the middle, which is too likely for the level of one of six
// figures.
func TestTooFewRunsForHistory(t *testing.T) {
	ten := eight(nightly(1, 11, 5, 10))
	_, err := Of(ten[:10], options())
	few := (*FewError)(nil)
	if !errors.As(err, &few) || !errors.Is(err, ErrTooFew) || few.More != 1 || err.Error() != "too few runs: 10 runs cannot show a change, however large: add 1" {
		t.Errorf("ten runs, of which the latest five are ten times as slow: %v", err)
	}
	h := must.Get(Of(ten, options()))(t)
	if all, _ := h.New(); all == 0 || h.Series[0].Needs != 0 {
		t.Errorf("eleven of them show %d changes, and need %d; want some, and 0", all, h.Series[0].Needs)
	}
}

// Too few runs follow it, or they vary too much.
func TestUndetectableChangeIsExplained(t *testing.T) {
	o := options()
	o.Latest = 3
	h := must.Get(Of(eight(nightly(1, 11, 11, 1)), o))(t)
	if s := h.Series[0].Shows; s == nil || s.Percent != nil || s.After != 4 {
		t.Errorf("a change before the latest 3 of 11 runs: %+v; want that it shows once 4 follow it", s)
	}
	wild := nightly(1, 11, 11, 1)
	for i, r := range wild {
		for p := range r.Result.Latency.Send.Response.Percentiles {
			r.Result.Latency.Send.Response.Percentiles[p].NS *= int64(1 + 3000*(i%2))
		}
	}
	h = must.Get(Of(wild, options()))(t)
	if s := h.Series[0].Shows; s == nil || s.Percent != nil || s.After != 0 {
		t.Errorf("runs that differ by a factor of 3,000: %+v; want neither a step nor a number of runs", s)
	}
}

func TestInvalidHistoryIsRejected(t *testing.T) {
	runs := nightly(1, 9, 9, 1)
	if _, err := Of(runs, options()); !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "the longest series has 9") {
		t.Errorf("9 runs: %v, want ErrTooFew with their number", err)
	}
	runs = nightly(1, 12, 12, 1)
	runs[11].Result.Run.ID = runs[0].Result.Run.ID
	if _, err := Of(runs, options()); !errors.Is(err, ErrSameRun) {
		t.Errorf("a copy of a run: %v, want ErrSameRun", err)
	}
}

func TestLongSeriesUsesLatestRuns(t *testing.T) {
	runs := nightly(1, 12, 12, 1)
	long := make([]compare.Run, 0, MostRuns+2)
	for i := range MostRuns + 2 {
		r := *runs[i%12].Result
		r.Run.ID = fmt.Sprint(i)
		r.Run.StartedAt = time.Unix(int64(i), 0).UTC().Format(time.RFC3339Nano)
		long = append(long, compare.Run{Dir: fmt.Sprint(i), Result: &r})
	}
	h := must.Get(Of(long, options()))(t)
	if s := h.Series[0]; s.Older != 2 || s.Runs[0].Dir != "2" {
		t.Errorf("%d older runs, the first looked at is %s; want 2, and run 2", s.Older, s.Runs[0].Dir)
	}
}

// More runs show smaller changes, and what is said to show does.
func TestNoChangeReportsDetectableSize(t *testing.T) {
	last := 0.0
	for _, n := range []int{60, 20, 12} {
		h := must.Get(Of(nightly(1, n, n, 1), options()))(t)
		s := h.Series[0].Shows
		if s == nil || s.Percent == nil || *s.Percent < last {
			t.Fatalf("%d runs: %+v; want a percentage of at least %v", n, s, last)
		}
		last = *s.Percent
		at := max(n-10, n/2)
		with := must.Get(Of(nightly(1, n, at, 1+last/100), options()))(t)
		all, _ := with.New()
		if with.Series[0].Shows != nil || all == 0 {
			t.Errorf("%d runs: a step of %v %% at run %d is said to show, and does not: %+v", n, last, at, with.Series[0].Shows)
		}
	}
}

func TestLowerBoundsLeaveChangeIntervalOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after, lo, hi bool
		verdict               Verdict
	}{
		"values":               {lo: true, hi: true, verdict: Worse},
		"the later are bounds": {after: true, lo: true, verdict: Worse},
		"the first are bounds": {before: true, hi: true, verdict: Spread},
		"all are bounds":       {before: true, after: true, verdict: Spread},
	} {
		runs := nightly(3, 20, 10, 2)
		for i := range runs {
			for _, p := range []float64{50, 99} {
				runs[i].Result.Latency.Send.Response.Percentile(p).AtLeast = i < 10 && c.before || i >= 10 && c.after
			}
		}
		h := must.Get(Of(runs, options()))(t)
		found := 0
		for _, f := range h.Series[0].Figures {
			for _, x := range f.Changes {
				found++
				if (x.PercentLo != nil) != c.lo || (x.PercentHi != nil) != c.hi || x.BeforeAtLeast != c.before || x.AfterAtLeast != c.after || x.Verdict != c.verdict {
					t.Errorf("%s: %s %+v; want %+v", name, f.Name, x, c)
				}
			}
		}
		if found != 2 {
			t.Errorf("%s: %d changes; want that of p50 and of p99", name, found)
		}
	}
}

// What else the host did hides the change in the whole latency.
func TestHistoryFollowsTheSystemsPart(t *testing.T) {
	t.Parallel()
	runs := nightly(5, 30, 30, 1)
	rng := rand.New(rand.NewPCG(5, 2))
	for i, r := range runs {
		all := new(measure.Counts)
		var steps []wire.Group
		for step := range int64(20) {
			c := new(measure.Counts)
			for range 1000 {
				ns := 100_000 * math.Exp(0.1*rng.NormFloat64())
				if i >= 24 {
					ns *= 1.3
				}
				c.Add(int64(ns), 1)
			}
			all.Merge(c)
			steps = append(steps, wire.Group{Step: step, Delay: 1, System: *c})
		}
		r.Result.Wire = &result.Wire{Send: &result.WireParts{Sampled: all.Total(), Exact: all.Total(), System: judge.SystemsPart(all, steps, nil, 40_000)}}
	}
	h := must.Get(Of(runs, options()))(t)
	var got []string
	for _, f := range h.Series[0].Figures {
		if f.Family == "send.system" {
			for _, c := range f.Changes {
				got = append(got, fmt.Sprintf("%s %s at %d, new: %v", f.Name, c.Verdict, c.At, c.New))
			}
		}
	}
	want := []string{"p50 worse at 24, new: true", "p99 worse at 24, new: true"}
	golden.Equal(t, want, got, "changes")
}
