package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/schedule"
)

// fleet returns agents of these names, optionally followed by labels.
func fleet(specs ...string) []Agent {
	var out []Agent
	for _, s := range specs {
		fields := strings.Fields(s)
		a := Agent{Name: fields[0], Labels: map[string]string{}}
		for _, l := range fields[1:] {
			k, v, _ := strings.Cut(l, "=")
			a.Labels[k] = v
		}
		out = append(out, a)
	}
	return out
}

// holds reports whether a part has connection i.
func holds(p schedule.Part, i int) bool { return i%p.Count == p.Index }

func lists(t testing.TB, producers, consumers string) Spec {
	t.Helper()
	parse := func(list string) (out []Selector) {
		for _, s := range strings.Fields(list) {
			sel := must.Get(ParseSelector(s))(t)
			out = append(out, sel)
		}
		return out
	}
	return Spec{Producers: parse(producers), Consumers: parse(consumers)}
}

// assigned formats who has what: "a: p0 p2 c1".
func assigned(shape Shape, workers []Worker, agents []Agent) []string {
	var out []string
	for i, s := range workers {
		text := agents[i].Name + ":"
		for p := range shape.Producers {
			if holds(s.Producers, p) {
				text += fmt.Sprintf(" p%d", p)
			}
		}
		for c := range shape.Consumers {
			if holds(s.Consumers, c) {
				text += fmt.Sprintf(" c%d", c)
			}
		}
		out = append(out, text)
	}
	return out
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	everywhere := Spec{}
	for name, tt := range map[string]struct {
		placement Spec
		shape     Shape
		agents    []Agent
		want      []string
	}{
		"one agent does everything":                           {everywhere, Shape{2, 1, 3}, fleet("a"), []string{"a: p0 p1 c0 c1 c2"}},
		"two agents take turns":                               {everywhere, Shape{4, 1, 4}, fleet("a", "b"), []string{"a: p0 p2 c0 c2", "b: p1 p3 c1 c3"}},
		"names decide, not who came first":                    {everywhere, Shape{2, 1, 2}, fleet("b", "a"), []string{"b: p1 c1", "a: p0 c0"}},
		"who has fewer producers has more consumers":          {everywhere, Shape{4, 1, 2}, fleet("a", "b", "c"), []string{"a: p0 p3", "b: p1 c0", "c: p2 c1"}},
		"a producer here and a consumer there":                {everywhere, Shape{1, 1, 1}, fleet("a", "b"), []string{"a: p0", "b: c0"}},
		"only producers where nothing is received":            {everywhere, Shape{3, 1, 0}, fleet("a", "b"), []string{"a: p0 p2", "b: p1"}},
		"only consumers where nothing is sent":                {everywhere, Shape{0, 1, 3}, fleet("a", "b"), []string{"a: c0 c2", "b: c1"}},
		"paired agents have a destination's both ends":        {Spec{Kind: Paired}, Shape{4, 2, 2}, fleet("a", "b"), []string{"a: p0 p2 c0", "b: p1 p3 c1"}},
		"paired with fewer connections than destinations":     {Spec{Kind: Paired}, Shape{2, 6, 4}, fleet("a", "b"), []string{"a: p0 c0 c2", "b: p1 c1 c3"}},
		"paired one to one, more on some than on others":      {Spec{Kind: Paired}, Shape{4, 4, 4}, fleet("a", "b", "c"), []string{"a: p0 p3 c0 c3", "b: p1 c1", "c: p2 c2"}},
		"split has two agents":                                {Spec{Kind: Split}, Shape{2, 1, 2}, fleet("producers", "consumers"), []string{"producers: p0 p1", "consumers: c0 c1"}},
		"lists by name":                                       {lists(t, "a b", "c"), Shape{3, 1, 2}, fleet("c", "b", "a"), []string{"c: c0 c1", "b: p1", "a: p0 p2"}},
		"lists by label":                                      {lists(t, "zone=a", "zone=b"), Shape{2, 1, 2}, fleet("x zone=b", "y zone=a", "z zone=a disk=ssd"), []string{"x: c0 c1", "y: p0", "z: p1"}},
		"a list by two labels":                                {lists(t, "disk=ssd,zone=a", ""), Shape{1, 1, 2}, fleet("x zone=b disk=ssd", "y zone=a", "z zone=a disk=ssd"), []string{"x: c0", "y: c1", "z: p0"}},
		"an agent that two selectors select is one":           {lists(t, "a zone=a", "b"), Shape{2, 1, 1}, fleet("a zone=a", "b"), []string{"a: p0 p1", "b: c0"}},
		"who has no producers is the first to have consumers": {lists(t, "a", ""), Shape{1, 1, 2}, fleet("a", "b", "c"), []string{"a: p0", "b: c0", "c: c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workers := must.Get(Assign(tt.placement, tt.shape, tt.agents))(t)
			golden.Equal(t, tt.want, assigned(tt.shape, workers, tt.agents), "")
		})
	}
}

func TestImpossiblePlacements(t *testing.T) {
	t.Parallel()
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("agent-%02d", i)
	}
	for name, tt := range map[string]struct {
		placement Spec
		shape     Shape
		agents    []Agent
		want      string
	}{
		"nobody":                {Spec{}, Shape{1, 1, 1}, nil, "no agents to assign to (1 or more)"},
		"two of a name":         {Spec{}, Shape{2, 1, 2}, fleet("a", "b", "a"), "two agents have the name a (give each its own)"},
		"more agents than work": {Spec{}, Shape{2, 1, 1}, fleet("d", "a", "b", "c"), "d would have nothing to do: the run has 2 producers for 4 agents and 1 consumer for 4 agents (use more of them, or fewer agents)"},
		"more agents than producers": {
			Spec{},
			Shape{1, 1, 0},
			fleet("a", "b", "c"),
			"b, c would have nothing to do: the run has 1 producer for 3 agents (use more of them, or fewer agents)",
		},
		"more on the list than producers": {
			lists(t, "a b c", "d"),
			Shape{2, 1, 1},
			fleet("a", "b", "c", "d"),
			"c would have nothing to do: the run has 2 producers for 3 agents and 1 consumer for 1 agent (use more of them, or fewer agents)",
		},
		"one that no list selects": {
			lists(t, "a", "b"),
			Shape{1, 1, 1},
			fleet("a", "b", "c zone=x"),
			"c with zone=x would have nothing to do: the placement selects other agents (list all agents, or start fewer)",
		},
		"a list for what nobody does": {
			lists(t, "a", ""),
			Shape{1, 1, 0},
			fleet("a", "b"),
			"b would have nothing to do: the placement selects other agents (list all agents, or start fewer)",
		},
		"selectors that select nobody": {
			lists(t, "a zone=c", "d"),
			Shape{2, 1, 1},
			fleet("a zone=a", "b zone=b disk=ssd"),
			"placement.producers: no agent is zone=c (there are a with zone=a, b with disk=ssd,zone=b)\n" +
				"placement.consumers: no agent is d (there are a with zone=a, b with disk=ssd,zone=b)",
		},
		"a label that has another value": {
			lists(t, "zone=a,disk=hdd", ""),
			Shape{1, 1, 1},
			fleet("a zone=a disk=ssd"),
			"placement.producers: no agent is disk=hdd,zone=a (there are a with disk=ssd,zone=a)",
		},
		"a long list of agents": {
			lists(t, "x", ""),
			Shape{1, 1, 1},
			fleet(many...),
			"placement.producers: no agent is x (there are " + strings.Join(many[:20], ", ") + ", and 10 more)",
		},
		"split over others": {
			Spec{Kind: Split},
			Shape{1, 1, 1},
			fleet("b", "a"),
			"split is one host with the agents consumers and producers, and here are a, b (paired, or lists of agents)",
		},
		"split over more": {
			Spec{Kind: Split},
			Shape{1, 1, 1},
			fleet("producers", "consumers", "others"),
			"split is one host with the agents consumers and producers, and here are consumers, others, producers (paired, or lists of agents)",
		},
		"split with nothing to receive": {
			Spec{Kind: Split},
			Shape{1, 1, 0},
			fleet("producers", "consumers"),
			"consumers would have nothing to do: the placement selects other agents (list all agents, or start fewer)",
		},
		"paired on a destination too many": {
			Spec{Kind: Paired},
			Shape{8, 4, 8},
			fleet("a", "b", "c"),
			"paired over 3 agents needs topology.destinations: a multiple of 3, has 4",
		},
		"paired on a single destination": {
			Spec{Kind: Paired},
			Shape{25, 1, 25},
			fleet("a", "b"),
			"paired over 2 agents needs topology.destinations: a multiple of 2, has 1",
		},
		"paired with producers of several destinations": {
			Spec{Kind: Paired},
			Shape{3, 8, 8},
			fleet("a", "b"),
			"paired over 2 agents needs topology.producers: a multiple of 2, has 3",
		},
		"paired with both ends wrong": {
			Spec{Kind: Paired},
			Shape{3, 8, 5},
			fleet("a", "b"),
			"paired over 2 agents needs topology.producers: a multiple of 2, has 3; topology.consumers: a multiple of 2, has 5",
		},
		"paired over more agents than destinations": {
			Spec{Kind: Paired},
			Shape{2, 2, 2},
			fleet("a", "b", "c"),
			"c would have nothing to do: the run has 2 producers for 3 agents and 2 consumers for 3 agents (use more of them, or fewer agents)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workers, err := Assign(tt.placement, tt.shape, tt.agents)
			if err == nil {
				t.Fatalf("dealt: %v", assigned(tt.shape, workers, tt.agents))
			}
			golden.Equal(t, tt.want, err.Error(), "")
		})
	}
}

func TestWhereMessagesCross(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		placement Spec
		shape     Shape
		agents    []Agent
		want      []Flow
	}{
		"one agent":                            {Spec{}, Shape{2, 1, 2}, fleet("a"), nil},
		"everybody to everybody":               {Spec{}, Shape{2, 1, 2}, fleet("a", "b"), []Flow{{0, 1}, {1, 0}}},
		"here to there":                        {lists(t, "a", "b"), Shape{2, 1, 2}, fleet("b", "a"), []Flow{{1, 0}}},
		"two processes of one host":            {Spec{Kind: Split}, Shape{2, 1, 2}, fleet("producers", "consumers"), []Flow{{0, 1}}},
		"paired":                               {Spec{Kind: Paired}, Shape{4, 2, 2}, fleet("a", "b"), nil},
		"a destination for each":               {Spec{}, Shape{2, 2, 2}, fleet("a", "b"), nil},
		"destinations that others serve":       {lists(t, "a b", "c d"), Shape{2, 2, 2}, fleet("a", "b", "c", "d"), []Flow{{0, 2}, {1, 3}}},
		"nothing received":                     {Spec{}, Shape{2, 1, 0}, fleet("a", "b"), nil},
		"nothing sent":                         {Spec{}, Shape{0, 1, 2}, fleet("a", "b"), nil},
		"consumers that serve several of them": {Spec{}, Shape{4, 4, 2}, fleet("a", "b", "c"), []Flow{{0, 1}, {0, 2}, {1, 2}, {2, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workers := must.Get(Assign(tt.placement, tt.shape, tt.agents))(t)
			if got := Crossing(tt.shape, workers); !slices.Equal(tt.want, got) {
				t.Errorf("%v, want %v, with %v", got, tt.want, assigned(tt.shape, workers, tt.agents))
			}
		})
	}
}

// Properties of any assignment: each producer and consumer is on one agent, eligible agents have
// equal numbers up to one, and the order of the agents does not matter.
func TestEveryClientHasOneAgent(t *testing.T) {
	t.Parallel()
	dealt := 0
	rapid.Check(t, func(r *rapid.T) {
		var agents []Agent
		zones := []string{"x", "y", "z"}
		for i := range rapid.IntRange(1, 12).Draw(r, "agents") {
			agents = append(agents, Agent{Name: fmt.Sprint("agent-", i), Labels: map[string]string{"zone": rapid.SampledFrom(zones).Draw(r, "zone")}})
		}
		shape := Shape{
			Producers: rapid.IntRange(0, 40).Draw(r, "producers"), Destinations: rapid.IntRange(1, 20).Draw(r, "destinations"),
			Consumers: rapid.IntRange(0, 40).Draw(r, "consumers"),
		}
		p := Spec{Kind: rapid.SampledFrom([]Kind{Spread, Spread, Paired}).Draw(r, "kind")}
		if p.Kind == Spread && rapid.Bool().Draw(r, "listed") {
			zone := rapid.SampledFrom(zones).Draw(r, "of producers")
			p.Producers = []Selector{{Labels: []Label{{"zone", zone}}}}
		}
		workers, err := Assign(p, shape, agents)
		if err != nil {
			return
		}
		dealt++
		check := func(what string, n int, part func(Worker) schedule.Part, may []Selector) {
			owners := make([]int, n)
			least, most := n, 0
			for i, s := range workers {
				c := part(s)
				held := 0
				for k := range n {
					if holds(c, k) {
						owners[k]++
						held++
					}
				}
				if held != of(c, n) {
					r.Fatalf("%s of agent %d: %+v holds %d, of says %d", what, i, c, held, of(c, n))
				}
				chosen := len(may) == 0 || slices.ContainsFunc(may, func(s Selector) bool { return s.Selects(agents[i]) })
				if chosen {
					least, most = min(least, held), max(most, held)
				} else if held > 0 {
					r.Fatalf("%s of agent %d, which is not selected", what, i)
				}
			}
			for k, n := range owners {
				if n != 1 {
					r.Fatalf("%s %d has %d agents", what, k, n)
				}
			}
			if most-least > 1 {
				r.Fatalf("%s: from %d to %d an agent", what, least, most)
			}
		}
		check("producers", shape.Producers, func(s Worker) schedule.Part { return s.Producers }, p.Producers)
		check("consumers", shape.Consumers, func(s Worker) schedule.Part { return s.Consumers }, p.Consumers)
		if p.Kind == Spread && len(p.Producers) == 0 {
			least, most := shape.Producers+shape.Consumers, 0
			for _, s := range workers {
				n := of(s.Producers, shape.Producers) + of(s.Consumers, shape.Consumers)
				least, most = min(least, n), max(most, n)
			}
			if most-least > 1 {
				r.Fatalf("agents have from %d to %d connections: %v", least, most, assigned(shape, workers, agents))
			}
		}
		flowing := flows(shape, workers)
		if p.Kind == Paired && slices.ContainsFunc(flowing, func(f Flow) bool { return f.From != f.To }) {
			r.Fatalf("paired, and messages flow %v", flowing)
		}
		if want := flowsOneByOne(shape, workers); !slices.Equal(want, flowing) {
			r.Fatalf("flows %v, asked one by one %v", flowing, want)
		}

		shuffled := rapid.Permutation(agents).Draw(r, "in another order")
		again, err := Assign(p, shape, shuffled)
		if err != nil {
			r.Fatalf("dealt again: %v", err)
		}
		for i, a := range agents {
			j := slices.IndexFunc(shuffled, func(b Agent) bool { return a.Name == b.Name })
			if workers[i] != again[j] {
				r.Fatalf("agent %s has %v, and in another order %v", a.Name, workers[i], again[j])
			}
		}
	})
	// About half of the draws are possible: of 100, or of 20 with -short.
	if dealt < 2 {
		t.Errorf("only %d deals were made: the test tries nothing", dealt)
	}
}

// flowsOneByOne computes flows by asking every producer and consumer.
func flowsOneByOne(shape Shape, workers []Worker) []Flow {
	var out []Flow
	for a, s := range workers {
		for b, q := range workers {
			found := false
			for p := range shape.Producers {
				for c := range shape.Consumers {
					if !holds(s.Producers, p) || !holds(q.Consumers, c) {
						continue
					}
					for _, d := range shape.ProducerDestinations(p) {
						found = found || slices.Contains(shape.ConsumerDestinations(c), d)
					}
				}
			}
			if found {
				out = append(out, Flow{a, b})
			}
		}
	}
	return out
}

func TestDestinationsMatchSchedule(t *testing.T) {
	t.Parallel()
	rate := schedule.PerSecond(10)
	for producers := 1; producers < 20; producers++ {
		for destinations := 1; destinations < 20; destinations++ {
			plan := must.Get(schedule.New(schedule.Spec{
				Phases: []schedule.Phase{{From: rate, To: rate, For: time.Second}}, Producers: producers, Destinations: destinations,
				BatchMin: 1, BatchMax: 1, Sizes: []schedule.WeightedSize{{Bytes: 64, Weight: 1}},
			}))(t)
			for p := range producers {
				if diff := cmp.Diff(plan.DestinationsOf(p), Shape{Producers: producers, Destinations: destinations}.ProducerDestinations(p)); diff != "" {
					t.Fatalf("producer %d of %d, %d destinations (-schedule +shape):\n%s", p, producers, destinations, diff)
				}
			}
		}
	}
}
