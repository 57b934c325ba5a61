package series

import (
	"cmp"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A task is one run of a series.
type task struct {
	scenario *scenario.Scenario
	folder   string // its name in the parent folder; "" for the only one
	series   string // name of the scenario that it is a repeat of; "" where it is done once
	repeat   int    // from 1
	place    int    // of the scenario among those of the series, from 1; 0 of a single run
}

// tasks lays scenarios out, each as often as it shall be repeated. A single run's has
// no folder. With earlier runs, which may be nil, each has one: numbers and repeats go on.
func tasks(scenarios []*scenario.Scenario, earlier *Earlier) []task {
	switch {
	case earlier == nil && len(scenarios) == 1 && scenarios[0].Repeat <= 1:
		return []task{{scenario: scenarios[0]}}
	case earlier == nil:
		earlier = new(Earlier)
	}
	var all []task
	for _, x := range order(scenarios, earlier.number) {
		s := scenarios[x.run]
		one := *s
		one.Repeat = 1
		t := task{scenario: &one, place: x.run + 1}
		if before := earlier.repeats[s.Name]; s.Repeat > 1 || before > 0 {
			t.series, t.repeat = s.Name, before+x.repeat
			one.Name = numbered(s.Name, t.repeat)
		}
		all = append(all, t)
	}
	digits := cmp.Or(earlier.digits, max(2, len(fmt.Sprint(len(all)))))
	for i := range all {
		all[i].folder = fmt.Sprintf("%0*d-%s", digits, earlier.number+i+1, all[i].scenario.Name)
	}
	return all
}

// round lays scenarios out once, after those tasks, as tasks does.
func round(scenarios []*scenario.Scenario, earlier *Earlier, done []task) []task {
	before := &Earlier{repeats: map[string]int{}, number: len(done), digits: 2}
	if earlier != nil {
		before.number, before.digits = earlier.number+len(done), earlier.digits
		maps.Copy(before.repeats, earlier.repeats)
	} else if len(done) > 0 {
		before.digits = len(result.FolderNumber(done[0].folder))
	}
	once := make([]*scenario.Scenario, len(scenarios))
	for i, s := range scenarios {
		one := *s
		one.Repeat, once[i] = 1, &one
		n := 0
		for _, t := range done {
			if t.place == i+1 {
				n++
			}
		}
		before.repeats[s.Name] += n
	}
	return tasks(once, before)
}

// A turn is one run of a series: a scenario, and which repeat of it.
type turn struct{ run, repeat int }

// order is that in which scenarios are run. Without repeats it is the file's.
// With them each round has every scenario that is still to be done once, in an
// order of its own: what changes on the host while a series runs, its heat, its
// disk, its neighbours, then meets all scenarios alike, and none always follows
// the same other. So it is where runs were done earlier. The order follows from the
// first scenario's seed, and from how many those were.
func order(runs []*scenario.Scenario, earlier int) []turn {
	rounds := 0
	for _, r := range runs {
		rounds = max(rounds, r.Repeat, 1)
	}
	dice := mathrand.New(mathrand.NewPCG(runs[0].Seed, uint64(len(runs)+earlier)))
	var out []turn
	for n := range rounds {
		var round []turn
		for i, r := range runs {
			if n < max(1, r.Repeat) {
				round = append(round, turn{i, n + 1})
			}
		}
		if rounds > 1 || earlier > 0 {
			dice.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		out = append(out, round...)
	}
	return out
}

// longestName is that of a scenario's name.
const longestName = 100

// numbered is the name of the n-th repeat.
func numbered(name string, n int) string {
	suffix := fmt.Sprintf("-r%d", n)
	return name[:min(len(name), longestName-len(suffix))] + suffix
}

// suiteName is the name of several runs: that of their file.
func suiteName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name, "-."); name == "" || file == "" {
		return "runs"
	}
	return name[:min(len(name), longestName)]
}
