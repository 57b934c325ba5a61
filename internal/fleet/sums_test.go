package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// totals reads a log's sums by their tags.
func totals(t *testing.T, dir string) map[string]*measure.Counts {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(dir, result.FileIntervals)))(t)
	defer func() { _ = f.Close() }()
	return must.Get(result.Totals(f))(t)
}

// buckets are the counts with the extremes that a log keeps: those of buckets.
func buckets(c *measure.Counts) *measure.Counts { return measure.FromBuckets(c.Buckets()) }

// The coordinator's totals, its files, and the sum of the agents' own files are identical in every bucket
// of every distribution.
func TestRunEqualsSumOfAgentFiles(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	m.late = 3 * time.Millisecond
	m.plants = true
	own := t.TempDir()
	w := fleetOf(t, 3, drivers, func(a *agent.Agent) { a.Dir = own })
	r := runOf(t, drivers, "run", `
topology: {producers: 6, consumers: 6, subscriptions: 2}
load: {rate: 2000/s, arrival: poisson}
warmup: 500ms
measure: 3s`+common)
	dir := filepath.Join(t.TempDir(), "run")
	f := must.Get(result.Create(dir))(t)
	must.Do(t, f.StartIntervals(time.Now(), ownVersion))
	lines := 0
	r.Config.OnInterval = func(iv *measure.Interval) {
		lines++
		if err := f.AppendInterval(iv); err != nil {
			t.Error(err)
		}
	}
	done := w.do(t, r)
	must.Do(t, f.Close())
	sums := map[string]*measure.Counts{}
	for _, a := range done.Agents {
		for tag, c := range totals(t, filepath.Join(own, "run-"+a.Name)) {
			if sums[tag] == nil {
				sums[tag] = new(measure.Counts)
			}
			sums[tag].Merge(c)
		}
	}
	written := totals(t, dir)
	if len(sums) != len(written) || len(sums) < 8 {
		t.Errorf("the agents wrote %d distributions, the run has %d", len(sums), len(written))
	}
	each(&done.Raw.Snapshot, func(tag string, c *measure.Counts) {
		want := sums[tag]
		if want == nil {
			want = new(measure.Counts)
		}
		fleettest.Same(t, tag+", as the coordinator has it,", buckets(c), want)
		if got := written[tag]; got != nil {
			fleettest.Same(t, tag+", as the coordinator wrote it,", got, want)
		} else if want.Total() > 0 {
			t.Errorf("%s: the coordinator wrote none, want %d values", tag, want.Total())
		}
	})
	// And the counters, the window and what is known of each host are those of the parts.
	var parts measure.Snapshot
	for _, p := range done.Raw.Workers {
		parts.Merge(&p.Snapshot)
	}
	for p := range measure.NumPhases {
		fleettest.Same(t, "stalls", &done.Raw.Snapshot.Kinds[measure.Hiccups][p], &parts.Kinds[measure.Hiccups][p])
	}
	if parts.Counters != done.Raw.Snapshot.Counters || parts.Window != done.Raw.Snapshot.Window {
		t.Errorf("counters %+v and window %+v, want %+v and %+v", done.Raw.Snapshot.Counters, done.Raw.Snapshot.Window, parts.Counters, parts.Window)
	}
	// A window this short is read every 50 ms; parts that come late have intervals of their own.
	if lines < 4 || lines > 3*20*8 {
		t.Errorf("%d intervals, want 20 a second of 3.5, or some more", lines)
	}
}

func each(s *measure.Snapshot, visit func(tag string, c *measure.Counts)) {
	for k := range s.Kinds {
		for p := range s.Kinds[k] {
			visit(result.Tag(measure.Kind(k), measure.Phase(p)), &s.Kinds[k][p])
		}
	}
}

// Planted faults are counted identically by one process that sees everything and by several that each see a
// part.
func TestFaultCountsMatchSingleProcess(t *testing.T) {
	t.Parallel()
	const apart = "placement: {producers: [a], consumers: [b, c]}\n"
	for _, how := range []struct{ name, topology, placement string }{
		{"a consumer each", "{producers: 3, consumers: 3}", ""},
		{"a subscription shared by two, sent by another", "{producers: 3, consumers: 4}", apart},
		{"two subscriptions", "{producers: 4, consumers: 6, subscriptions: 2}", ""},
		{"several destinations, sent by another", "{producers: 4, consumers: 8, destinations: 2, subscriptions: 2}", apart},
	} {
		yaml := fmt.Sprintf("topology: %s\nload: {rate: 1200/s}\nwarmup: 200ms\nmeasure: 800ms%s", how.topology, common)
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			m, drivers := memoryDrivers(t)
			m.plants = true
			// whole returns a run that sent everything due, and its planted faults. If a late host leaves
			// messages unsent, other faults are planted: the run is repeated.
			whole := func(name, yaml string, do func(*Run) *engine.Raw) (*engine.Raw, planted) {
				for try := range 5 {
					raw := do(runOf(t, drivers, fmt.Sprint(name, "-", try), yaml))
					count := m.count
					m.marks()
					if raw.All.Unsent == 0 {
						return raw, count
					}
					t.Logf("%s: the end left %d messages unsent", name, raw.All.Unsent)
				}
				t.Fatalf("%s: no run of five sent all that was due", name)
				return nil, planted{}
			}
			counted := func(what string, raw *engine.Raw, c planted) {
				x := raw.All
				got := planted{x.Confirmed, x.Failed, x.Delivered, x.Lost, x.Corrupted, x.Duplicated, x.Redelivered, x.Reordered, x.Foreign, x.FailedDelivered}
				if got != c || x.Pending != 0 {
					t.Errorf("%s: %+v and %d pending, want %+v", what, got, x.Pending, c)
				}
			}
			one, truth := whole("one", yaml, func(r *Run) *engine.Raw { return here(t, r, 1) })
			counted("one", one, truth)
			w := fleetOf(t, 3, drivers)
			for name, do := range map[string]func(*Run) *engine.Raw{
				"together": func(r *Run) *engine.Raw { return here(t, r, 3) },
				"fleet":    func(r *Run) *engine.Raw { return w.do(t, r).Raw },
			} {
				many, made := whole(name, yaml+how.placement, do)
				counted(name, many, truth)
				if made != truth {
					t.Errorf("%s: other faults were made: %+v, want %+v", name, made, truth)
				}
				if many.All != one.All || many.Measured != one.Measured {
					t.Errorf("%s: %+v, measured %+v; by one %+v, measured %+v", name, many.All, many.Measured, one.All, one.Measured)
				}
				if fmt.Sprint(many.Shares) != fmt.Sprint(one.Shares) {
					t.Errorf("subscriptions %s %+v, by one %+v", name, many.Shares, one.Shares)
				}
			}
		})
	}
}
