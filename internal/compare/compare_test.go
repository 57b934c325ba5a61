package compare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

const scenarioText = `weir: 1
name: test
system: {driver: chan, options: {storage: file}}
topology: {destinations: 1, producers: 1}
load: {rate: 1000/s, arrival: constant}
message: {size: 1KiB}
mode: stream
measure: 2s
`

// A world draws runs of one system.
type world struct {
	rng      *rand.Rand
	messages int
	// latency draws the response of a message of a run that is as slow as slow
	// says.
	latency func(rng *rand.Rand, slow float64) int64
	n       int
}

// lognormal has its median at 200 µs and its 99th percentile near 500 µs, and
// runs that differ by a percent.
func lognormal(rng *rand.Rand, slow float64) int64 {
	return int64(200_000 * math.Exp(0.4*rng.NormFloat64()+0.01*slow))
}

// run draws a run.
func (w *world) run() Run {
	w.n++
	counts := map[string]*measure.Counts{}
	r := &result.Result{Schema: result.Schema}
	r.Run = result.Run{ID: fmt.Sprintf("run-%d-%d", w.n, w.rng.Uint64()), Name: "test", Loop: result.LoopOpen, Mode: "stream", Weir: "devel"}
	r.Verdict.Status = result.Valid
	r.System = result.System{Driver: "chan", Guarantee: "received", Copies: "1", Stable: "none", Client: "in process", ClientPath: "weir's"}
	slow := w.rng.NormFloat64()
	c := new(measure.Counts)
	for range w.messages {
		c.Add(w.latency(w.rng, slow), 1)
	}
	counts[result.Tag(measure.SendResponse, measure.Measure)] = c
	r.Latency.Send.Response = judge.Distribution(c, nil)
	rate := 1000 + w.rng.NormFloat64()
	r.Throughput = result.Throughput{SentPerS: rate, ConfirmedPerS: rate + w.rng.NormFloat64()}
	received := rate + w.rng.NormFloat64()
	r.Throughput.ReceivedPerS = &received
	r.Messages = result.Messages{Scheduled: uint64(w.messages), Sent: uint64(w.messages), Confirmed: uint64(w.messages), Delivered: uint64(w.messages)}
	r.MessagesAll = r.Messages
	cpu := 1 + 0.05*w.rng.NormFloat64()
	r.Host.Usage = &host.Usage{SpanS: 2, CPUSeconds: &cpu}
	return Run{
		Dir: r.Run.ID, Result: r, Scenario: []byte(scenarioText), Counts: counts,
		Environment: &result.Environment{
			Weir: result.Build{Version: "devel"}, Hosts: []host.Facts{{Hostname: "a", CPUModel: "fast", Cores: 2, Kernel: "6.1"}},
			System: result.EnvironmentSystem{Settings: map[string]string{"sync_interval": "2m0s"}, Started: &result.Started{By: "process", Recipe: "r", Source: "apt", Version: "1.0"}},
		},
	}
}

func (w *world) runs(n int) []Run {
	out := make([]Run, n)
	for i := range out {
		out[i] = w.run()
	}
	return out
}

func newWorld(seed uint64, messages int) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 1)), messages: messages, latency: lognormal}
}

var usual = Options{Alpha: 0.05, Band: 0.05}

func sidesOf(sides ...[]Run) []Side {
	var out []Side
	for i, runs := range sides {
		out = append(out, Side{Given: strings.ToLower(letter(i)), Runs: runs})
	}
	return out
}

func mustCompare(t *testing.T, o Options, sides ...[]Run) *Comparison {
	t.Helper()
	return must.Get(Compare(sidesOf(sides...), o))(t)
}

// change finds the change of a figure of the i-th side.
func (c *Comparison) change(family, name string, i int) *Change {
	for _, f := range c.Figures {
		if f.Family == family && f.Name == name {
			return f.Sides[i].Change
		}
	}
	return nil
}

// Compares runs of the same system many times: a claim in any figure of a family may occur in a fraction
// alpha of the comparisons, and one in a single figure about as often as six runs a side allow, 0.041.
func TestFalsePositiveRateMatchesLevel(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	const side = 6
	rounds := 400
	if needs.Less() {
		rounds = 100
	}
	w := newWorld(1, 600)
	o := Options{Alpha: 0.05}
	families, claimed := map[string]int{}, 0
	figures, low := map[string]int{}, map[string]int{}
	for range rounds {
		c := mustCompare(t, o, w.runs(side), w.runs(side))
		any := map[string]bool{}
		for _, f := range c.Figures {
			change := f.Sides[1].Change
			if change.Tests == 0 {
				continue
			}
			figures[f.Family+" "+f.Name]++
			if change.P <= o.Alpha {
				low[f.Family+" "+f.Name]++
			}
			if change.Verdict == Worse || change.Verdict == Better {
				any[f.Family] = true
			}
		}
		for family := range any {
			families[family]++
		}
		if len(any) > 0 {
			claimed++
		}
	}
	// Three standard errors of a share of 0.05 in this many rounds.
	slack := 3 * math.Sqrt(0.05*0.95/float64(rounds))
	for family, n := range families {
		if share := float64(n) / float64(rounds); share > o.Alpha+slack {
			t.Errorf("%s: something was claimed in %.3f of the comparisons", family, share)
		}
	}
	if claimed == 0 {
		t.Error("nothing was ever claimed: the test is blind")
	}
	for name, n := range figures {
		if share := float64(low[name]) / float64(n); share > 0.0411+slack || share < 0.0411-slack {
			t.Errorf("%s: p was at most 0.05 in %.3f of the comparisons; want about 0.041", name, share)
		}
	}
	t.Logf("claimed by family, of %d: %v; figures with p <= 0.05: %v", rounds, families, low)
}

func TestTailOnlySlowdownIsDetected(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	const rounds = 20
	for seed := range uint64(rounds) {
		a, b := newWorld(100+seed, 5000), newWorld(200+seed, 5000)
		b.latency = func(rng *rand.Rand, slow float64) int64 {
			v := lognormal(rng, slow)
			if rng.IntN(50) == 0 {
				v += 1_000_000
			}
			return v
		}
		c := mustCompare(t, usual, a.runs(6), b.runs(6))
		if got := c.change("send.response", "p99", 1); got.Verdict != Worse || *got.Percent < 100 || *got.PercentLo > *got.Percent {
			t.Errorf("seed %d: p99 %+v", seed, got)
		}
		if got := c.change("send.response", "p50", 1); got.Verdict != NoChange {
			t.Errorf("seed %d: p50 is %s, p %v, %+.1f to %+.1f %%", seed, got.Verdict, got.P, *got.PercentLo, *got.PercentHi)
		}
		shift := func(p float64) float64 {
			for _, x := range c.Shifts[0].Points {
				if x.P == p {
					return *x.Sides[1].Percent
				}
			}
			return math.NaN()
		}
		if s := shift(50); math.Abs(s) > 3 {
			t.Errorf("seed %d: the shift function has %v %% at the median", seed, s)
		}
		if s := shift(99); s < 100 {
			t.Errorf("seed %d: the shift function has %v %% at the 99th", seed, s)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 10)
	runs := func(n int, p50 func(i int) int64) []Run {
		out := w.runs(n)
		for i := range out {
			v := p50(i)
			out[i].Result.Latency.Send.Response = &result.Dist{Count: 1000, Percentiles: []result.Percentile{{P: 50, NS: v, LoNS: &v, HiNS: &v, Supported: true}}}
		}
		return out
	}
	level := func(base int64) func(int) int64 { return func(i int) int64 { return base + int64(i%6) } }
	flat := func(int) int64 { return 777 }
	for _, tt := range []struct {
		name    string
		a, b    []Run
		o       Options
		want    Verdict
		more    int
		percent float64 // at least so near
	}{
		{"far above", runs(6, level(1000)), runs(6, level(1500)), usual, Worse, 0, 50},
		{"far below", runs(6, level(1000)), runs(6, level(500)), usual, Better, 0, -50},
		{"a little above, within the band", runs(6, level(1000)), runs(6, level(1020)), usual, NoChange, 0, 2},
		{"the same without a band", runs(6, level(1000)), runs(6, level(1020)), Options{Alpha: 0.05}, Worse, 0, 2},
		{"the same in every run", runs(6, flat), runs(6, flat), Options{Alpha: 0.05}, NoChange, 0, 0},
		{"wide and overlapping", runs(6, func(i int) int64 { return int64(1000 + 300*i) }), runs(6, func(i int) int64 { return int64(1100 + 300*i) }), usual, NothingShown, 0, 0},
		{"with four runs", runs(4, level(1000)), runs(4, level(1500)), usual, Worse, 0, 50},
		{"with five runs at 0.01", runs(5, level(1000)), runs(5, level(1500)), Options{Alpha: 0.01}, Worse, 0, 50},
	} {
		c := mustCompare(t, tt.o, tt.a, tt.b)
		got := c.change("send.response", "p50", 1)
		if got.Verdict != tt.want || got.MoreRuns != tt.more || tt.percent != 0 && math.Abs(*got.Percent-tt.percent) > 1 {
			t.Errorf("%s: %+v, %v %%", tt.name, got, got.Percent)
		}
	}
}

// With several figures even the clearest difference is undecided until there are enough runs for all.
func TestFamilyNeedsMoreRuns(t *testing.T) {
	t.Parallel()
	a, b := newWorld(3, 1000), newWorld(4, 1000)
	b.latency = func(rng *rand.Rand, slow float64) int64 { return 3 * lognormal(rng, slow) }
	for n, want := range map[int]Verdict{4: NeedsRuns, 5: Worse, 6: Worse} { // p50 to p99 and the maximum: 6 * 2/252 < 0.05
		got := mustCompare(t, usual, a.runs(n), b.runs(n)).change("send.response", "p50", 1)
		if got.Verdict != want || got.Tests != 6 || (got.MoreRuns == 1) != (n == 4) {
			t.Errorf("with %d runs a side: %+v", n, got)
		}
	}
	// Two sides against the base are twice the tests.
	c := mustCompare(t, usual, a.runs(5), b.runs(5), b.runs(5))
	if got := c.change("send.response", "p50", 2); got.Verdict != NeedsRuns || got.Tests != 12 || got.MoreRuns != 1 {
		t.Errorf("with two sides: %+v", got)
	}
	if tally := c.Sides[2].Tally; tally.NeedsRuns == 0 || c.Sides[0].Tally != nil {
		t.Errorf("tally %+v", tally)
	}
	one, two, all := c.Sides[1].Tally, c.Sides[2].Tally, c.Tally()
	if sum := one.Worse + two.Worse; all.Worse != sum || all.NeedsRuns != one.NeedsRuns+two.NeedsRuns || all.NothingShown != one.NothingShown+two.NothingShown || c.MoreRuns() != 1 {
		t.Errorf("tally of all sides %+v, and %d more runs", all, c.MoreRuns())
	}
}

// A percentile of messages that never came is a lower bound: a side with one may be worse, but never
// better.
func TestLowerBoundIsNeverBetter(t *testing.T) {
	t.Parallel()
	w := newWorld(10, 10)
	runs := func(at int64, bound bool) []Run {
		out := w.runs(6)
		for i := range out {
			v := at + int64(i)
			out[i].Result.Latency.Send.Response = &result.Dist{Count: 1000, Percentiles: []result.Percentile{{P: 50, NS: v, LoNS: &v, Supported: true, AtLeast: bound}}}
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		a, b   []Run
		want   Verdict
		lo, hi bool // whether the interval has these ends
	}{
		{"at least far above", runs(1000, false), runs(5000, true), Worse, true, false},
		{"at least far below", runs(5000, false), runs(1000, true), NothingShown, true, false},
		{"the base at least far above", runs(5000, true), runs(1000, false), Better, false, true},
		{"the base at least far below", runs(1000, true), runs(5000, false), NothingShown, false, true},
		{"both at least", runs(1000, true), runs(5000, true), NothingShown, false, false},
	} {
		c := mustCompare(t, usual, tt.a, tt.b)
		got := c.change("send.response", "p50", 1)
		if got.Verdict != tt.want || (got.Lo != nil) != tt.lo || (got.Hi != nil) != tt.hi || (got.PercentLo != nil) != tt.lo || (got.PercentHi != nil) != tt.hi {
			t.Errorf("%s: %+v", tt.name, got)
		}
		for _, f := range c.Figures {
			for i, v := range f.Sides {
				side := [][]Run{tt.a, tt.b}[i]
				if bound := side[0].Result.Latency.Send.Response.Percentiles[0].AtLeast; f.Name == "p50" && (v.MedianAtLeast != bound || slices.Contains(v.AtLeast, true) != bound) {
					t.Errorf("%s: side %d: %+v", tt.name, i, v)
				}
			}
		}
	}
}

func TestAbsentFiguresAreMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(5, 1000)
	a, b := w.runs(4), w.runs(4)
	c := mustCompare(t, usual, a, b)
	want := Missing{Family: "send.response", Name: "p99.9", Runs: 8, Needs: 5000, Has: 1000}
	if len(c.Missing) != 2 || c.Missing[0] != want || c.Missing[1].Name != "p99.99" {
		t.Errorf("missing: %+v", c.Missing)
	}
	b[2].Result.Latency.E2E.Response = b[2].Result.Latency.Send.Response
	b[2].Result.Latency.E2E.Service = b[2].Result.Latency.Send.Response
	c = mustCompare(t, usual, a, b)
	if i := slices.IndexFunc(c.Missing, func(m Missing) bool {
		return m.Family == "e2e.service" && m.Name == "p50" && m.Runs == 7 && m.Needs == 0
	}); i < 0 {
		t.Errorf("missing: %+v", c.Missing)
	}
}

func TestClosedLoopsCompareServiceTime(t *testing.T) {
	t.Parallel()
	w := newWorld(6, 1000)
	var sides [2][]Run
	for i := range sides {
		sides[i] = w.runs(4)
		for _, r := range sides[i] {
			r.Result.Run.Loop = result.LoopClosed
			s := &r.Result.Latency.Send
			s.Service, s.Response = s.Response, nil
			r.Counts["send.service.measure"] = r.Counts["send.response.measure"]
			delete(r.Counts, "send.response.measure")
		}
	}
	c := mustCompare(t, usual, sides[0], sides[1])
	if c.change("send.service", "p50", 1) == nil || c.change("send.response", "p50", 1) != nil || len(c.Shifts) != 1 || c.Shifts[0].Family != "send.service" {
		t.Errorf("figures %+v, shifts %+v", c.Figures, c.Shifts)
	}
}

func TestIncomparableRunsAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(7, 100)
	edit := func(runs []Run, f func(r *Run)) []Run {
		for i := range runs {
			f(&runs[i])
		}
		return runs
	}
	replace := func(old, to string) func(r *Run) {
		return func(r *Run) { r.Scenario = []byte(strings.Replace(string(r.Scenario), old, to, 1)) }
	}
	twice := w.runs(4)
	copied := slices.Clone(w.runs(4))
	again := slices.Clone(copied)
	again[0].Dir = "copy"
	mixed := w.runs(5)
	replace("1KiB", "4KiB")(&mixed[4])
	invalid := w.runs(5)
	invalid[1].Result.Verdict.Status = result.Invalid
	invalid[2].Result.Run.Interrupted = true
	for _, tt := range []struct {
		name string
		b    []Run
		a    []Run
		is   error
		says string // "": allowed
	}{
		{name: "alike", b: w.runs(4)},
		{name: "another guarantee", b: edit(w.runs(4), func(r *Run) { r.Result.System.Guarantee = "persisted" }), is: ErrDifferent, says: "the runs differ in guarantee (A received; B persisted): different things were measured"},
		{name: "another size", b: edit(w.runs(4), replace("1KiB", "4KiB")), is: ErrDifferent, says: "message.size (A 1KiB; B 4KiB)"},
		{name: "another rate", b: edit(w.runs(4), replace("1000/s", "2000/s")), is: ErrDifferent, says: "load.rate"},
		{name: "another mode", b: edit(w.runs(4), func(r *Run) { r.Result.Run.Mode = "produce"; replace("mode: stream", "mode: produce")(r) }), is: ErrDifferent, says: "mode (A stream; B produce)"},
		{name: "another topology", b: edit(w.runs(4), replace("producers: 1", "producers: 25")), is: ErrDifferent, says: "topology.producers (A 1; B 25)"},
		{name: "a mixture on one side", b: mixed, is: ErrDifferent, says: "message.size (A 1KiB; B 1KiB, 4KiB)"},
		{name: "another option", b: edit(w.runs(4), replace("storage: file", "storage: memory"))},
		{name: "another host", b: edit(w.runs(4), func(r *Run) { r.Environment.Hosts = []host.Facts{{Hostname: "b"}} })},
		{name: "too few", b: w.runs(3), is: ErrTooFew, says: "B, b: too few runs: 3 runs, needs 1 more; with fewer than 4 a side no difference can be shown at 0.05"},
		{name: "none", b: nil, is: ErrTooFew, says: "0 runs, needs 4 more"},
		{name: "too few that count", b: invalid, is: ErrTooFew, says: "3 runs that can be used of 5 (left out: INVALID, interrupted), needs 1 more"},
		{name: "the same runs", a: twice, b: twice, is: ErrSameRun, says: "is on side A and on side B: it counts as one run only"},
		{name: "one run twice on a side", b: []Run{twice[0], twice[1], twice[2], twice[3], twice[2]}, is: ErrSameRun, says: "is twice on side B: it counts as one run only"},
		{name: "a copy", a: copied, b: append(w.runs(4), again[0]), is: ErrSameRun, says: "copy (side B) is a copy of"},
	} {
		a := tt.a
		if a == nil {
			a = w.runs(4)
		}
		_, err := Compare(sidesOf(a, tt.b), usual)
		switch {
		case tt.says == "":
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		case err == nil || !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says):
			t.Errorf("%s: %v; want %q", tt.name, err, tt.says)
		}
		if errors.Is(tt.is, ErrDifferent) {
			c, err := Compare(sidesOf(a, tt.b), Options{Alpha: 0.05, AllowDifferent: true})
			if err != nil || !slices.ContainsFunc(c.Warnings, func(s string) bool { return strings.Contains(s, "so their figures do not mean the same") }) {
				t.Errorf("%s, allowed: %v, %v", tt.name, err, c)
			}
		}
	}
	if _, err := Compare(sidesOf(w.runs(4)), usual); err == nil {
		t.Error("one side was compared with nothing")
	}
	if _, err := Compare(sidesOf(w.runs(4), w.runs(4)), Options{Alpha: 0.01}); !errors.Is(err, ErrTooFew) || strings.Count(err.Error(), "needs 1 more") != 2 {
		t.Errorf("at 0.01: %v", err)
	}
}

func TestCaveatsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(8, 100)
	a, b := w.runs(4), w.runs(5)
	for i, r := range a {
		r.Result.Run.StartedAt = fmt.Sprintf("2026-01-02T03:%02d:00Z", i)
	}
	for i := range b {
		r := &b[i]
		r.Result.Run.StartedAt = fmt.Sprintf("2026-01-02T04:%02d:00Z", i)
		r.Environment.Hosts = []host.Facts{{Hostname: "b"}}
		r.Environment.Weir.Version = "v2"
		r.Result.System.Stable = "fsync"
		r.Scenario = []byte(strings.Replace(string(r.Scenario), "measure: 2s", "measure: 9s", 1))
	}
	b[1].Result.MessagesAll.Lost = 2
	b[2].Result.Verdict.Status = result.Invalid
	b[3].Scenario, b[3].Counts = nil, nil
	b[4].Result.Latency.Send.Lateness = b[4].Result.Latency.Send.Response
	c := mustCompare(t, usual, a, b)
	for _, want := range []string{
		"confirmations mean different things: a weaker one comes sooner",
		"hosts differ: the sides compare hosts as much as systems",
		"versions of weir differ: the instrument itself has changed",
		"windows differ in length: a longer one has larger counts and maxima",
		"the scenario or host of 1 run is not known: the runs may differ in more than this",
		"A and B were measured one after the other, not in turns: a change on the host looks like a difference between them",
		"there is no shift function: 1 run without intervals.hlog",
		"in some runs something other than the system moved send.response p50, p75, p90, p95 by over a tenth",
		"B has lost messages in 1 of 4 runs, A in none: check those runs, whatever the test says",
	} {
		if !slices.Contains(c.Warnings, want) {
			t.Errorf("not said: %s\nsaid: %s", want, strings.Join(c.Warnings, "\n      "))
		}
	}
	if len(c.Warnings) != 9 {
		t.Errorf("%d warnings: %s", len(c.Warnings), strings.Join(c.Warnings, "\n"))
	}
	if c.Sides[1].Used != 4 || c.Sides[1].Runs[2].Why != "INVALID" || len(c.Shifts) != 0 {
		t.Errorf("side %+v", c.Sides[1])
	}
	// Taken in turns, none of that.
	for i := range a {
		b[i].Result.Run.StartedAt = fmt.Sprintf("2026-01-02T03:%02d:30Z", i)
	}
	b[4].Result.Run.StartedAt = "2026-01-02T03:05:00Z"
	if w := mustCompare(t, usual, a, b).Warnings; len(w) != 8 {
		t.Errorf("in turns: %s", strings.Join(w, "\n"))
	}
}

// Changes one part of a side's environment each.
func TestIncomparableSidesAreNamed(t *testing.T) {
	t.Parallel()
	const (
		settings = "settings of the servers differ (sync_interval): they do different work to keep and deliver a message, whatever a confirmation means"
		hosts    = "hosts differ: the sides compare hosts as much as systems"
		runtime  = "the generator's runtime differs, and so does its own part of the figures"
		fleets   = "agents or their placement differ: the generator adds different times, and messages cross different networks"
		first    = "precedence differs (--fifo): pacers with precedence add less to the figures"
		batches  = "batches differ: one call for several messages costs less than one call for each"
		clients  = "clients differ: the figures include their work as much as that of the servers"
	)
	for _, tt := range []struct {
		name    string
		edit    func(*Run)
		fact    string
		a, b    string
		warning string // "": none
	}{
		{"agents", func(r *Run) {
			cpu := 0.5
			host := &result.AgentHost{Usage: &host.Usage{SpanS: 1, CPUSeconds: &cpu}}
			r.Result.Host.Usage = nil
			r.Result.Agents = []result.Agent{{Name: "x", Hostname: "a", Host: host}, {Name: "y", Hostname: "a", Host: host}}
			r.Environment.Hosts = append(r.Environment.Hosts, r.Environment.Hosts[0])
		}, "agents", "none", "2 agents on 1 host", fleets},
		{"a placement", func(r *Run) { r.Scenario = append(slices.Clip(r.Scenario), "placement: split\n"...) }, "placement", "none", "split", fleets},
		{"a setting", func(r *Run) { r.Environment.System.Settings["sync_interval"] = "always" }, "setting sync_interval", "2m0s", "always", settings},
		{"a setting that is gone", func(r *Run) { r.Environment.System.Settings = nil }, "setting sync_interval", "2m0s", "none", settings},
		{"another server", func(r *Run) { r.Result.System.Server = result.Server{Name: "s", Version: "2"} }, "server", "none", "s 2", ""},
		{"another version installed", func(r *Run) { r.Environment.System.Started.Version = "1.1" }, "installed", "r apt 1.0", "r apt 1.1", ""},
		{"another recipe", func(r *Run) { r.Environment.System.Started.Recipe = "q" }, "installed", "r apt 1.0", "q apt 1.0", ""},
		{"not started by weir", func(r *Run) { r.Environment.System.Started = nil }, "installed", "r apt 1.0", "none", ""},
		{"another client", func(r *Run) { r.Result.System.Client = "lib v2" }, "client", "in process", "lib v2", clients},
		{"another publisher", func(r *Run) { r.Result.System.ClientPath = "the client's own" }, "client path", "weir's", "the client's own", clients},
		{"batches handed over in another way", func(r *Run) { r.Result.System.Batch = result.BatchOneByOne }, "batch", "none", "one by one", batches},
		{"another kernel", func(r *Run) { r.Environment.Hosts[0].Kernel = "6.2" }, "kernel", "6.1", "6.2", hosts},
		{"another governor", func(r *Run) { r.Environment.Hosts[0].CPUGovernor = "powersave" }, "cpu governor", "none", "powersave", hosts},
		{"a quota", func(r *Run) { r.Environment.Hosts[0].CgroupCores = new(1.5) }, "cpu quota", "none", "1.5 cores", hosts},
		{"more memory", func(r *Run) { r.Environment.Hosts[0].MemoryBytes = 16<<30 - 300<<20 }, "memory", "none", "16 GiB", hosts},
		{"a limit of memory", func(r *Run) { r.Environment.Hosts[0].CgroupMemoryBytes = new(uint64(1 << 30)) }, "memory limit", "none", "1024 MiB", hosts},
		{"precedence", func(r *Run) { r.Result.Host.Calibration = &pace.Calibration{FIFO: true} }, "precedence", "none", "SCHED_FIFO", first},
		{"more of Go's processors", func(r *Run) { r.Environment.Hosts[0].GOMAXPROCS = 5 }, "gomaxprocs", "none", "5", runtime},
		{"another Go", func(r *Run) { r.Environment.Hosts[0].GoVersion = "go1.27" }, "go", "none", "go1.27", runtime},
	} {
		w := newWorld(11, 100)
		a, b := w.runs(4), w.runs(4)
		for i := range b {
			a[i].Result.Host.Calibration, b[i].Result.Host.Calibration = new(pace.Calibration), new(pace.Calibration)
			tt.edit(&b[i])
		}
		c := mustCompare(t, usual, a, b)
		if len(c.Differences) != 1 || c.Differences[0].Name != tt.fact || c.Differences[0].Meaningless || c.Differences[0].bySide() != "A "+tt.a+"; B "+tt.b {
			t.Errorf("%s: the differences are %+v", tt.name, c.Differences)
		}
		if tt.warning == "" && len(c.Warnings) > 0 || tt.warning != "" && !slices.Equal(c.Warnings, []string{tt.warning}) {
			t.Errorf("%s: said: %q; want %q", tt.name, c.Warnings, tt.warning)
		}
	}
	// Settings of different systems are not comparable.
	w := newWorld(12, 100)
	a, b := w.runs(4), w.runs(4)
	for i := range b {
		b[i].Result.System.Driver = "other"
		b[i].Environment.System.Settings = map[string]string{"acks": "all"}
	}
	if c := mustCompare(t, usual, a, b); len(c.Differences) != 1 || c.Differences[0].Name != "driver" || len(c.Warnings) != 0 {
		t.Errorf("other systems: %+v, %q", c.Differences, c.Warnings)
	}
	// What was found counts, not what was requested.
	for i := range b {
		b[i] = w.run()
		b[i].Result.System.Server.Nodes = 3
		a[i].Result.System.Server.Nodes = 1
	}
	if _, err := Compare(sidesOf(a, b), usual); !errors.Is(err, ErrDifferent) || !strings.Contains(err.Error(), "system.nodes (A 1; B 3)") {
		t.Errorf("three nodes against one: %v", err)
	}
}

// Compares its percentiles with those of judge, with messages that never came.
func TestShiftFunctionMatchesMergedRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(11, 3000)
	a, b := w.runs(4), w.runs(4)
	ages := new(measure.Counts)
	ages.Add(900_000, 20) // of 12,020
	b[1].Counts[result.CensoredTag(measure.SendResponse, measure.Measure)] = ages
	c := mustCompare(t, usual, a, b)
	for i, side := range [][]Run{a, b} {
		merged, censored := new(measure.Counts), new(measure.Counts)
		for _, r := range side {
			merged.Merge(r.Counts["send.response.measure"])
		}
		if i == 1 {
			censored = ages
		}
		want := judge.Distribution(merged, censored, described()...)
		for _, point := range c.Shifts[0].Points {
			got, row := point.Sides[i], want.Percentile(point.P)
			if got.NS != row.NS || got.AtLeast != row.AtLeast || got.Supported != row.Supported || got.RunsLoNS > got.NS || got.RunsHiNS < got.NS {
				t.Errorf("side %d, p%v: %+v; judge has %+v", i, point.P, got, row)
			}
		}
	}
	last := c.Shifts[0].Points[len(c.Shifts[0].Points)-1]
	if !last.Sides[1].AtLeast || last.Sides[1].ShiftNS != nil || last.Sides[1].Percent != nil {
		t.Errorf("p99.9 is a lower bound, and shifted by %+v", last.Sides[1])
	}
}

// In the merged runs the base is far slower, because of one run in three. Over runs it is the faster side,
// as the tests say.
func TestOneSlowRunDecidesNoMedian(t *testing.T) {
	t.Parallel()
	tag, censored := result.Tag(measure.SendResponse, measure.Measure), result.CensoredTag(measure.SendResponse, measure.Measure)
	of := func(values ...int64) (runs []Run) {
		for _, v := range values {
			c := new(measure.Counts)
			c.Add(v, 1000)
			runs = append(runs, Run{Counts: map[string]*measure.Counts{tag: c}})
		}
		return runs
	}
	a, b := of(10_000, 100_000, 10_000), of(14_000, 14_000, 14_000)
	points := shiftFunctions([][]Run{a, b}, false)[0].Points
	p := points[slices.IndexFunc(points, func(p Point) bool { return p.P == 99 })]
	base, other := p.Sides[0], p.Sides[1]
	if base.NS < 99_000 || *other.Percent > -80 {
		t.Errorf("merged, the sides are %+v and %+v; want the base far slower", base, other)
	}
	if base.MedianNS > 10_010 || base.MedianNS < 9_990 || *other.MedianPercent < 39 || *other.MedianPercent > 41 || !base.MedianSupported || base.MedianAtLeast {
		t.Errorf("over runs the sides are %+v and %+v; want 10 µs, and 40 %% more", base, other)
	}
	if last := points[len(points)-1]; last.Sides[0].MedianSupported {
		t.Errorf("of 1,000 messages a run, p%v is supported: %+v", last.P, last.Sides[0])
	}
	for _, r := range b[:2] {
		r.Counts[censored] = new(measure.Counts)
		r.Counts[censored].Add(9_000, 900)
	}
	points = shiftFunctions([][]Run{a, b}, false)[0].Points
	if x := points[5].Sides[1]; !x.MedianAtLeast || x.MedianPercent != nil {
		t.Errorf("two of three runs are lower bounds, and their median is %+v", x)
	}
}

// The servers of a run are summed.
func TestResourcesAddUp(t *testing.T) {
	t.Parallel()
	w := newWorld(9, 100)
	a, b := w.runs(4), w.runs(4)
	for _, r := range slices.Concat(a, b) {
		r.Result.Servers = &result.Servers{SpanS: 2, Processes: []host.ServerUsage{
			{Name: "server-1", Cores: new(0.5), RSSMaxBytes: new(uint64(100))}, {Name: "server-2", Cores: new(0.25), RSSMaxBytes: new(uint64(50))},
		}}
	}
	c := mustCompare(t, usual, a, b)
	found := 0
	for _, f := range c.Figures {
		if want := map[string]float64{"servers' cpu": 0.75, "servers' memory": 150}[f.Name]; want > 0 {
			found++
			if f.Sides[1].Median != want || f.Sides[1].Change.Verdict != NoChange || f.Sides[1].Change.Tests != 0 {
				t.Errorf("%s: %+v", f.Name, f.Sides[1])
			}
		}
	}
	if found != 2 {
		t.Errorf("%d figures of servers", found)
	}
	b[0].Result.Servers.Processes[1].Cores = nil
	if c := mustCompare(t, usual, a, b); c.change(familyResources, "servers' cpu", 1) != nil {
		t.Error("half of the servers were compared with all")
	}
}

// Repeats begin in random order, which must not choose the base.
func TestByBaseIsFirstValueInFile(t *testing.T) {
	t.Parallel()
	of := func(place int, storage string) Run {
		return Run{Result: &result.Result{Run: result.Run{Place: place}}, Scenario: []byte("system:\n  options:\n    storage: " + storage + "\n")}
	}
	for name, tt := range map[string]struct {
		runs []Run
		want []string
	}{
		"its second began":              {[]Run{of(2, "memory"), of(1, "file"), of(1, "file"), of(2, "memory")}, []string{"file", "memory"}},
		"two of its values are alike":   {[]Run{of(4, "memory"), of(3, "file"), of(2, "memory"), of(1, "file")}, []string{"file", "memory"}},
		"an earlier weir knew no place": {[]Run{of(0, "memory"), of(0, "file")}, []string{"memory", "file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sides := must.Get(By(tt.runs, "system.options.storage"))(t)
			var got []string
			for _, s := range sides {
				got = append(got, strings.TrimPrefix(s.Given, "system.options.storage="))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("sides %q; want %q", got, tt.want)
			}
		})
	}
}

// One correction covers only these, so fewer runs can show a change.
func TestChosenFiguresAreComparedByThemselves(t *testing.T) {
	w := newWorld(5, 2000)
	base, side := w.runs(4), w.runs(4)
	for _, r := range side {
		for i := range r.Result.Latency.Send.Response.Percentiles {
			r.Result.Latency.Send.Response.Percentiles[i].NS *= 2
		}
	}
	o := usual
	if c := mustCompare(t, o, base, side); c.change("send.response", "p99", 1).Verdict != NeedsRuns {
		t.Errorf("of all figures: %+v; want too few runs", c.change("send.response", "p99", 1))
	}
	o.Figures = []string{"send.p99"}
	c := mustCompare(t, o, base, side)
	if len(c.Figures) != 1 || c.Figures[0].Key() != "send.p99" || c.Figures[0].Sides[1].Change.Verdict != Worse || c.Sides[1].Tally.Worse != 1 {
		t.Errorf("of p99 alone: %+v; want it worse", c.Figures)
	}
	if len(c.Shifts) != 1 || c.Shifts[0].Family != "send.response" {
		t.Errorf("%d shift functions, want that of send", len(c.Shifts))
	}
	o.Figures = []string{"send.p99", "received.rate", "lost", "weir.cpu"}
	c = mustCompare(t, o, base, side)
	if tests := c.change("send.response", "p99", 1).Tests; len(c.Figures) != 4 || tests != 3 { // nothing is lost in any run
		t.Errorf("%d figures, and %d tests with one correction; want 4 and 3", len(c.Figures), tests)
	}
	o.Figures = []string{"send.p98", "send.p99.99"}
	_, err := Compare(sidesOf(base, side), o)
	if !errors.Is(err, ErrFigure) {
		t.Fatalf("%v, want ErrFigure", err)
	}
	for _, want := range []string{`"send.p98" cannot be compared: these runs do not have it (send.p50, send.p75,`, "received.rate, lost,", "send.p99.99 cannot be compared: 8 runs do not have it (it needs 50000 samples, and a run has 2000)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

// As for a file of two scenarios.
func TestGroupingByNameOrShortKey(t *testing.T) {
	t.Parallel()
	var runs []Run
	for i := range 8 {
		name, driver := "js", "jetstream"
		if i%2 > 0 {
			name, driver = "redis", "redis-streams"
		}
		runs = append(runs, Run{Dir: name + string(rune('a'+i)), Result: &result.Result{
			Run:     result.Run{ID: string(rune('a' + i)), Name: name + "-r" + string(rune('1'+i)), Series: name, Place: 1 + i%2},
			System:  result.System{Driver: driver},
			Verdict: result.Verdict{Status: result.Suspect},
		}})
	}
	for key, want := range map[string]string{
		"name": "name=js", "driver": "system.driver=jetstream", "system.driver": "system.driver=jetstream",
	} {
		sides, err := By(runs, key)
		if err != nil || len(sides) != 2 || sides[0].Given != want || len(sides[0].Runs) != 4 {
			t.Errorf("by %s: %+v, %v; want %s first", key, sides, err, want)
		}
	}
	if _, err := By(runs, "rate"); !errors.Is(err, ErrNotVaried) || !strings.Contains(err.Error(), "(system.driver, name)") {
		t.Errorf("by a key that does not vary: %v", err)
	}
	if key := Apart(runs); key != "system.driver" {
		t.Errorf("they can be compared by %q; want system.driver", key)
	}
	if key := Apart(runs[:6]); key != "" {
		t.Errorf("three runs a side are compared by %q; want none", key)
	}
	for i := range runs { // another rate is another question
		runs[i].Scenario = fmt.Appendf(nil, "load:\n  rate: %d/s\n", 5+i%2)
	}
	if key := Apart(runs); key != "" {
		t.Errorf("runs at other rates are compared by %q; want none", key)
	}
}

// withSystem adds what the network and the system took of sampled messages.
func withSystem(runs []Run, scale float64, leftOut uint64) []Run {
	for _, r := range runs {
		all := new(measure.Counts)
		var steps []wire.Group
		for step := range int64(20) {
			c := new(measure.Counts)
			for i := range int64(100) {
				c.Add(int64(scale*float64(100_000+i*1000))+int64(len(r.Dir)+int(r.Result.Messages.Sent))+int64(r.Result.Throughput.SentPerS*10), 1)
			}
			all.Merge(c)
			steps = append(steps, wire.Group{Step: step, Delay: 1, System: *c})
		}
		r.Result.Wire = &result.Wire{E2E: &result.WireParts{Sampled: all.Total() + leftOut, Exact: all.Total(), System: judge.SystemsPart(all, steps, nil, 40_000)}}
	}
	return runs
}

// The whole latencies of both sides are alike: the host hides what the system's part shows.
func TestSystemTimeComparedByOwnVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(7, 600)
	o := usual
	c := mustCompare(t, o, withSystem(w.runs(6), 1, 0), withSystem(w.runs(6), 1.2, 0))
	if got := c.change("e2e.system", "p99", 1); got == nil || got.Verdict != Worse {
		t.Errorf("p99 of the system is a fifth longer: %+v", got)
	}
	if c.change("e2e.system", "max", 1) != nil {
		t.Error("the maximum of a sample is compared")
	}
	i := slices.IndexFunc(c.Figures, func(f Figure) bool { return f.Family == "e2e.system" && f.Name == "p99" })
	if key := c.Figures[i].Key(); key != "e2e.system.p99" {
		t.Errorf("its key is %q", key)
	}
	o.Figures = []string{"e2e.system.p99"}
	if c := mustCompare(t, o, withSystem(w.runs(6), 1, 0), withSystem(w.runs(6), 1.2, 0)); len(c.Figures) != 1 || c.Figures[0].Sides[1].Change.Verdict != Worse {
		t.Errorf("chosen alone: %+v", c.Figures)
	}

	// Half a percent left out may be the slowest: p99 is not known of such a run.
	few := withSystem(w.runs(6), 1.2, 10)
	c = mustCompare(t, usual, withSystem(w.runs(6), 1, 0), few)
	if c.change("e2e.system", "p99", 1) != nil || c.change("e2e.system", "p50", 1) == nil {
		t.Error("p99 is compared though too many messages were left out, or p50 is not")
	}
	// Recorded by one side only.
	c = mustCompare(t, usual, withSystem(w.runs(6), 1, 0), w.runs(6))
	for _, f := range c.Figures {
		if f.Family == "e2e.system" {
			t.Errorf("%s is compared with runs that did not record it", f.Name)
		}
	}
}
