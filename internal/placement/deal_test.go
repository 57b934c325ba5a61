package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirmq/weir/schedule"
)

// fleet returns agents of these names; behind a name may stand labels.
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

// holds reports whether connection i belongs to the class.
func holds(c Class, i int) bool { return i%c.Count == c.Index }

func lists(t testing.TB, producers, consumers string) Spec {
	t.Helper()
	parse := func(list string) (out []Selector) {
		for _, s := range strings.Fields(list) {
			sel, err := ParseSelector(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, sel)
		}
		return out
	}
	return Spec{Producers: parse(producers), Consumers: parse(consumers)}
}

// told says who has what: "a: p0 p2 c1".
func told(shape Shape, shares []Worker, agents []Agent) []string {
	var out []string
	for i, s := range shares {
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

func TestWhoGetsWhat(t *testing.T) {
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
			shares, err := Assign(tt.placement, tt.shape, tt.agents)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, told(tt.shape, shares, tt.agents)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeDealt(t *testing.T) {
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
		"nobody":                {Spec{}, Shape{1, 1, 1}, nil, "no agents to deal over (1 or more)"},
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
			shares, err := Assign(tt.placement, tt.shape, tt.agents)
			if err == nil {
				t.Fatalf("dealt: %v", told(tt.shape, shares, tt.agents))
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
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
			shares, err := Assign(tt.placement, tt.shape, tt.agents)
			if err != nil {
				t.Fatal(err)
			}
			if got := Crossing(tt.shape, shares); !slices.Equal(tt.want, got) {
				t.Errorf("%v, want %v, with %v", got, tt.want, told(tt.shape, shares, tt.agents))
			}
		})
	}
}

// TestEverybodyHasOneAgent holds any deal against what it is for: each producer
// and consumer is of one agent, those who may have any have as many as the others
// or one less, and the order in which agents came changes nothing.
func TestEverybodyHasOneAgent(t *testing.T) {
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
		shares, err := Assign(p, shape, agents)
		if err != nil {
			return
		}
		dealt++
		check := func(what string, n int, class func(Worker) Class, may []Selector) {
			owners := make([]int, n)
			least, most := n, 0
			for i, s := range shares {
				c := class(s)
				held := 0
				for k := range n {
					if holds(c, k) {
						owners[k]++
						held++
					}
				}
				if held != c.Of(n) || (held == 0) != c.None {
					r.Fatalf("%s of agent %d: %+v holds %d, Of says %d", what, i, c, held, c.Of(n))
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
		check("producers", shape.Producers, func(s Worker) Class { return s.Producers }, p.Producers)
		check("consumers", shape.Consumers, func(s Worker) Class { return s.Consumers }, p.Consumers)
		if p.Kind == Spread && len(p.Producers) == 0 {
			least, most := shape.Producers+shape.Consumers, 0
			for _, s := range shares {
				n := s.Producers.Of(shape.Producers) + s.Consumers.Of(shape.Consumers)
				least, most = min(least, n), max(most, n)
			}
			if most-least > 1 {
				r.Fatalf("agents have from %d to %d connections: %v", least, most, told(shape, shares, agents))
			}
		}
		flowing := flows(shape, shares)
		if p.Kind == Paired && slices.ContainsFunc(flowing, func(f Flow) bool { return f.From != f.To }) {
			r.Fatalf("paired, and messages flow %v", flowing)
		}
		if want := flowsOneByOne(shape, shares); !slices.Equal(want, flowing) {
			r.Fatalf("flows %v, asked one by one %v", flowing, want)
		}

		shuffled := rapid.Permutation(agents).Draw(r, "in another order")
		again, err := Assign(p, shape, shuffled)
		if err != nil {
			r.Fatalf("dealt again: %v", err)
		}
		for i, a := range agents {
			j := slices.IndexFunc(shuffled, func(b Agent) bool { return a.Name == b.Name })
			if shares[i] != again[j] {
				r.Fatalf("agent %s has %v, and in another order %v", a.Name, shares[i], again[j])
			}
		}
	})
	// Some half of the draws can be dealt: of 100, or of 20 with -short.
	if dealt < 2 {
		t.Errorf("only %d deals were made: the test tries nothing", dealt)
	}
}

// flowsOneByOne asks every producer and consumer.
func flowsOneByOne(shape Shape, shares []Worker) []Flow {
	var out []Flow
	for a, s := range shares {
		for b, q := range shares {
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

func second(rate schedule.Rate) schedule.Phase {
	return schedule.Phase{From: rate, To: rate, For: time.Second}
}

// specs are schedules of every arrival.
func specs(producers, destinations int) map[string]schedule.Spec {
	base := schedule.Spec{
		Seed: 7, WarmUp: 100 * time.Millisecond, Phases: []schedule.Phase{second(schedule.PerSecond(3000))},
		Producers: producers, Destinations: destinations, BatchMin: 1, BatchMax: 1,
		Sizes: []schedule.WeightedSize{{Bytes: 64, Weight: 1}},
	}
	out := map[string]schedule.Spec{"constant": base}
	with := func(name string, change func(*schedule.Spec)) {
		s := base
		change(&s)
		out[name] = s
	}
	with("poisson", func(s *schedule.Spec) { s.Arrival.Kind = schedule.Poisson })
	with("gamma", func(s *schedule.Spec) { s.Arrival = schedule.Arrival{Kind: schedule.Gamma, CV: 3} })
	with("trace", func(s *schedule.Spec) {
		s.WarmUp, s.Phases, s.Arrival = 0, nil, schedule.Arrival{Kind: schedule.Trace}
		for i := range 2000 {
			s.Arrival.Trace = append(s.Arrival.Trace, int64(i*i))
		}
	})
	with("ramp and bursts", func(s *schedule.Spec) {
		s.Phases = []schedule.Phase{
			{From: schedule.PerSecond(100), To: schedule.PerSecond(5000), For: 500 * time.Millisecond},
			{Burst: 300, Every: 100 * time.Millisecond, For: 500 * time.Millisecond},
		}
	})
	return out
}

// A message is what tells one from another: the n-th that a producer sends, with
// its number over all and its instant.
type message struct {
	producer int
	n        uint64
	index    uint64
	due      int64
}

func messages(plan *schedule.Schedule, parts ...schedule.Part) []message {
	var out []message
	sent := map[int]uint64{}
	for _, part := range parts {
		for i, due := range plan.Due(part) {
			p := plan.Producer(i)
			out = append(out, message{p, sent[p], i, due})
			sent[p]++
		}
	}
	slices.SortFunc(out, func(a, b message) int { return int(a.index) - int(b.index) })
	return out
}

// TestAFleetSendsWhatOneProcessSends: the same messages of the same producers, at
// the same instants, over any number of agents, in any number of lanes.
func TestAFleetSendsWhatOneProcessSends(t *testing.T) {
	t.Parallel()
	shape := Shape{Producers: 25, Destinations: 24, Consumers: 24}
	placements := map[string]Spec{"everywhere": {}, "listed": lists(t, "zone=a", ""), "paired": {Kind: Paired}}
	for name, spec := range specs(shape.Producers, shape.Destinations) {
		plan, err := schedule.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		want := messages(plan, schedule.Part{Index: 0, Count: 1})
		if len(want) < 1000 {
			t.Fatalf("%s: %d messages", name, len(want))
		}
		for how, placement := range placements {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				for _, n := range []int{1, 2, 3, 8} {
					var agents []Agent
					for i := range n {
						agents = append(agents, Agent{Name: fmt.Sprint("agent-", i), Labels: map[string]string{"zone": string(rune('a' + i%2))}})
					}
					shares, err := Assign(placement, shape, agents)
					if err != nil {
						t.Fatal(err)
					}
					var parts []schedule.Part
					for _, s := range shares {
						parts = append(parts, s.Producers.Part())
						if c := ClassOf(s.Producers.Part(), shape.Producers); c != s.Producers {
							t.Errorf("%+v became %+v", s.Producers, c)
						}
					}
					if got := messages(plan, parts...); !slices.Equal(got, want) {
						t.Errorf("%d agents send %d messages that differ from the %d of one", n, len(got), len(want))
					}
				}
			})
		}
	}
}

// TestDestinationsAreTheSchedules: a shape says of producers what the schedule does.
func TestDestinationsAreTheSchedules(t *testing.T) {
	t.Parallel()
	for producers := 1; producers < 20; producers++ {
		for destinations := 1; destinations < 20; destinations++ {
			plan, err := schedule.New(specs(producers, destinations)["constant"])
			if err != nil {
				t.Fatal(err)
			}
			for p := range producers {
				if diff := cmp.Diff(plan.DestinationsOf(p), Shape{Producers: producers, Destinations: destinations}.ProducerDestinations(p)); diff != "" {
					t.Fatalf("producer %d of %d, %d destinations (-schedule +shape):\n%s", p, producers, destinations, diff)
				}
			}
		}
	}
}
