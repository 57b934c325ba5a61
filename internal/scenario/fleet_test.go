package scenario

import (
	"strings"
	"testing"
)

func TestAgentsCountTogether(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]Topology{
		"fleet: {agents: 3, producers: 5}":                     {Producers: 15, Consumers: 1},
		"fleet: {agents: 3, producers: 5, consumers: 2}":       {Producers: 15, Consumers: 6},
		"fleet: {agents: 3}\ntopology: {producers: 4}":         {Producers: 4, Consumers: 1},
		"mode: produce\nfleet: {agents: 2, producers: 5}":      {Producers: 10, Consumers: 1},
		"matrix: {fleet.agents: [2], fleet.producers: [1, 5]}": {Producers: 10, Consumers: 1},
	} {
		runs, err := Resolve(inputs(t, "weir: 1\n"+file+"\n"))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		s := runs[len(runs)-1]
		if got := s.Topology; got.Producers != want.Producers || got.Consumers != want.Consumers {
			t.Errorf("%s: %d producers and %d consumers; want %d and %d", file, got.Producers, got.Consumers, want.Producers, want.Consumers)
		}
		again, err := Resolve(inputs(t, string(s.YAML())))
		if err != nil || again[0].Topology.Producers != s.Topology.Producers || again[0].Topology.Consumers != s.Topology.Consumers || again[0].Fleet != s.Fleet {
			t.Errorf("%s, written out and read again: %v\n%s", file, err, s.YAML())
		}
	}
}

func TestFlagOverridesPerAgentCounts(t *testing.T) {
	t.Parallel()
	runs, err := Resolve(inputs(t, "weir: 1\nfleet: {agents: 3, producers: 5}\n", flags("topology.producers=2")...))
	if err != nil || runs[0].Topology.Producers != 2 || runs[0].Fleet.Producers != 0 {
		t.Errorf("%v, %+v; want the flag's two producers", err, runs)
	}
	runs, err = Resolve(inputs(t, "weir: 1\nfleet: {agents: 3}\ntopology: {producers: 2}\n", flags("fleet.producers=4")...))
	if err != nil || runs[0].Topology.Producers != 12 {
		t.Errorf("%v, %+v; want the flag's twelve producers", err, runs)
	}
}

func TestInvalidAgentCountsAreRejected(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"fleet: {producers: 5}": "f.yaml:2:20: fleet.producers: needs fleet.agents",
		"fleet: {agents: 2, producers: 5}\ntopology: {producers: 5}":                                     "fleet.producers: excludes topology.producers",
		"fleet: {agents: 500, producers: 5000}":                                                          "fleet.producers: makes 2500000 with 500 agents",
		"fleet: {agents: 0}":                                                                             "fleet.agents: 0 ",
		"matrix: {fleet.producers: [1, 2]}\ntopology: {producers: 5}":                                    "fleet.producers",
		"mode: consume\nfleet: {agents: 1, producers: 1}\nsystem: {start: none}\ntopology: {names: [a]}": "fleet.producers: ",
	} {
		if _, err := Resolve(inputs(t, "weir: 1\n"+file+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", file, err, want)
		}
	}
}
