package driver

import (
	"testing"

	"github.com/weirmq/weir/internal/golden"
)

func TestAConditionHoldsForItsValues(t *testing.T) {
	for _, w := range []struct {
		condition, holds, fails []string
	}{
		{[]string{"always", "everysec"}, []string{"always", "everysec"}, []string{"no", ""}},
		{[]string{"yes"}, []string{"yes", "true"}, []string{"no", "false", "", "unknown"}},
		{[]string{"no"}, []string{"no", "false"}, []string{"yes", "true", ""}},
		{[]string{"2 to 5"}, []string{"2", "5"}, []string{"1", "6", "2 of 3", "-2"}},
		{[]string{"2 or more"}, []string{"2", "20"}, []string{"1", "all"}},
		{[]string{"0"}, []string{"0"}, []string{"-1", "1", ""}},
		{[]string{"majority"}, []string{"majority", "2 of 3", "3 of 3", "2 of 2"}, []string{"1 of 1", "1 of 2", "2 of 4", "4 of 3", "2"}},
		{[]string{"all"}, []string{"all", "2 of 2", "3 of 3"}, []string{"1 of 1", "2 of 3", "4 of 3"}},
		{[]string{"before 3.13"}, []string{"3.12.1", "3.9", "2"}, []string{"3.13", "3.13.0", "4.0", "unknown", ""}},
	} {
		c := Condition{Name: "x", Values: w.condition}
		for _, v := range w.holds {
			if !c.Holds(v) {
				t.Errorf("%s does not hold for %q", Conditions{c}, v)
			}
		}
		for _, v := range w.fails {
			if c.Holds(v) {
				t.Errorf("%s holds for %q", Conditions{c}, v)
			}
		}
	}
}

// Before a run, an unknown setting counts as the best possible.
func TestUnknownGuaranteeOfRunningSystemIsWeaker(t *testing.T) {
	received, replicated, persisted := Confirms{Guarantee: Received}, Confirms{Replicated, CopiesAll, StableNone}, Confirms{Persisted, CopiesAll, StableFsync}
	all := Condition{"in-sync", []string{"all"}}
	table := Confirmations{
		{Confirms: received},
		{Confirms: replicated, When: Conditions{all}},
		{Confirms: persisted, When: Conditions{all, {"sync", []string{"always"}}}},
	}
	for _, w := range []struct {
		known    Known
		is, most Confirms
	}{
		{nil, received, persisted},
		{Known{"in-sync": "2 of 2"}, replicated, persisted},
		{Known{"in-sync": "2 of 2", "sync": "never"}, replicated, replicated},
		{Known{"in-sync": "2 of 2", "sync": "always"}, persisted, persisted},
		{Known{"in-sync": "1 of 2", "sync": "always"}, received, received},
		{Known{"sync": "never"}, received, replicated},
	} {
		golden.Equal(t, []Confirms{w.is, w.most}, []Confirms{table.Of(w.known), table.AtMost(w.known)}, "%v", w.known)
	}
	if got, want := table[2].When.String(), "in-sync: all, sync: always"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
