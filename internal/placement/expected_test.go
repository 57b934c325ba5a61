package placement

import (
	"errors"
	"testing"

	"github.com/weirmq/weir/internal/golden"
)

func TestAgentsExpectedByPlacement(t *testing.T) {
	name := func(names ...string) (all []Selector) {
		for _, n := range names {
			all = append(all, Selector{Name: n})
		}
		return all
	}
	for what, tt := range map[string]struct {
		placement Spec
		n         int
		want      []Agent
		err       string
	}{
		"no lists":         {Spec{Kind: Paired}, 2, []Agent{{Name: "agent-1"}, {Name: "agent-2"}}, ""},
		"names, one twice": {Spec{Producers: name("a", "b"), Consumers: name("b")}, 2, []Agent{{Name: "a"}, {Name: "b"}}, ""},
		"fewer names":      {Spec{Producers: name("agent-1"), Consumers: name("b")}, 3, []Agent{{Name: "agent-1"}, {Name: "b"}, {Name: "agent-2"}}, ""},
		"more names":       {Spec{Producers: name("a"), Consumers: name("b", "c")}, 2, nil, "the placement names 3 agents (a, b, c), and 2 do the run (name fewer, or have more do it)"},
		"labels":           {Spec{Producers: []Selector{{Labels: []Label{{"zone", "a"}}}}, Consumers: name("b", "c")}, 1, nil, ""},
	} {
		got, err := Expected(tt.placement, tt.n)
		golden.Equal(t, tt.want, got, "%s", what)
		if e := (*Error)(nil); (err != nil) != (tt.err != "") || err != nil && (!errors.As(err, &e) || err.Error() != tt.err) {
			t.Errorf("%s: %v; want %q", what, err, tt.err)
		}
	}
}
