// Package history finds where figures changed from one run to the next, over all runs kept in a folder. The
// unit of observation is the run, as in package compare. It reads only what it is given and connects to
// nothing.
package history

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// Schema is the JSON format of a History; docs/formats/history.md describes it.
const Schema = "weir.history/v1"

// LeastRuns is the minimum number of runs. With fewer, even the clearest step would not be significant
// given the search over all figures. If many figures vary, more are needed: see Series.Needs.
const LeastRuns = 10

// MostRuns is how many runs of a series are examined: the latest ones.
const MostRuns = stats.MostForChanges

// Errors of Of.
var (
	// ErrTooFew says that no series has enough runs. A FewError has the number missing.
	ErrTooFew = errors.New("too few runs")
	// ErrSameRun says that a run occurs twice.
	ErrSameRun = errors.New("counts as one run only")
)

// A FewError is an ErrTooFew.
type FewError struct {
	More int // runs that the longest series lacks
	says string
}

// Error implements error.
func (e *FewError) Error() string { return ErrTooFew.Error() + ": " + e.says }

// Unwrap returns ErrTooFew.
func (e *FewError) Unwrap() error { return ErrTooFew }

// Options define what counts as a change, and which ones are new.
type Options struct {
	Alpha  float64 // probability that a series without changes shows one, over all its figures
	Least  float64 // changes smaller than this fraction are omitted: 0.02 is 2 %; 0: none are
	Latest int     // changes within this many runs of the end are new
	Seed   uint64  // of the permutations
	Memo   *Memo   // keeps what was found; nil: nothing is kept
}

// A History is what Of found.
type History struct {
	Schema string   `json:"schema"`
	Weir   string   `json:"weir"` // version that examined them
	Alpha  float64  `json:"alpha"`
	Least  float64  `json:"least"`
	Latest int      `json:"latest"`
	Series []Series `json:"series"` // at least one
}

// A Series is comparable runs, in the order of their start.
type Series struct {
	Name    string            `json:"name"`
	Driver  string            `json:"driver"`
	Runs    []Run             `json:"runs"`            // examined ones
	LeftOut []LeftOut         `json:"left_out"`        // excluded ones
	Older   int               `json:"older"`           // number of earlier runs, not examined
	Figures []Figure          `json:"figures"`         // none if there are too few runs
	Missing []compare.Missing `json:"missing"`         // figures that some run lacks
	Needs   int               `json:"needs,omitempty"` // runs needed to show any change; absent: there are enough
	Shows   *Shows            `json:"shows,omitempty"` // detectable change; absent if its figure changed, or there is none
}

// Shows is the change that this many runs would have shown in the most informative figure: the smallest step
// found that begins with the latest runs, or halfway if those are more than half.
type Shows struct {
	Family  string   `json:"family"`
	Name    string   `json:"name"`
	Percent *float64 `json:"percent"` // upwards; null: not even the largest step

	// After is how many runs must follow a change before it can show, if fewer follow this one. Then no
	// step is large enough. Absent: enough follow.
	After int `json:"after,omitempty"`
}

// A Run is one of a series.
type Run struct {
	Dir       string `json:"dir"`
	ID        string `json:"id"`
	StartedAt string `json:"started_at"` // RFC 3339, UTC; "" if not recorded
}

// A LeftOut is an excluded run.
type LeftOut struct {
	Dir string `json:"dir"`
	Why string `json:"why"` // INVALID or interrupted
}

// A Figure is followed over the runs.
type Figure struct {
	Family  string    `json:"family"` // as in a comparison
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Better  string    `json:"better"`             // lower or higher
	Values  []float64 `json:"values"`             // per run
	AtLeast []bool    `json:"at_least,omitempty"` // whether each value is a lower bound; absent: none is
	Changes []Change  `json:"changes"`            // in run order
}

// Value returns the figure of run i.
func (f *Figure) Value(i int) result.Value {
	return result.Bound(f.Values[i], f.AtLeast != nil && f.AtLeast[i])
}

// A Change is where a figure changes.
type Change struct {
	At     int     `json:"at"` // index of the first run after it
	Before float64 `json:"before"`
	After  float64 `json:"after"` // medians of the runs since the previous change, and up to the next one

	BeforeAtLeast bool `json:"before_at_least,omitempty"` // the median is a lower bound
	AfterAtLeast  bool `json:"after_at_least,omitempty"`

	// By how much the runs after lie above those before (Hodges-Lehmann), in percent, and its
	// 95 % interval; null where a value is 0, or the runs give no end. Beside a lower bound
	// the percentage is of the bounds, and the end that it could move is null.
	Percent   *float64 `json:"percent"`
	PercentLo *float64 `json:"percent_lo"`
	PercentHi *float64 `json:"percent_hi"`

	P       float64              `json:"p"` // over all figures of the series
	Verdict Verdict              `json:"verdict"`
	New     bool                 `json:"new"`     // within the latest runs
	Differs []compare.Difference `json:"differs"` // between the last run before it and the first one after it
}

// A Verdict is the direction of a change.
type Verdict string

// The verdicts.
const (
	Worse  Verdict = "worse"
	Better Verdict = "better"
	Spread Verdict = "spread" // equal medians, or lower bounds leave open which is larger
)

// Of finds the changes of runs, ordered by their start. The error wraps ErrTooFew or ErrSameRun.
func Of(runs []compare.Run, o Options) (*History, error) {
	runs = compare.Recorded(runs)
	if err := once(runs); err != nil {
		return nil, err
	}
	h := &History{Schema: Schema, Alpha: o.Alpha, Least: o.Least, Latest: o.Latest}
	enough := false
	most, needs := 0, 0
	alike := compare.Alike(runs)
	h.Series = make([]Series, len(alike))
	var all sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range alike {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			h.Series[i] = follow(alike[i], o)
		})
	}
	all.Wait()
	for _, s := range h.Series {
		enough = enough || len(s.Runs) >= LeastRuns && s.Needs == 0
		if len(s.Runs) > most {
			most, needs = len(s.Runs), s.Needs
		}
	}
	switch {
	case enough:
	case needs > 0:
		return nil, &FewError{needs - most, fmt.Sprintf("%d runs cannot show a change, however large: add %d", most, needs-most)}
	default:
		return nil, &FewError{LeastRuns - most, fmt.Sprintf("the longest series has %d that count (%d or more of one name, with the same settings)", most, LeastRuns)}
	}
	return h, nil
}

// once refuses duplicate runs.
func once(runs []compare.Run) error {
	var errs []error
	seen := map[string]string{}
	for _, r := range runs {
		id := r.Record.ID
		if was, twice := seen[id]; twice && id != "" {
			errs = append(errs, fmt.Errorf("%s is a copy of %s: it %w", r.Dir, was, ErrSameRun))
		}
		seen[id] = r.Dir
	}
	return errors.Join(errs...)
}

// follow finds the changes of one series.
func follow(runs []compare.Run, o Options) Series {
	began := func(r compare.Run) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, r.Record.StartedAt) // one without a time comes first
		return t
	}
	slices.SortStableFunc(runs, func(a, b compare.Run) int { return began(a).Compare(began(b)) })
	s := Series{Name: runs[0].Record.Scenario, Driver: runs[0].Record.Fact("driver"), Runs: []Run{}, LeftOut: []LeftOut{}, Figures: []Figure{}, Missing: []compare.Missing{}}
	var used []compare.Run
	for _, r := range runs {
		if why := r.LeftOut(); why != "" {
			s.LeftOut = append(s.LeftOut, LeftOut{Dir: r.Dir, Why: why})
			continue
		}
		used = append(used, r)
	}
	s.Older = max(0, len(used)-MostRuns)
	used = used[s.Older:]
	for _, r := range used {
		s.Runs = append(s.Runs, Run{Dir: r.Dir, ID: r.Record.ID, StartedAt: r.Record.StartedAt})
	}
	if len(used) < LeastRuns {
		return s
	}
	figures, missing := compare.Track(used)
	var followed []compare.Figure
	tests := 0
	for _, f := range figures {
		if !headline(f.Family, f.Name) {
			continue
		}
		followed = append(followed, f)
		if varies(f.Sides[0].Runs) {
			tests++
		}
	}
	for _, m := range missing {
		if headline(m.Family, m.Name) {
			s.Missing = append(s.Missing, m)
		}
	}
	for _, f := range followed {
		s.Figures = append(s.Figures, changes(f, used, tests, o))
	}
	if !slices.ContainsFunc(s.Figures, func(f Figure) bool { return len(f.Changes) > 0 }) {
		s.Needs = needs(len(used), tests, o)
	}
	if s.Needs == 0 {
		s.Shows = shows(s.Figures, tests, o)
	}
	return s
}

// mostNeeded bounds the search of needs: this many runs show any step at any allowed level, over more
// figures than exist.
const mostNeeded = 60

// needs returns the number of runs with which a step can show if n are too few; else 0. With few runs a
// step by chance is too likely for the level: 2 of the 252 orders of five and five have one, and the level
// is divided by the number of figures that vary.
func needs(n, tests int, o Options) int {
	if tests == 0 || n >= mostNeeded || stepShows(n, n/2, tests, o) {
		return 0
	}
	for more := n + 1; more < mostNeeded; more++ {
		if stepShows(more, more/2, tests, o) {
			return more
		}
	}
	return mostNeeded
}

// stepShows reports whether the clearest step is found: values that are constant but for a step at the
// index at.
func stepShows(n, at, tests int, o Options) bool {
	x := make([]float64, n)
	for i := at; i < n; i++ {
		x[i] = 1
	}
	return len(o.Memo.changePoints(x, o.Alpha/float64(tests), o.Seed)) > 0
}

// steps returns the steps to try, in percent.
func steps() []float64 {
	return []float64{1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 900}
}

// mostShown is how many of the latest runs shows examines: each step costs a search.
const mostShown = 100

// shows says how large a change would have been found. It takes the existing runs as the variation without
// a change.
func shows(figures []Figure, tests int, o Options) *Shows {
	var f *Figure
	for _, want := range [][2]string{{"e2e.response", "p99"}, {"rtt.response", "p99"}, {"send.response", "p99"}, {"throughput", "received"}, {"throughput", "confirmed"}} {
		if i := slices.IndexFunc(figures, func(f Figure) bool { return f.Family == want[0] && f.Name == want[1] }); i >= 0 {
			f = &figures[i]
			break
		}
	}
	if f == nil || len(f.Changes) > 0 || !varies(f.Values) || slices.Min(f.Values) <= 0 {
		return nil
	}
	values := f.Values[max(0, len(f.Values)-mostShown):]
	at := max(len(values)-o.Latest, len(values)/2)
	at = min(at, len(values)-stats.LeastSegment)
	found := func(percent float64) bool {
		x := make([]float64, len(values))
		for i, v := range values {
			if x[i] = math.Log(v); i >= at {
				x[i] += math.Log1p(percent / 100)
			}
		}
		return len(o.Memo.changePoints(x, o.Alpha/float64(tests), o.Seed)) > 0
	}
	if found(0) { // an omitted change
		return nil
	}
	out, all := &Shows{Family: f.Family, Name: f.Name}, steps()
	if i := sort.Search(len(all), func(i int) bool { return found(all[i]) }); i < len(all) {
		out.Percent = &all[i]
		return out
	}
	if stepShows(len(values), at, tests, o) {
		return out
	}
	for after := len(values) - at + 1; after <= len(values)/2; after++ {
		if stepShows(len(values), len(values)-after, tests, o) {
			out.After = after
			break
		}
	}
	return out
}

// headline selects the figures to follow. Neighbouring percentiles change together, and each further figure
// raises the detectable change of all. A maximum is a single message, and a sample rarely has a p99.9.
func headline(family, name string) bool {
	switch latency := strings.Contains(family, "."); { // send.response and so on
	case !latency, name == "p50", name == "p99":
		return true
	}
	return name == "p99.9" && !judge.OfSystem(family)
}

func varies(x []float64) bool { return slices.Min(x) < slices.Max(x) }

// changes finds a figure's changes. It uses the logarithms of times and rates, so that twice as slow is as
// far as twice as fast. The level is divided by the number of figures that vary (Bonferroni).
func changes(f compare.Figure, runs []compare.Run, tests int, o Options) Figure {
	values := f.Sides[0]
	out := Figure{Family: f.Family, Name: f.Name, Unit: f.Unit, Better: f.Better, Values: values.Runs, AtLeast: values.AtLeast, Changes: []Change{}}
	if !varies(values.Runs) {
		return out
	}
	x := slices.Clone(values.Runs)
	if slices.Min(x) > 0 {
		for i, v := range x {
			x[i] = math.Log(v)
		}
	}
	known := values.Values()
	found := o.Memo.changePoints(x, o.Alpha/float64(tests), o.Seed)
	for i, c := range found {
		from, to := 0, len(x)
		if i > 0 {
			from = found[i-1].At
		}
		if i+1 < len(found) {
			to = found[i+1].At
		}
		before, after := values.Runs[from:c.At], values.Runs[c.At:to]
		was, is := known[from:c.At], known[c.At:to]
		change := Change{At: c.At, P: min(1, c.P*float64(tests)), New: c.At >= len(x)-o.Latest}
		median, _, _ := result.Spread(was)
		change.Before, change.BeforeAtLeast = median.Least()
		median, _, _ = result.Spread(is)
		change.After, change.AfterAtLeast = median.Least()
		if ratio, ok := stats.HodgesLehmannRatio(before, after, 0.95); ok {
			if values.AtLeast != nil {
				low, _ := stats.HodgesLehmannRatio(compare.Highest(was), after, 0.95)
				high, _ := stats.HodgesLehmannRatio(before, compare.Highest(is), 0.95)
				ratio.Lo, ratio.Hi = low.Lo, high.Hi
			}
			change.Percent, change.PercentLo, change.PercentHi = compare.Percent(&ratio.Estimate), compare.Percent(ratio.Lo), compare.Percent(ratio.Hi)
			if math.Abs(ratio.Estimate-1) < o.Least {
				continue
			}
		}
		larger := change.After > change.Before
		switch {
		case change.After == change.Before, larger && change.BeforeAtLeast, !larger && change.AfterAtLeast:
			change.Verdict = Spread
		case larger == (f.Better == "lower"):
			change.Verdict = Worse
		default:
			change.Verdict = Better
		}
		change.Differs = compare.Between(runs[c.At-1], runs[c.At])
		out.Changes = append(out.Changes, change)
	}
	return out
}

// New counts the new changes, and how many of them are for the worse.
func (h *History) New() (all, worse int) {
	for _, s := range h.Series {
		for _, f := range s.Figures {
			for _, c := range f.Changes {
				if c.New {
					all++
					if c.Verdict == Worse {
						worse++
					}
				}
			}
		}
	}
	return all, worse
}
