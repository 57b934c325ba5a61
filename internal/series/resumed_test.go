package series

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/nats"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/measure"
)

// A stopper is an observer that stops what it observes once messages flow.
type stopper struct{ stop func() }

func (stopper) Doing(string)                 {}
func (stopper) Note(string, ...any)          {}
func (stopper) Event(int64, string, string)  {}
func (s stopper) Interval(*measure.Interval) { s.stop() }
func (stopper) Complain(error)               {}
func (stopper) Done()                        {}

// stopping has the n-th run stopped, by closing the returned channel.
func stopping(o *Options, n int) <-chan struct{} {
	stop := make(chan struct{})
	o.Observe = func(r Run) Observer {
		over := false
		return stopper{func() {
			if r.Number == n && !over {
				over = true
				close(stop)
			}
		}}
	}
	return stop
}

const searched = `{weir: 1, system: {driver: chan}, load: {rate: 100/s}, warmup: 0s, measure: 300ms, slo: [lost == 0], search: {most: 200/s, retests: 0}}`

// The interrupted run says nothing about its rate, and is repeated beside the existing ones.
func TestSearchResumesWhereItStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Dir: dir, Out: "o"}
	in := inputs(t, dir, strings.ReplaceAll(searched, "300ms", "30s"))
	stop := stopping(&o, 1)
	p := must.Get(NewSearch(in))(t)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("planning left %v", left)
	}
	s := must.Get(New(o, p))(t)
	for o := range s.All(t.Context(), stop) {
		if o.Probed != nil || !o.Interrupted() {
			t.Errorf("a run that was stopped says %+v; interrupted: %v", o.Probed, o.Interrupted())
		}
	}
	if s.Err() != nil || len(p.Report.Probes) != 0 {
		t.Fatalf("after the stop: %v, %+v", s.Err(), p.Report.Probes)
	}
	// What was cut short is long: it is shortened for the rest of this test.
	path := filepath.Join(dir, "o", "scenario.yaml")
	text := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "30s", "300ms")), 0o600))
	was := must.Get(ReadSearch(dir, "o"))(t)
	o = Options{Dir: dir, Out: "o"}
	p = must.Get(ResumeSearch(o, inputs(t, dir, ""), was))(t)
	s = must.Get(New(o, p))(t)
	n := 0
	for o := range s.All(t.Context(), nil) {
		if n++; o.Probed == nil {
			t.Fatalf("run %d: %v", n, o.Wrong())
		}
	}
	was, err := ReadSearch(dir, "o")
	if err != nil || n == 0 || len(was.Probes) != n || was.Probes[0].Dir != "001-100-2" || was.Answer.Stop == capacity.Unfinished {
		t.Errorf("after %d runs: %+v, %v", n, was, err)
	}
}

// Further runs would be lost.
func TestSeriesStopsOnWriteError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := must.Get(New(Options{Dir: dir, Out: "o"}, must.Get(NewSearch(inputs(t, dir, searched)))(t)))(t)
	must.Do(t, os.Mkdir(filepath.Join(dir, "o", "capacity.json.new"), 0o700))
	n := 0
	for range s.All(t.Context(), nil) {
		n++
	}
	if err := s.Err(); n != 1 || !errors.Is(err, ErrWriting) || !strings.HasPrefix(err.Error(), "writing capacity.json: ") {
		t.Errorf("after %d runs: %v", n, err)
	}
}

// The error says what to change.
func TestSearchErrorNamesUserFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refusal := func(from, to string) string {
		_, err := NewSearch(inputs(t, dir, strings.Replace(searched, from, to, 1)))
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for _, tt := range []struct {
		from, to, want string
	}{
		{"rate: 100/s", "rate: max", "--rate: a search needs a rate to begin with"},
		{"slo: [lost == 0]", "slo: []", `--slo: is missing: a search needs an objective to keep (such as --slo "e2e.p99 <= 10ms")`},
		{"most: 200/s", "most: 10/s", `--most: "10/s" is not a rate from --rate on (100/s or more)`},
		{"retests: 0", "longest: 1ms", "--longest: 1ms is shorter than measure (300ms or more)"},
		{"warmup: 0s", "warmup: 0s, repeat: 2", ErrSeveral.Error()},
	} {
		if got := refusal(tt.from, tt.to); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q; want %q", tt.to, got, tt.want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("refusing left %v", left)
	}
}

func TestInvalidSearchPlanDoesNotResume(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *capacity.Planned){
		"more probes than may be": func(p *capacity.Planned) { p.Probes = capacity.MostProbes + 1 },
		"no number to vary over":  func(p *capacity.Planned) { p.Over = &capacity.Varied{Of: "consumers"} },
	} {
		plan := capacity.Planned{FromPerS: 1, Precision: 1, Probes: 1}
		change(&plan)
		_, err := ResumeSearch(Options{Dir: t.TempDir(), Out: "o"}, scenario.Inputs{}, &capacity.Report{Plan: plan})
		if wrong := (*KeptError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "its plan is out of bounds") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Completed runs stay, and the interrupted run is not in the table.
func TestSuiteResumesWhereItStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := func(long string) []byte {
		return []byte(`{weir-suite: 1, name: own, title: x, source: y, systems: [{driver: chan}], run: {warmup: 0s}, rows: [
  {name: short, run: {measure: 100ms}, figures: [sent]},
  {name: long, run: {measure: ` + long + `}, figures: [sent]}, {name: last, run: {measure: 100ms}, figures: [sent]}]}`)
	}
	of := must.Get(suite.Parse("own.yaml", text("60s")))(t)
	o := Options{Dir: dir, Out: "o"}
	stop := stopping(&o, 2)
	x := must.Get(NewSuite(inputs(t, dir, ""), of, suite.Choice{Scale: 1}))(t)
	s := must.Get(New(o, x))(t)
	var lines []bool
	for row := range s.All(t.Context(), stop) {
		lines = append(lines, row.Line != nil)
	}
	if len(lines) != 2 || !lines[0] || lines[1] || x.Done() != 1 || s.Err() != nil {
		t.Fatalf("runs in the table: %v, %d done: %v", lines, x.Done(), s.Err())
	}
	// What was cut short is long: its row is shortened for the rest of this test.
	must.Do(t, os.WriteFile(filepath.Join(dir, "o", suite.File), text("100ms"), 0o600))
	was, _ := must.Two(ReadSuite(dir, "o"))(t)
	var names []string
	o = Options{Dir: dir, Out: "o"}
	x = must.Get(ResumeSuite(o, inputs(t, dir, ""), was))(t)
	s = must.Get(New(o, x))(t)
	for row := range s.All(t.Context(), nil) {
		names = append(names, filepath.Base(row.Dir))
	}
	if got := strings.Join(names, " "); got != "long-chan-2 last-chan" || x.Done() != 3 {
		t.Errorf("it did %s; %d are done", got, x.Done())
	}
}

// The error says what is missing or wrong there.
func TestFolderOfAnotherPlanRejected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadSearch(dir, ".")
	if err == nil || err.Error() != ". has no capacity.json (the folder of a search)" {
		t.Error(err)
	}
	for name, content := range map[string]string{
		"suite.json":    `{"schema": "weir.suite/v9", "rows": {}}`, // of another shape, too
		"capacity.json": `{"schema": "weir.capacity/v2", "plan": []}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if _, err = ReadSearch(dir, "."); err == nil || err.Error() != `reading capacity.json: schema "weir.capacity/v2" is not known (weir.capacity/v1)` {
		t.Error(err)
	}
	if _, _, err = ReadSuite(dir, "."); err == nil || err.Error() != `reading suite.json: schema "weir.suite/v9" is not known (weir.suite/v1)` {
		t.Error(err)
	}
}

// Probes continue until objectives are decided, but for those that only the end of a run decides.
func TestSystemTimeProbesHaveOneLength(t *testing.T) {
	t.Parallel()
	for slo, longest := range map[string]float64{
		"e2e.p99 <= 1s": 120, "lost == 0": 0, "e2e.system.p99 <= 1s": 0, "e2e.p99 <= 1s, e2e.system.p99 <= 1s": 0,
	} {
		in := inputs(t, t.TempDir(), "{weir: 1, system: {driver: nats}, load: {rate: 100/s}, slo: ["+slo+"]}")
		registry := must.Get(driver.NewRegistry(nats.Definition()))(t)
		in.Drivers = registry
		p := must.Get(NewSearch(in))(t)
		if got := p.Report.Plan.LongestS; got != longest {
			t.Errorf("%s: probes of up to %v s; want %v", slo, got, longest)
		}
	}
}
