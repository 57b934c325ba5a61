// Package placement assigns the producers and consumers of a run to the agents of a fleet.
//
// It is deterministic: the same placement, shape and agents give the same workers on every machine,
// in whatever order the agents joined.
package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/schedule"
)

// An Agent is a process that can execute a part of a run.
type Agent struct {
	Name   string            // unique in the fleet; see CheckName
	Labels map[string]string // matched by a Selector; see ParseLabel
}

// A Shape is the size of a run.
type Shape struct {
	Producers    int // 0 if nothing is sent
	Destinations int
	Consumers    int // per subscription, 0 if nothing is received
}

// ProducerDestinations returns the destinations that producer p sends to, as
// schedule.DestinationsOf does. The slice is the caller's.
func (s Shape) ProducerDestinations(p int) []int { return s.destinations(p, s.Producers) }

// ConsumerDestinations returns the destinations that consumer i of each
// subscription serves, as the engine opens it. The slice is the caller's.
func (s Shape) ConsumerDestinations(i int) []int { return s.destinations(i, s.Consumers) }

// destinations returns the destinations of connection i of n: one, or, if there are fewer connections than
// destinations, every n-th.
func (s Shape) destinations(i, n int) []int {
	if n >= s.Destinations {
		return []int{i % s.Destinations}
	}
	var own []int
	for ; i < s.Destinations; i += n {
		own = append(own, i)
	}
	return own
}

// A Worker is what one agent carries: the connections whose number modulo Count equals Index. An
// Index beyond them selects none.
type Worker struct {
	Producers schedule.Part
	Consumers schedule.Part // of each subscription
}

// noneOf returns a part that selects none of n connections.
func noneOf(n int) schedule.Part { return schedule.Part{Index: n, Count: n + 1} }

// of returns how many of n connections a part selects.
func of(p schedule.Part, n int) int {
	if p.Index >= n {
		return 0
	}
	return (n - p.Index + p.Count - 1) / p.Count
}

// The agents required by Split.
const (
	SplitProducers = "producers"
	SplitConsumers = "consumers"
)

// Assign returns what each of the agents carries, in their order. The numbers of producers differ
// by at most one between eligible agents, and so do those of consumers. If both are spread over all
// agents, those with one producer fewer are the first to get one consumer more.
//
// Its errors name the agents and a remedy: a selector that matches no agent, an agent left with
// nothing, an impossible Paired, a Split over anything but its two agents.
func Assign(p Spec, shape Shape, agents []Agent) ([]Worker, error) {
	order, err := sorted(agents)
	if err != nil {
		return nil, err
	}
	sends, receives, err := p.eligible(agents, order)
	if err != nil {
		return nil, err
	}
	workers := make([]Worker, len(agents))
	for i := range workers {
		workers[i] = Worker{noneOf(shape.Producers), noneOf(shape.Consumers)}
	}
	for k, a := range sends {
		workers[a].Producers = schedule.Part{Index: k, Count: len(sends)}
	}
	if p.Kind != Paired {
		receives = slices.Clone(receives)
		slices.SortStableFunc(receives, func(a, b int) int {
			return cmp.Compare(of(workers[a].Producers, shape.Producers), of(workers[b].Producers, shape.Producers))
		})
	}
	for k, a := range receives {
		workers[a].Consumers = schedule.Part{Index: k, Count: len(receives)}
	}
	if p.Kind == Paired {
		if err := paired(shape, workers); err != nil {
			return nil, err
		}
	}
	if err := idle(shape, workers, agents, order, sends, receives); err != nil {
		return nil, err
	}
	return workers, nil
}

// sorted returns the agents' indices in the order of their names.
func sorted(agents []Agent) ([]int, error) {
	if len(agents) == 0 {
		return nil, errors.New("no agents to assign to (1 or more)")
	}
	order := make([]int, len(agents))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(agents[a].Name, agents[b].Name) })
	for i, a := range order[1:] {
		if name := agents[a].Name; name == agents[order[i]].Name {
			return nil, fmt.Errorf("two agents have the name %s (give each its own)", name)
		}
	}
	return order, nil
}

// eligible returns the agents that may have producers, and consumers, each in the order of names.
func (p Spec) eligible(agents []Agent, order []int) (sends, receives []int, err error) {
	switch p.Kind {
	case Paired:
		return order, order, nil
	case Split:
		if len(agents) != 2 || agents[order[0]].Name != SplitConsumers || agents[order[1]].Name != SplitProducers {
			return nil, nil, fmt.Errorf("split is one host with the agents %s and %s, and here are %s (paired, or lists of agents)",
				SplitConsumers, SplitProducers, listed(agents, order, false))
		}
		return order[1:], order[:1], nil
	}
	sends, err1 := selected("producers", p.Producers, agents, order)
	receives, err2 := selected("consumers", p.Consumers, agents, order)
	return sends, receives, errors.Join(err1, err2)
}

// selected returns the agents that any selector of a list matches; all agents without a list.
func selected(list string, selectors []Selector, agents []Agent, order []int) ([]int, error) {
	if len(selectors) == 0 {
		return order, nil
	}
	var errs []error
	chosen := make([]bool, len(agents))
	for _, s := range selectors {
		found := false
		for _, a := range order {
			if s.Selects(agents[a]) {
				chosen[a], found = true, true
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("placement.%s: no agent is %s (there are %s)", list, s, listed(agents, order, true)))
		}
	}
	var out []int
	for _, a := range order {
		if chosen[a] {
			out = append(out, a)
		}
	}
	return out, errors.Join(errs...)
}

// idle returns an error for agents that were left with nothing.
func idle(shape Shape, workers []Worker, agents []Agent, order, sends, receives []int) error {
	var unlisted, left []int
	for _, a := range order {
		switch {
		case of(workers[a].Producers, shape.Producers)+of(workers[a].Consumers, shape.Consumers) > 0:
		case slices.Contains(sends, a) && shape.Producers > 0, slices.Contains(receives, a) && shape.Consumers > 0:
			left = append(left, a)
		default:
			unlisted = append(unlisted, a)
		}
	}
	var errs []error
	if len(unlisted) > 0 {
		errs = append(errs, fmt.Errorf("%s would have nothing to do: the placement selects other agents (list all agents, or start fewer)", listed(agents, unlisted, true)))
	}
	if len(left) > 0 {
		var what []string
		if shape.Producers > 0 {
			what = append(what, over(shape.Producers, "producer", len(sends)))
		}
		if shape.Consumers > 0 {
			what = append(what, over(shape.Consumers, "consumer", len(receives)))
		}
		errs = append(errs, fmt.Errorf("%s would have nothing to do: the run has %s (use more of them, or fewer agents)",
			listed(agents, left, false), strings.Join(what, " and ")))
	}
	return errors.Join(errs...)
}

func over(n int, what string, agents int) string {
	return quantity.Plural(n, what) + " for " + quantity.Plural(agents, "agent")
}

// mostListed is the maximum number of agents in a message.
const mostListed = 20

// listed formats the names of agents, optionally with their labels.
func listed(agents []Agent, places []int, labels bool) string {
	var out []string
	for _, a := range places[:min(len(places), mostListed)] {
		text := agents[a].Name
		if l := labelsOf(agents[a]); labels && l != "" {
			text += " with " + l
		}
		out = append(out, text)
	}
	if n := len(places) - mostListed; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}
