package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/placement"
)

func TestPlacements(t *testing.T) {
	t.Parallel()
	a, b := placement.Selector{Name: "a"}, placement.Selector{Name: "b"}
	fast := placement.Selector{Labels: []placement.Label{{Key: "disk", Value: "ssd"}, {Key: "zone", Value: "x"}}}
	for name, tt := range map[string]struct {
		file  string
		flags []Override
		want  placement.Spec
		text  string // line in the resolved file
	}{
		"left out":                 {"weir: 1\n", nil, placement.Spec{}, ""},
		"paired":                   {"weir: 1\nplacement: paired\n", nil, placement.Spec{Kind: placement.Paired}, "placement: paired"},
		"split":                    {"", flags("placement=split"), placement.Spec{Kind: placement.Split}, "placement: split"},
		"lists":                    {"weir: 1\nplacement:\n  producers:\n  - a\n  - zone=x,disk=ssd\n  consumers: [b]\n", nil, placement.Spec{Producers: []placement.Selector{a, fast}, Consumers: []placement.Selector{b}}, `placement: {producers: [a, "disk=ssd,zone=x"], consumers: [b]}`},
		"one list":                 {"", flags("placement={consumers: [b, 'disk=ssd,zone=x']}"), placement.Spec{Consumers: []placement.Selector{b, fast}}, `placement: {consumers: [b, "disk=ssd,zone=x"]}`},
		"a number and a yes":       {"weir: 1\nplacement: {producers: [7, true, 'null']}\n", nil, placement.Spec{Producers: []placement.Selector{{Name: "7"}, {Name: "true"}, {Name: "null"}}}, `placement: {producers: [7, true, "null"]}`},
		"a flag over a list":       {"weir: 1\nplacement: {producers: [a]}\n", flags("placement=paired"), placement.Spec{Kind: placement.Paired}, "placement: paired"},
		"lists over a word":        {"weir: 1\nplacement: paired\n", flags("placement={producers: [a]}"), placement.Spec{Producers: []placement.Selector{a}}, "placement: {producers: [a]}"},
		"one of several scenarios": {"weir: 1\nplacement: {producers: [a]}\nscenarios:\n- placement: {consumers: [b]}\n", nil, placement.Spec{Producers: []placement.Selector{a}, Consumers: []placement.Selector{b}}, "placement: {producers: [a], consumers: [b]}"},
		"a word in a scenario":     {"weir: 1\nplacement: {producers: [a]}\nscenarios:\n- placement: paired\n", nil, placement.Spec{Kind: placement.Paired}, "placement: paired"},
		"of a matrix":              {"weir: 1\nmatrix: {placement: [{producers: [a]}]}\n", nil, placement.Spec{Producers: []placement.Selector{a}}, "placement: {producers: [a]}"},
		"producing by list":        {"weir: 1\nmode: produce\nplacement: {producers: [a]}\n", nil, placement.Spec{Producers: []placement.Selector{a}}, "placement: {producers: [a]}"},
		"a flag takes away the consumers of lists": {"weir: 1\nplacement: {producers: [a], consumers: [b]}\n", flags("mode=produce"), placement.Spec{Producers: []placement.Selector{a}}, "placement: {producers: [a]}"},
		"a flag takes away a list of consumers":    {"weir: 1\nplacement: {consumers: [b]}\n", flags("mode=produce"), placement.Spec{}, ""},
		"a flag takes away a pair":                 {"weir: 1\nplacement: paired\n", flags("mode=produce"), placement.Spec{}, ""},
		"a flag takes away the producers of lists": {
			"weir: 1\nsystem: {start: none}\nplacement: {producers: [a], consumers: [b]}\n", flags("mode=consume", "topology.names=[q]"),
			placement.Spec{Consumers: []placement.Selector{b}},
			"placement: {consumers: [b]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := must.Get(only(inputs(t, tt.file, tt.flags...)))(t)
			golden.Equal(t, tt.want, s.Placement, "")
			got := ""
			for line := range strings.Lines(string(s.YAML())) {
				if strings.HasPrefix(line, "placement") {
					got = strings.TrimSpace(line)
				}
			}
			if got != tt.text {
				t.Errorf("written %q, want %q", got, tt.text)
			}
			if diff := again(t, s, s.YAML()) + again(t, s, s.Explain()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidPlacements(t *testing.T) {
	t.Parallel()
	const allowed = "(paired, split, or lists such as {producers: [a, zone=b], consumers: [c]})"
	long := make([]string, maxSelectors+1)
	for i := range long {
		long[i] = fmt.Sprint("a", i)
	}
	for name, tt := range map[string]struct {
		file  string
		flags []Override
		want  string
	}{
		"no word":         {"weir: 1\nplacement: beside\n", nil, `f.yaml:2:12: placement: "beside" is not known ` + allowed},
		"a misspelt word": {"", flags("placement=pared"), `--placement: "pared" is not known, did you mean "paired"? ` + allowed},
		"a list":          {"weir: 1\nplacement: [a]\n", nil, "f.yaml:2:12: placement: is a list " + allowed},
		"nothing":         {"weir: 1\nplacement:\n", nil, "f.yaml:2:12: placement: is empty " + allowed},
		"an empty flag":   {"", flags("placement="), `--placement: "" is not known ` + allowed},
		"nobody":          {"weir: 1\nplacement: {}\n", nil, "f.yaml:2:1: placement: lists no agent " + allowed},
		"what is not placed": {
			"weir: 1\nplacement: {brokers: [a], system: b, consumer: [c]}\n", nil,
			"f.yaml:2:13: placement.brokers: unknown key (producers, consumers)\n" +
				"f.yaml:2:27: placement.system: unknown key (producers, consumers)\n" +
				`f.yaml:2:38: placement.consumer: unknown key, did you mean "consumers"? (producers, consumers)`,
		},
		"lists that are none": {
			"weir: 1\nplacement:\n  producers: a\n  consumers: []\n", nil,
			"f.yaml:3:14: placement.producers: is a single value (a list of agents, by name or by label, such as [a, zone=b])\n" +
				"f.yaml:4:14: placement.consumers: holds 0 agents (1 to 1024; left out it is all)",
		},
		"agents that are none": {
			"weir: 1\nplacement:\n  producers: [A b, zone=, [x]]\n  consumers: [c, c]\n", nil,
			"f.yaml:3:15: placement.producers[0]: \"A b\" selects no agent (an agent's name, 1 to 64 of a-z, 0-9 and -, or labels such as zone=a,disk=ssd)\n" +
				"f.yaml:3:20: placement.producers[1]: \"zone=\" selects no agent: \"zone=\" is not a label (KEY=VALUE, each 1 to 64 letters, digits, . _ -)\n" +
				"f.yaml:3:27: placement.producers[2]: is a list (an agent's name, or labels such as zone=a,disk=ssd)\n" +
				"f.yaml:4:18: placement.consumers[1]: c is given twice (once)",
		},
		"the same labels in another order": {
			"weir: 1\nplacement:\n  producers:\n  - zone=a,disk=ssd\n  - disk=ssd,zone=a\n", nil,
			"f.yaml:5:5: placement.producers[1]: disk=ssd,zone=a is given twice (once)",
		},
		"too many": {"", flags("placement={producers: [" + strings.Join(long, ", ") + "]}"), "--placement: placement.producers: holds 1025 agents (1 to 1024; left out it is all)"},
		"a pair of which one is missing": {
			"weir: 1\nmode: produce\nplacement: paired\n", nil,
			"f.yaml:3:12: placement: mode produce receives nothing, so placement cannot be paired (lists, or leave it out)",
		},
		"a driver without consumers": {
			"", flags("system.driver=sink", "placement=split"),
			"--placement: mode produce receives nothing, so placement cannot be split (lists, or leave it out)",
		},
		"consumers of mode produce": {
			"weir: 1\nmode: produce\nplacement: {consumers: [c]}\n", nil,
			"f.yaml:3:24: placement.consumers: mode produce receives nothing (leave it out)",
		},
		"producers of mode consume": {
			"weir: 1\nsystem: {start: none}\nmode: consume\ntopology: {names: [q]}\nplacement: {producers: [p]}\n", nil,
			"f.yaml:5:24: placement.producers: mode consume sends nothing (leave it out)",
		},
		"a process taken apart": {"", flags("system.driver=near", "placement=split"), "--placement: driver near works inside one process, and split makes two (leave it out)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(inputs(t, tt.file, tt.flags...))
			got := ""
			if err != nil {
				got = err.Error()
			}
			golden.Equal(t, strings.Split(tt.want, "\n"), strings.Split(got, "\n"), "faults")
		})
	}
}
