package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/schedule"
)

// A Flow is a pair of agents, as indices of the workers: one with a producer and one with a
// consumer of the same destination. They may be the same agent.
type Flow struct{ From, To int }

// flows returns every pair of agents between which messages flow, sorted.
func flows(shape Shape, workers []Worker) []Flow {
	if shape.Producers == 0 || shape.Consumers == 0 {
		return nil
	}
	from := agentsOf(shape, shape.Producers, shape.ProducerDestinations, workers, func(s Worker) schedule.Part { return s.Producers })
	to := agentsOf(shape, shape.Consumers, shape.ConsumerDestinations, workers, func(s Worker) schedule.Part { return s.Consumers })
	found := map[Flow]bool{}
	for d := range from {
		for _, a := range from[d] {
			for _, b := range to[d] {
				found[Flow{a, b}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Flow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

// agentsOf returns for each destination the agents that have any of its n connections.
func agentsOf(shape Shape, n int, destinations func(int) []int, workers []Worker, side func(Worker) schedule.Part) [][]int {
	out := make([][]int, shape.Destinations)
	for a, s := range workers {
		c := side(s)
		for i := c.Index; i < n; i += c.Count {
			for _, d := range destinations(i) {
				if k := len(out[d]); k == 0 || out[d][k-1] != a {
					out[d] = append(out[d], a)
				}
			}
		}
	}
	return out
}

// Crossing returns the flows from one agent to another.
func Crossing(shape Shape, workers []Worker) []Flow {
	return slices.DeleteFunc(flows(shape, workers), func(f Flow) bool { return f.From == f.To })
}

// paired returns why messages would cross from one agent to another.
func paired(shape Shape, workers []Worker) error {
	if len(Crossing(shape, workers)) == 0 {
		return nil
	}
	// Connection i is on agent i modulo their number, and so are its destinations if the smaller of
	// the two numbers is a multiple of it.
	agents := len(workers)
	var needs []string
	need := func(key string, n int) {
		text := fmt.Sprintf("topology.%s: a multiple of %d, has %d", key, agents, n)
		if n%agents != 0 && !slices.Contains(needs, text) {
			needs = append(needs, text)
		}
	}
	for _, side := range []struct {
		key string
		n   int
	}{{"producers", shape.Producers}, {"consumers", shape.Consumers}} {
		if side.n < shape.Destinations {
			need(side.key, side.n)
		} else {
			need("destinations", shape.Destinations)
		}
	}
	return fmt.Errorf("paired over %s needs %s", quantity.Plural(agents, "agent"), strings.Join(needs, "; "))
}
