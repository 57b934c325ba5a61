package fleet

import (
	"fmt"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/placement"
)

// Assign assigns each agent its part of a run. Its error is a *placement.Error.
func Assign(p placement.Spec, cfg *engine.Config, agents []placement.Agent) ([]placement.Worker, error) {
	shape := shapeOf(cfg)
	workers, err := placement.Assign(p, shape, agents)
	if err != nil {
		return nil, &placement.Error{Err: err}
	}
	if flows := placement.Crossing(shape, workers); cfg.Definition.Capabilities.InProcess && len(flows) > 0 {
		return nil, &placement.Error{Err: fmt.Errorf("driver %s works inside one process: agent %[3]s cannot receive what agent %[2]s sends (placement: paired, or mode: produce)",
			cfg.Definition.Name, agents[flows[0].From].Name, agents[flows[0].To].Name)}
	}
	return workers, nil
}

// shapeOf counts what placement distributes: the parts of a run.
func shapeOf(cfg *engine.Config) placement.Shape {
	shape := placement.Shape{Producers: cfg.Plan.Producers, Destinations: cfg.Plan.Destinations, Consumers: cfg.Consumers}
	switch cfg.Mode {
	case engine.Produce:
		shape.Consumers = 0
	case engine.Consume:
		shape.Producers = 0
	}
	return shape
}

// crossingOf returns the pairs of agents of which one receives what the other sends.
func crossingOf(cfg *engine.Config, workers []engine.Worker) []placement.Flow {
	shape := shapeOf(cfg)
	var assigned []placement.Worker
	for _, s := range workers {
		assigned = append(assigned, placement.Worker{Producers: s.Producers, Consumers: s.Consumers})
	}
	return placement.Crossing(shape, assigned)
}
