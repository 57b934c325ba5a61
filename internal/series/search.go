package series

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// ErrSeveral is wrapped if the arguments of a search make several runs.
var ErrSeveral = errors.New("searches with one scenario (leave out scenarios, matrix and repeat)")

// A Search is the plan of a search for the capacity: the runs of one search for each value of the varied
// key, and the curve's last.
type Search struct {
	Report *capacity.Report // the results so far

	// The scenarios of the searches: their runs differ only in rate and duration.
	scenarios []*scenario.Scenario
	in        scenario.Inputs
	probing   capacity.Probed // the current run
	resumed   bool
}

// NewSearch plans the search that a scenario asks for, from its rate on and with its objectives. It refuses
// what cannot be searched, and has no side effects.
func NewSearch(in scenario.Inputs) (*Search, error) {
	s := &Search{in: in}
	x, err := s.scenario()
	if err != nil {
		return nil, err
	}
	refused := func(path, format string, args ...any) (*Search, error) {
		return nil, fmt.Errorf("%s: %s", flag(path), fmt.Sprintf(format, args...))
	}
	s.Report = &capacity.Report{Schema: capacity.Schema, Probes: []capacity.Probed{}, Plan: searchPlan(x)}
	switch p := &s.Report.Plan; {
	case x.Load.Closed || x.Load.Rate == 0:
		return refused("load.rate", "a search needs a rate to begin with (a rate such as 1000/s)")
	case x.Mode == engine.Backlog || x.Mode == engine.Consume:
		return refused("mode", "a search needs a mode that sends at a rate (stream, produce, request)")
	case len(x.Objectives) == 0:
		return refused("slo", "is missing: a search needs an objective to keep (such as %s \"e2e.p99 <= 10ms\")", flag("slo"))
	case p.MostPerS > 0 && p.MostPerS < p.FromPerS:
		return refused("search.most", "%q is not a rate from %s on (%s or more)", x.Search.Most, flag("load.rate"), quantity.Rate(p.FromPerS))
	case x.Search.Longest > 0 && x.Search.Longest < x.Measure:
		return refused("search.longest", "%s is shorter than measure (%s or more)", quantity.Typed(x.Search.Longest), quantity.Typed(x.Measure))
	case x.Search.Over.Of != "" && x.Search.Curve > 0:
		return refused("search.curve", "is of one search, and %s makes several (leave one of them out)", flag("search.over"))
	}
	for _, o := range x.Objectives {
		s.Report.Promise = append(s.Report.Promise, o.String())
	}
	return s, s.vary()
}

// ResumeSearch resumes the search in the folder o.Out, which ReadSearch returned, by its own plan. A
// KeptError says why it cannot. It ignores file and variables of in. An override may be search.probes,
// which allows more probes.
func ResumeSearch(o Options, in scenario.Inputs, was *capacity.Report) (_ *Search, err error) {
	s := &Search{in: in, Report: was, resumed: true}
	p := &s.Report.Plan
	if !(p.FromPerS > 0 && p.Precision >= 0.01 && p.Precision <= 1 && p.Probes >= 1 && p.Probes <= capacity.MostProbes &&
		p.Retests >= 0 && p.Retests <= 10 && p.Curve >= 0 && p.Curve <= 20 && p.LongestS >= 0 && p.LongestS <= scenario.MaxDuration.Seconds()) || p.Over != nil && len(p.Over.Numbers) == 0 {
		return nil, &KeptError{fmt.Errorf("reading %s: its plan is out of bounds", filepath.Join(o.Out, capacity.File))}
	}
	s.in.File, s.in.Environ = filepath.Join(o.Out, result.FileScenario), nil
	s.in.Text, err = userfile.Read(o.Path(s.in.File), scenario.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &KeptError{fmt.Errorf("%s: there is no such file (the scenario of the search)", s.in.File)}
	case err != nil:
		return nil, &KeptError{fmt.Errorf("reading the scenario of the search: %w", err)}
	}
	if err := s.vary(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(in.Overrides, func(o scenario.Override) bool { return o.Path == "search.probes" }) {
		more := s.scenarios[0].Search.Probes
		if more <= p.Probes {
			return nil, fmt.Errorf("%s: %d is not more than this search may have (%d to %d)", flag("search.probes"), more, p.Probes+1, capacity.MostProbes)
		}
		p.Probes, s.Report.Curve = more, nil // the capacity may change the curve
	}
	return s, nil
}

// ReadSearch reads the results of the search in a folder. A relative folder is below root.
func ReadSearch(root, dir string) (*capacity.Report, error) {
	r, _, err := read(root, dir, capacity.File, "search", capacity.MostBytes, capacity.Parse)
	return r, err
}

// A Found is the search that a folder belongs to.
type Found struct {
	Dir     string // as it is to be shown
	Report  *capacity.Report
	Measure time.Duration // of its first probe; 0: unknown
}

// Searches returns the searches that the folders dirs belong to, for a report on their runs. A relative
// folder is below root.
func Searches(root string, dirs []string, entries []result.Entry) (all []Found, err error) {
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		if _, err := os.Stat(Options{Dir: root}.Path(filepath.Join(dir, capacity.File))); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r, err := ReadSearch(root, dir)
		if err != nil {
			return nil, err
		}
		f := Found{Dir: dir, Report: r}
		for _, x := range entries {
			if len(r.Probes) > 0 && x.Dir == filepath.Join(dir, r.Probes[0].Dir) {
				f.Measure = time.Duration(x.Result.Run.MeasureS * float64(time.Second))
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// Defaults of a search, if the scenario does not set them.
const (
	usualPrecision = 0.1
	usualRetests   = 2
	usualProbes    = 40
	usualLonger    = 12 // times measure, of the longest probe
)

// firstLook is how much of a run's window passes before the first check whether its objectives are decided.
const firstLook = 10 * time.Second

// searchPlan is the plan of the search that a scenario asks for.
func searchPlan(s *scenario.Scenario) capacity.Planned {
	p := capacity.Planned{
		FromPerS: s.Load.Rate.PerSecond(), MostPerS: s.Search.Most.PerSecond(), TargetPerS: s.Search.Target.PerSecond(),
		Precision: cmp.Or(s.Search.Precision, usualPrecision), Retests: usualRetests, Probes: cmp.Or(s.Search.Probes, usualProbes),
		Curve: s.Search.Curve, Seed: s.Seed,
	}
	if s.Search.Retests != nil {
		p.Retests = *s.Search.Retests
	}
	longest := s.Search.Longest
	if longest == 0 && s.Measure >= firstLook {
		longest = min(usualLonger*s.Measure, scenario.MaxDuration-s.WarmUp)
	}
	decidable := judge.WatchFor(s.Objectives, nil, 1) != nil && !slices.ContainsFunc(s.Objectives, judge.Objective.OfSystem) // those are judged at the end
	if longest > s.Measure && s.Measure > 0 && !s.Until && decidable {
		p.LongestS = longest.Seconds()
	}
	if s.Search.Over.Of != "" {
		p.Over = &capacity.Varied{Of: s.Search.Over.Of, Numbers: s.Search.Over.Values}
	}
	return p
}

// flag is the flag of a scenario key: "--rate" for load.rate.
func flag(path string) string { return "--" + path[strings.LastIndexByte(path, '.')+1:] }

// scenario resolves the scenario of a run with these overrides taking precedence.
func (s *Search) scenario(keys ...scenario.Override) (*scenario.Scenario, error) {
	in := s.in
	in.Overrides = slices.Clone(in.Overrides)
	for _, k := range keys {
		in.Overrides = append(slices.DeleteFunc(in.Overrides, func(o scenario.Override) bool { return o.Path == k.Path }), k)
	}
	all, err := scenario.Resolve(in)
	if err == nil && (len(all) != 1 || all[0].Repeat != 1) {
		err = ErrSeveral
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// varied returns the overrides for a value of the varied key.
func (s *Search) varied(n int) []scenario.Override {
	over := s.Report.Plan.Over
	if over == nil {
		return nil
	}
	return []scenario.Override{{Flag: flag("search.over"), Path: scenario.Over{Of: over.Of}.Path(), Value: strconv.Itoa(n)}}
}

// vary resolves the scenario for each value of the varied key.
func (s *Search) vary() error {
	for _, n := range s.Report.Numbers() {
		x, err := s.scenario(s.varied(n)...)
		if err != nil {
			return err
		}
		s.scenarios = append(s.scenarios, x)
	}
	return nil
}

// Scenarios returns the scenarios of the searches, each once.
func (s *Search) Scenarios() []*scenario.Scenario { return s.scenarios }

// begin makes the folder of a new search, and writes its plan.
func (s *Search) begin(in *Series) error {
	if s.resumed {
		in.reopen(in.o.Out)
		return s.store(in)
	}
	x, err := s.scenario()
	if err == nil {
		err = in.makeFolder("capacity")
	}
	if err == nil {
		err = in.write(result.FileScenario, x.YAML())
	}
	if err == nil {
		err = s.store(in)
	}
	return err
}

// store writes capacity.json.
func (s *Search) store(in *Series) error {
	s.Report.Sum()
	return in.document(capacity.File, s.Report)
}

// next chooses the next run from the results so far.
func (s *Search) next() (*task, error) {
	next, more := s.Report.Next()
	if !more {
		return nil, nil
	}
	rate := strconv.FormatFloat(next.RatePerS, 'f', -1, 64) + "/s"
	keys := append(s.varied(next.N), scenario.Override{Flag: flag("load.rate"), Path: "load.rate", Value: rate})
	if l := s.Report.Plan.LongestS; l > 0 && next.Purpose != capacity.Curving {
		longest := time.Duration(l * float64(time.Second)).String()
		keys = append(keys, scenario.Override{Flag: flag("search.longest"), Path: "measure", Value: longest},
			scenario.Override{Flag: flag("search.longest"), Path: "until_decided", Value: "yes"})
	}
	x, err := s.scenario(keys...)
	if err != nil {
		return nil, err
	}
	x.Search = scenario.Search{} // lets weir run repeat the run's file
	s.probing = next
	return &task{scenario: x, folder: next.Dir, number: len(s.Report.Probes) + len(s.Report.Curve) + 1}, nil
}

// add handles a finished run. If it was interrupted, has no figures, or failed other than by its rate, it
// does not count and the search ends.
func (s *Search) add(in *Series, o *Outcome) (counts bool, err error) {
	if o.Result == nil || o.Interrupted() || o.Err != nil || o.Accounting != nil || o.Written != nil || o.Gone != nil {
		return false, nil
	}
	p := s.probing
	p.Dir = filepath.Base(o.Dir)
	p.Measured(o.Result, o.Broken)
	o.Probed = &p
	s.Report.Add(p)
	return true, s.store(in)
}
