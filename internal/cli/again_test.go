package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// Runs a scenario, and the scenario it wrote: the same messages at the same instants, and the same file
// again.
func TestAWrittenScenarioIsTheSameRun(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const head = "weir: 1\nsystem: {driver: chan}\nwarmup: 100ms\n"
	for name, text := range map[string]string{
		"constant":            head + "measure: 200ms\nload: {rate: 997/s}\n",
		"poisson, many parts": head + "measure: 200ms\nseed: 42\nload: {rate: 3000/s, arrival: poisson}\ntopology: {producers: 7, destinations: 3, consumers: 3}\n",
		"gamma":               head + "messages: 300\nseed: 7\nload: {rate: 2000/s, arrival: {gamma: {cv: 2.5}}}\n",
		"a profile":           head + "load: {profile: [{rate: 500/s, for: 100ms}, {ramp: 500/s..3000/s, for: 200ms}, {burst: 50, every: 50ms, for: 100ms}]}\n",
		"a trace":             "weir: 1\nsystem: {driver: chan}\nwarmup: 0s\nload: {arrival: {trace: trace.txt}}\n",
		"batches":             "weir: 1\nsystem: {driver: noop}\nwarmup: 100ms\nmeasure: 200ms\nload: {rate: 2000/s, batch: 1..5}\n",
		"sizes":               head + "measure: 200ms\nseed: 3\nload: {rate: 2000/s}\nmessage: {size: [{size: 64B, weight: 3}, {size: 1KiB, weight: 1}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, b := range map[string]string{"run.yaml": text, "trace.txt": "0\n3ms\n3ms\n40ms\n"} {
				must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(b), 0o644))
			}
			sent := map[string]uint64{}
			for _, r := range []struct{ file, out string }{{"run.yaml", "a"}, {"a/scenario.yaml", "b"}} {
				code, _, stderr := do(t, World{Dir: dir, Drivers: all.Definitions()}, "run", r.file, "--out", r.out, "--quiet")
				if code != int(OK) && code != int(Invalid) { // a busy host may make it invalid
					t.Fatalf("%s: exit code %d; want 0 or 5\n%s", r.file, code, stderr)
				}
				saved := must.Get(result.Read(filepath.Join(dir, r.out)))(t)
				sent[r.out] = saved.Result.MessagesAll.Scheduled
			}
			first, second := resolved(t, dir, "a/scenario.yaml"), resolved(t, dir, "b/scenario.yaml")
			if diff := cmp.Diff(string(first.YAML()), string(second.YAML())); diff != "" {
				t.Errorf("the second run's scenario (-first +second):\n%s", diff)
			}
			want := messages(t, resolved(t, dir, "run.yaml"))
			golden.Equal(t, want, messages(t, first), "messages of the scenario and of what its run wrote")
			if n := uint64(len(want)); n == 0 || sent["a"] != n || sent["b"] != n {
				t.Errorf("scheduled %v; want %d", sent, n)
			}
		})
	}
}

func resolved(t *testing.T, dir, file string) *scenario.Scenario {
	t.Helper()
	registry := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	var text []byte
	if file != "" {
		text = must.Get(os.ReadFile(filepath.Join(dir, file)))(t)
	}
	runs := must.Get(scenario.Resolve(scenario.Inputs{
		File: file, Text: text, Drivers: registry, Dir: dir, ReadFile: os.ReadFile, Stat: os.Stat, ReadDir: os.ReadDir,
		Env: func(string) (string, bool) { return "", false },
	}))(t)
	return runs[0]
}

// A message is all that the schedule says of one.
type message struct {
	Index    uint64
	Due      int64
	Producer int
	Size     int
}

func messages(t *testing.T, s *scenario.Scenario) []message {
	t.Helper()
	plan := must.Get(schedule.New(s.Plan()))(t)
	var all []message
	for i, due := range plan.Due(schedule.Part{Index: 0, Count: 1}) {
		all = append(all, message{i, due, plan.Producer(i), plan.Size(i)})
	}
	return all
}
