package compare

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// The families of figures besides the distributions. Holm's correction covers all figures of a family.
const (
	familyThroughput = "throughput"
	familyOutcomes   = "outcomes" // of the whole run with its warm-up: errors there count too
	familyResources  = "resources"
)

// The units of figures.
const (
	UnitTime     = "ns"
	UnitRate     = "per_s"
	UnitMessages = "messages"
	UnitCores    = "cores"
	UnitBytes    = "bytes"
)

// tested returns the percentiles to compare; 100 is the maximum. Each has a price: the more figures a
// family has, the more runs any of them needs.
func tested() []float64 { return []float64{50, 75, 90, 95, 99, 99.9, 99.99, 100} }

// latencies are the distributions that can be compared.
func latencies() []measure.Kind {
	return []measure.Kind{
		measure.SendResponse, measure.SendService, measure.E2EResponse, measure.E2EService, measure.RTTResponse, measure.RTTService,
	}
}

// A Figure is one figure on all sides.
type Figure struct {
	Family string   `json:"family"` // send.response and so on, throughput, outcomes, resources
	Name   string   `json:"name"`   // p99, max, lost, confirmed and so on
	Unit   string   `json:"unit"`
	Better string   `json:"better"` // lower or higher
	Sides  []Values `json:"sides"`  // in the order of the comparison's
}

// Values are a figure's values on one side.
type Values struct {
	Side          string    `json:"side"`
	Runs          []float64 `json:"runs"`               // of each usable run, in order
	AtLeast       []bool    `json:"at_least,omitempty"` // whether each value is a lower bound; absent: none is
	Median        float64   `json:"median"`
	MedianAtLeast bool      `json:"median_at_least"`        // the median is a lower bound
	Marked        int       `json:"host_limited,omitempty"` // runs in which the figure cannot be quoted (result.Figure)
	Change        *Change   `json:"change,omitempty"`       // from the base; absent for the base
}

// Values returns the figure of each run.
func (v *Values) Values() []result.Value {
	out := make([]result.Value, len(v.Runs))
	for i, x := range v.Runs {
		out[i] = result.Bound(x, v.AtLeast != nil && v.AtLeast[i])
	}
	return out
}

// Missing is a figure that was not compared since some runs lack it.
type Missing struct {
	Family string `json:"family"`
	Name   string `json:"name"`
	Runs   int    `json:"runs"`                    // runs that lack it
	Needs  uint64 `json:"needs_samples,omitempty"` // per run; absent: the runs have no such figure
	Has    uint64 `json:"has_samples,omitempty"`   // the fewest of a run
}

// A reading is a figure to read from every run.
type reading struct {
	family, name, unit string
	higher             bool                                           // higher is better
	of                 func(*result.Result) (value float64, is known) // of one run
}

// known says how well a run's figure is known.
type known struct {
	no           bool // not at all
	atLeast      bool
	marked       bool   // by the generator's own lateness
	needs, hasIt uint64 // samples, if there are too few
}

// readings returns the figures of such runs.
func readings(runs []Run) []reading {
	every := func(has func(*result.Result) bool) bool {
		return !slices.ContainsFunc(runs, func(r Run) bool { return !has(r.Result) })
	}
	some := func(has func(*result.Result) bool) bool {
		return slices.ContainsFunc(runs, func(r Run) bool { return has(r.Result) })
	}
	var out []reading
	for _, pair := range [][2]measure.Kind{
		{measure.SendResponse, measure.SendService},
		{measure.E2EResponse, measure.E2EService},
		{measure.RTTResponse, measure.RTTService},
	} {
		of := func(k measure.Kind) func(*result.Result) bool {
			return func(r *result.Result) bool { return distribution(r, k) != nil }
		}
		switch {
		case every(of(pair[0])):
			out = append(out, percentiles(pair[0])...)
		case some(of(pair[1])): // a closed loop has no response
			out = append(out, percentiles(pair[1])...)
		}
	}
	received := func(t result.Throughput) float64 { v, _ := t.Received(); return v }
	for _, x := range []struct {
		name string
		of   func(result.Throughput) float64
		has  func(func(*result.Result) bool) bool
	}{
		{"sent", func(t result.Throughput) float64 { return t.SentPerS }, some},
		{"confirmed", func(t result.Throughput) float64 { return t.ConfirmedPerS }, some},
		{"received", received, func(f func(*result.Result) bool) bool {
			return some(f) && every(func(r *result.Result) bool { _, known := r.Throughput.Received(); return known })
		}},
	} {
		if x.has(func(r *result.Result) bool { return x.of(r.Throughput) > 0 }) {
			out = append(out, reading{familyThroughput, x.name, UnitRate, true, func(r *result.Result) (float64, known) { return x.of(r.Throughput), known{} }})
		}
	}
	return append(append(out, outcomes(some)...), resources(some)...)
}

// distribution returns a kind's distribution, nil if the run has none.
func distribution(r *result.Result, k measure.Kind) *result.Dist {
	l := &r.Latency
	switch k {
	case measure.SendResponse:
		return l.Send.Response
	case measure.SendOnTime:
		return l.Send.OnTime
	case measure.SendService:
		return l.Send.Service
	case measure.E2EResponse:
		return l.E2E.Response
	case measure.E2EOnTime:
		return l.E2E.OnTime
	case measure.E2EService:
		return l.E2E.Service
	case measure.RTTResponse:
		return l.RTT.Response
	case measure.RTTOnTime:
		return l.RTT.OnTime
	case measure.RTTService:
		return l.RTT.Service
	}
	return nil
}

func percentiles(k measure.Kind) []reading {
	family := strings.TrimSuffix(k.String(), ".response") // as in objectives
	var out []reading
	for _, p := range tested() {
		out = append(out, reading{k.String(), percentileName(p), UnitTime, false, func(r *result.Result) (float64, known) {
			d := distribution(r, k)
			row := d.Percentile(p)
			switch {
			case row == nil:
				return 0, known{no: true}
			case row.UnsupportedBy != "":
				return 0, known{no: true}
			case !row.Supported:
				return 0, known{no: true, needs: stats.Needed(p), hasIt: d.Count + d.Censored}
			}
			f := judge.FigureOf(r, family+"."+percentileName(p))
			return float64(row.NS), known{atLeast: row.AtLeast, marked: f != nil && !f.Quotable}
		}})
	}
	return out
}

func percentileName(p float64) string {
	if p >= 100 {
		return "max"
	}
	return "p" + strconv.FormatFloat(p, 'f', -1, 64)
}

// outcomes returns the message counts, without those that no run has, except the ones that every reader
// expects.
func outcomes(some func(func(*result.Result) bool) bool) []reading {
	var out []reading
	for _, x := range []struct {
		name   string
		always bool
		of     func(result.Messages) uint64
	}{
		{"lost", true, func(m result.Messages) uint64 { return m.Lost }},
		{"duplicated", true, func(m result.Messages) uint64 { return m.Duplicated }},
		{"reordered", true, func(m result.Messages) uint64 { return m.Reordered }},
		{"corrupted", false, func(m result.Messages) uint64 { return m.Corrupted }},
		{"misrouted", false, func(m result.Messages) uint64 { return m.Misrouted }},
		{"unknown", false, func(m result.Messages) uint64 { return m.Unknown }},
		{"failed", true, func(m result.Messages) uint64 { return m.Failed }},
		{"unconfirmed", false, func(m result.Messages) uint64 { return m.Unconfirmed }},
		{"dropped", false, func(m result.Messages) uint64 { return m.Dropped }},
		{"dead-lettered", false, func(m result.Messages) uint64 { return m.DeadLettered }},
		{"late", false, func(m result.Messages) uint64 { return m.Late }},
		{"pending", false, func(m result.Messages) uint64 { return m.Pending }},
	} {
		if x.always || some(func(r *result.Result) bool { return x.of(r.MessagesAll) > 0 }) {
			out = append(out, reading{familyOutcomes, x.name, UnitMessages, false, func(r *result.Result) (float64, known) {
				return float64(x.of(r.MessagesAll)), known{}
			}})
		}
	}
	return out
}

// resources returns the total use of the servers that weir started, and of weir with its client library.
func resources(some func(func(*result.Result) bool) bool) []reading {
	sum := func(r *result.Result, add func(i int) (float64, bool)) (float64, known) {
		if r.Servers == nil || len(r.Servers.Processes) == 0 {
			return 0, known{no: true}
		}
		total := 0.0
		for i := range r.Servers.Processes {
			v, ok := add(i)
			if !ok {
				return 0, known{no: true}
			}
			total += v
		}
		return total, known{}
	}
	var out []reading
	for _, x := range []reading{
		{familyResources, "servers' cpu", UnitCores, false, func(r *result.Result) (float64, known) {
			return sum(r, func(i int) (float64, bool) { return value(r.Servers.Processes[i].Cores) })
		}},
		{familyResources, "servers' memory", UnitBytes, false, func(r *result.Result) (float64, known) {
			return sum(r, func(i int) (float64, bool) {
				n := r.Servers.Processes[i].RSSMaxBytes
				if n == nil {
					return 0, false
				}
				return float64(*n), true
			})
		}},
		{familyResources, "weir's cpu", UnitCores, false, func(r *result.Result) (float64, known) {
			cores, any := 0.0, false
			add := func(u *host.Usage) bool {
				if u == nil || u.CPUSeconds == nil || u.SpanS <= 0 {
					return false
				}
				cores, any = cores+*u.CPUSeconds/u.SpanS, true
				return true
			}
			if len(r.Agents) == 0 {
				add(r.Host.Usage)
			}
			for _, a := range r.Agents {
				if a.Host == nil || !add(a.Host.Usage) {
					return 0, known{no: true}
				}
			}
			return cores, known{no: !any}
		}},
	} {
		if some(func(r *result.Result) bool { _, is := x.of(r); return !is.no }) {
			out = append(out, x)
		}
	}
	return out
}

func value(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

// compare reads the figures of every run and compares the sides with the base. The error is about chosen
// figures that cannot be compared.
func (c *Comparison) compare(used [][]Run, o Options) error {
	all := readings(slices.Concat(used...))
	errs := []error{chosen(o.Figures, all)}
	families := map[string][]*Figure{}
	var order []string
	for _, x := range all {
		if len(o.Figures) > 0 && !slices.Contains(o.Figures, keyOf(x.family, x.name)) {
			continue
		}
		f, missing := x.read(used)
		if missing != nil {
			c.Missing = append(c.Missing, *missing)
			if len(o.Figures) > 0 {
				errs = append(errs, fmt.Errorf("%s %w: %s not have it%s", keyOf(x.family, x.name), ErrFigure, doNot(missing.Runs), missing.samples()))
			}
			continue
		}
		family := x.family
		if len(o.Figures) > 0 {
			family = "" // one correction over all
		}
		if families[family] == nil {
			order = append(order, family)
		}
		families[family] = append(families[family], f)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range c.Sides[1:] {
		c.Sides[i+1].Tally = new(Tally)
	}
	c.Figures = []Figure{}
	for _, name := range order {
		decide(families[name], o)
		for _, f := range families[name] {
			c.Figures = append(c.Figures, *f)
			for i, v := range f.Sides[1:] {
				c.Sides[i+1].Tally.add(v.Change.Verdict)
			}
		}
	}
	return nil
}

// Key is the name by which a user chooses the figure, such as e2e.p99 or received.rate; the same as in
// objectives.
func (f *Figure) Key() string { return keyOf(f.Family, f.Name) }

func keyOf(family, name string) string {
	switch family {
	case familyThroughput:
		return name + ".rate"
	case familyOutcomes:
		return name
	case familyResources:
		return strings.NewReplacer("'s ", ".", "' ", ".").Replace(name)
	}
	return strings.TrimSuffix(family, ".response") + "." + name
}

// chosen refuses keys that such runs do not have.
func chosen(keys []string, all []reading) error {
	var allowed []string
	for _, x := range all {
		allowed = append(allowed, keyOf(x.family, x.name))
	}
	var errs []error
	for _, k := range keys {
		if !slices.Contains(allowed, k) {
			errs = append(errs, fmt.Errorf("%q %w: these runs do not have it (%s)", k, ErrFigure, strings.Join(allowed, ", ")))
		}
	}
	return errors.Join(errs...)
}

func doNot(runs int) string {
	if runs == 1 {
		return "1 run does"
	}
	return counted(runs, "run") + " do"
}

// samples says that too few samples are the reason, if so.
func (m *Missing) samples() string {
	if m.Needs == 0 {
		return ""
	}
	return fmt.Sprintf(" (it needs %d samples, and a run has %d)", m.Needs, m.Has)
}

// read reads a figure from every run. It is missing if any run lacks it.
func (x reading) read(used [][]Run) (*Figure, *Missing) {
	f := &Figure{Family: x.family, Name: x.name, Unit: x.unit, Better: "lower"}
	if x.higher {
		f.Better = "higher"
	}
	var missing *Missing
	for i, runs := range used {
		v := Values{Side: letter(i)}
		flags := make([]bool, len(runs))
		for n, r := range runs {
			value, is := x.of(r.Result)
			if is.no {
				if missing == nil {
					missing = &Missing{Family: x.family, Name: x.name, Needs: is.needs, Has: is.hasIt}
				}
				missing.Runs++
				if is.needs == 0 {
					missing.Needs, missing.Has = 0, 0
				} else if missing.Needs > 0 {
					missing.Has = min(missing.Has, is.hasIt)
				}
			}
			v.Runs = append(v.Runs, value)
			flags[n] = is.atLeast
			if is.marked {
				v.Marked++
			}
		}
		if slices.Contains(flags, true) {
			v.AtLeast = flags
		}
		median, _, _ := result.Spread(v.Values())
		v.Median, v.MedianAtLeast = median.Least()
		f.Sides = append(f.Sides, v)
	}
	return f, missing
}
