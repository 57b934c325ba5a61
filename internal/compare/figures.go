package compare

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
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

// latencies are the distributions of all messages that can be compared.
func latencies() []measure.Kind {
	return []measure.Kind{
		measure.SendResponse, measure.SendService, measure.E2EResponse, measure.E2EService, measure.RTTResponse, measure.RTTService,
	}
}

// dists returns the families of distributions that can be compared: the latencies, and of send and e2e what
// the network and the system took of sampled messages.
func dists() [numDists]string {
	var out [numDists]string
	for i, k := range latencies() {
		out[i] = k.String()
	}
	out[numDists-2], out[numDists-1] = judge.SystemName("send"), judge.SystemName("e2e")
	return out
}

// nameOf is the name of a family's distribution, as in objectives.
func nameOf(family string) string { return strings.TrimSuffix(family, ".response") }

// A Figure is one figure on all sides.
type Figure struct {
	Family string   `json:"family"` // send.response, e2e.system and so on, throughput, outcomes, resources
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
	higher             bool                                    // higher is better
	of                 func(*Record) (value float64, is known) // of one run
}

// known says how well a run's figure is known.
type known struct {
	no           bool // not at all
	atLeast      bool
	marked       bool   // cannot be quoted
	needs, hasIt uint64 // samples, if there are too few
}

// readings returns the figures of such runs.
func readings(runs []Run) []reading {
	every := func(has func(*Record) bool) bool {
		return !slices.ContainsFunc(runs, func(r Run) bool { return !has(r.Record) })
	}
	some := func(has func(*Record) bool) bool {
		return slices.ContainsFunc(runs, func(r Run) bool { return has(r.Record) })
	}
	var out []reading
	has := func(i int) func(*Record) bool { return func(r *Record) bool { return r.Dists[i] != nil } }
	all, latencies := dists(), len(latencies())
	for i := 0; i < latencies; i += 2 { // a response and its service
		switch {
		case every(has(i)):
			out = append(out, percentiles(all[i], i)...)
		case some(has(i + 1)): // a closed loop has no response
			out = append(out, percentiles(all[i+1], i+1)...)
		}
	}
	for i := latencies; i < numDists; i++ {
		if every(has(i)) {
			out = append(out, percentiles(all[i], i)...)
		}
	}
	for i, name := range [numRates]string{"sent", "confirmed", "received"} {
		has := func(r *Record) bool { return r.Rates[i] != nil && *r.Rates[i] > 0 }
		if some(has) && every(func(r *Record) bool { return r.Rates[i] != nil }) {
			out = append(out, reading{familyThroughput, name, UnitRate, true, func(r *Record) (float64, known) { return *r.Rates[i], known{} }})
		}
	}
	return append(append(out, outcomes(some)...), resources(some)...)
}

// percentiles returns those of a distribution. The maximum of a sample is none of the run.
func percentiles(family string, dist int) []reading {
	var out []reading
	for i, p := range tested() {
		if p < 100 || !judge.OfSystem(family) {
			out = append(out, reading{family, percentileName(p), UnitTime, false, func(r *Record) (float64, known) { return r.Dists[dist].at(i) }})
		}
	}
	return out
}

func percentileName(p float64) string {
	if p >= 100 {
		return "max"
	}
	return "p" + strconv.FormatFloat(p, 'f', -1, 64)
}

// outcomesOf returns the message counts of a run in the order of outcomeNames.
func outcomesOf(m *result.Messages) [numOutcomes]uint64 {
	return [...]uint64{
		m.Lost, m.Duplicated, m.Reordered, m.Corrupted, m.Misrouted, m.Unknown, m.Failed, m.Unconfirmed, m.Dropped, m.DeadLettered, m.Late, m.Pending,
	}
}

func outcomeNames() [numOutcomes]string {
	return [...]string{"lost", "duplicated", "reordered", "corrupted", "misrouted", "unknown", "failed", "unconfirmed", "dropped", "dead-lettered", "late", "pending"}
}

// outcomes returns the message counts, without those that no run has, except the ones that every reader
// expects.
func outcomes(some func(func(*Record) bool) bool) []reading {
	var out []reading
	for i, name := range outcomeNames() {
		always := slices.Contains([]string{"lost", "duplicated", "reordered", "failed"}, name)
		if always || some(func(r *Record) bool { return r.Outcomes[i] > 0 }) {
			out = append(out, reading{familyOutcomes, name, UnitMessages, false, func(r *Record) (float64, known) { return float64(r.Outcomes[i]), known{} }})
		}
	}
	return out
}

// resources returns what servers and weir used, if any run knows it.
func resources(some func(func(*Record) bool) bool) []reading {
	var out []reading
	for i, x := range [numResources]struct{ name, unit string }{{"servers' cpu", UnitCores}, {"servers' memory", UnitBytes}, {"weir's cpu", UnitCores}} {
		if some(func(r *Record) bool { return r.Resources[i] != nil }) {
			out = append(out, reading{familyResources, x.name, x.unit, false, func(r *Record) (float64, known) {
				v, ok := value(r.Resources[i])
				return v, known{no: !ok}
			}})
		}
	}
	return out
}

// resourcesOf returns the total use of the servers that weir started, and of weir with its client library, in
// the order of resources; nil: unknown.
func resourcesOf(r *result.Result) (out [numResources]*float64) {
	sum := func(add func(i int) (float64, bool)) *float64 {
		if r.Servers == nil || len(r.Servers.Processes) == 0 {
			return nil
		}
		total := 0.0
		for i := range r.Servers.Processes {
			v, ok := add(i)
			if !ok {
				return nil
			}
			total += v
		}
		return &total
	}
	out[0] = sum(func(i int) (float64, bool) { return value(r.Servers.Processes[i].Cores) })
	out[1] = sum(func(i int) (float64, bool) {
		n := r.Servers.Processes[i].RSSMaxBytes
		if n == nil {
			return 0, false
		}
		return float64(*n), true
	})
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
			return out
		}
	}
	if any {
		out[2] = &cores
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
	return nameOf(family) + "." + name
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
	return quantity.Plural(runs, "run") + " do"
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
			value, is := x.of(r.Record)
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
