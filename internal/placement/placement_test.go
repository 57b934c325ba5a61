package placement

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func TestSelectors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Selector{
		"a":                            {Name: "a"},
		"host-1":                       {Name: "host-1"},
		"7":                            {Name: "7"},
		strings.Repeat("n", 64):        {Name: strings.Repeat("n", 64)},
		"zone=a":                       {Labels: []Label{{"zone", "a"}}},
		"zone=a,disk=ssd":              {Labels: []Label{{"disk", "ssd"}, {"zone", "a"}}},
		"K8s.io-Rack_2=EU.west_1-b":    {Labels: []Label{{"K8s.io-Rack_2", "EU.west_1-b"}}},
		"c=3,b=2,a=1":                  {Labels: []Label{{"a", "1"}, {"b", "2"}, {"c", "3"}}},
		"x=" + strings.Repeat("v", 64): {Labels: []Label{{"x", strings.Repeat("v", 64)}}},
	} {
		got, err := ParseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		golden.Equal(t, want, got, "%q", text)
		again, err := ParseSelector(got.String())
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%q is written %q, which reads: %v\n%s", text, got, err, diff)
		}
	}
}

func TestSelectorMatchingNothing(t *testing.T) {
	t.Parallel()
	const name = `selects no agent (an agent's name, 1 to 64 of a-z, 0-9 and -, or labels such as zone=a,disk=ssd)`
	const label = ` is not a label (KEY=VALUE, each 1 to 64 letters, digits, . _ -)`
	for text, want := range map[string]string{
		"":                      `"" ` + name,
		"A":                     `"A" ` + name,
		"a b":                   `"a b" ` + name,
		"a.b":                   `"a.b" ` + name,
		strings.Repeat("n", 65): `"` + strings.Repeat("n", 65) + `" ` + name,
		"*":                     `"*" ` + name,
		"zone=":                 `"zone=" selects no agent: "zone="` + label,
		"=a":                    `"=a" selects no agent: "=a"` + label,
		"zone==a":               `"zone==a" selects no agent: "zone==a"` + label,
		"zone=a,":               `"zone=a," selects no agent: ""` + label,
		"zone=a, disk=ssd":      `"zone=a, disk=ssd" selects no agent: " disk=ssd"` + label,
		"a,b":                   `"a,b" selects no agent: "a"` + label,
		"a,zone=a":              `"a,zone=a" selects no agent: "a"` + label,
		"zone=ä":                `"zone=ä" selects no agent: "zone=ä"` + label,
		"zone=a,zone=b":         `"zone=a,zone=b" selects no agent: an agent has one zone (each key once)`,
	} {
		got, err := ParseSelector(text)
		if err == nil {
			t.Errorf("%q is %+v", text, got)
			continue
		}
		golden.Equal(t, want, err.Error(), "%q", text)
	}
}

func TestSelectorMatches(t *testing.T) {
	t.Parallel()
	agent := Agent{Name: "a", Labels: map[string]string{"zone": "x", "disk": "ssd"}}
	for text, want := range map[string]bool{
		"a": true, "b": false, "zone=x": true, "zone=y": false, "rack=x": false,
		"disk=ssd,zone=x": true, "zone=x,disk=hdd": false, "zone=x,rack=1": false,
	} {
		s := must.Get(ParseSelector(text))(t)
		if s.Selects(agent) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
	if (Selector{}).Selects(agent) {
		t.Error("an empty selector selects")
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, s := range []string{"a", "zone=a", "zone=a,disk=ssd", ",", "=", "a=b=c", "\xff", "b=1,a=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 2000 {
				t.Fatalf("nobody can read %q", err)
			}
			return
		}
		again, err := ParseSelector(s.String())
		if diff := cmp.Diff(s, again); err != nil || diff != "" {
			t.Fatalf("%q is written %q, which reads: %v\n%s", text, s, err, diff)
		}
	})
}

func TestLabelsOfAnAgent(t *testing.T) {
	t.Parallel()
	got, err := ParseLabels([]string{"zone=a", "disk=ssd"}, 2)
	if diff := cmp.Diff(map[string]string{"zone": "a", "disk": "ssd"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for want, texts := range map[string][]string{
		`"x" is not a label (KEY=VALUE, each 1 to 64 letters, digits, . _ -)`: {"x"},
		"k is given twice":     {"k=1", "k=2"},
		"3 labels (at most 2)": {"a=1", "b=2", "c=3"},
	} {
		if _, err := ParseLabels(texts, 2); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", texts, err, want)
		}
	}
}
