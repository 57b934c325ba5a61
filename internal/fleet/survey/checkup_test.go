package survey

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
)

// TestSurveyFindsInvalidatingProblems: each kind of fault is found by its name, on the agents
// that have it, and nothing is on those that have none.
func TestSurveyFindsInvalidatingProblems(t *testing.T) {
	well := func(name string) Seen {
		return Seen{
			About:    protocol.About{Name: name, Instance: name, Version: "v1", Host: "h-" + name, Boot: "boot-" + name, Cores: 8, MemoryB: 8 << 30},
			Clock:    Reading{Known: true, OffsetNS: 5, BoundNS: int64(100 * time.Microsecond)},
			Findings: []host.Finding{{Name: "cores", Health: host.Healthy, Found: "8 cores"}, {Name: "turbo", Health: host.Unknown}},
		}
	}
	both := func(change func(a, b *Seen)) []Seen {
		all := []Seen{well("a"), well("b")}
		change(&all[0], &all[1])
		return all
	}
	for _, tt := range []struct {
		name   string
		agents []Seen
		want   []string // name health agents
	}{
		{"nothing", both(func(_, _ *Seen) {}), nil},
		{"another version", both(func(_, b *Seen) { b.Version = "v2" }), []string{"version bad [b]"}},
		{"one name twice", both(func(_, b *Seen) { b.Name = "a" }), []string{"name bad [a]"}},
		{"one machine", both(func(a, b *Seen) { b.Boot = a.Boot }), []string{"machine warn [a b]"}},
		{"no machine known", both(func(a, b *Seen) { a.Boot, b.Boot = "", "" }), nil},
		{"a clock that is hardly known", both(func(a, _ *Seen) { a.Clock.BoundNS = int64(2 * time.Millisecond) }), []string{"clock warn [a]"}},
		{"a clock that is not known", both(func(a, _ *Seen) { a.Clock = Reading{} }), []string{"clock bad [a]"}},
		{"this host's own clock", both(func(a, _ *Seen) { a.Clock = Reading{Same: true} }), nil},
		{"one core", both(func(a, b *Seen) { a.Cores, b.Cores = 1, 1 }), []string{"cores warn [a b]"}},
		{"one core, which was told", both(func(a, _ *Seen) {
			a.Cores, a.Findings = 1, []host.Finding{{Name: "cores", Health: host.Bad, Found: "one"}}
		}), []string{"cores bad [a]"}},
		{"little memory", both(func(a, _ *Seen) { a.MemoryB = 1<<30 - 1 }), []string{"memory warn [a]"}},
		{"busy", both(func(a, _ *Seen) { a.Busy, a.Unasked = "r", "busy" }), []string{"busy bad [a]"}},
		{"not asked", both(func(a, _ *Seen) { a.Unasked, a.Findings = "it did not answer", nil }), []string{"host not known [a]"}},
		{"gone", both(func(a, _ *Seen) { *a = Seen{About: protocol.About{Name: "a", Version: "v0"}, Gone: true, Unasked: "x"} }), []string{"missing bad [a]"}},
		{"what a machine has is said once", both(func(a, b *Seen) {
			b.Boot = a.Boot
			a.Findings = []host.Finding{{Name: "steal", Health: host.Bad, Found: "9 %"}}
			b.Findings = []host.Finding{{Name: "steal", Health: host.Bad, Found: "10 %"}}
		}), []string{"machine warn [a b]", "steal bad [a b]"}},
		{"chrony says otherwise", both(func(a, _ *Seen) {
			a.Daemon = host.Daemon{Name: "chrony", Source: "x", AheadNS: int64(time.Second), BoundNS: 1000}
		}), []string{"time synchronisation warn [a]"}},
	} {
		s := Sight{Agents: tt.agents, Daemon: host.Daemon{Name: "chrony", Source: "y", BoundNS: 1000}}
		var got []string
		for _, c := range s.Check("v1") {
			got = append(got, fmt.Sprintf("%s %s %v", c.Name, c.Health, c.Agents))
			if c.Found == "" || c.Do == "" && c.Why != "" {
				t.Errorf("%s: %+v says not what to do", tt.name, c)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q; want %q", tt.name, got, tt.want)
		}
	}
	two := Sight{Coordinators: []Coordinator{{Session: "s1", Host: "h1"}, {Session: "s2", Host: "h2"}}}
	if all := two.Check("v1"); len(all) != 1 || all[0].Name != "coordinators" {
		t.Errorf("two coordinators: %+v", all)
	}
}
