package engine_test

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
)

var _ = engine.Coordinate(coordinator.Alone, func(cfg engine.Config) (engine.Peers, func() engine.Outcome, error) {
	c, err := coordinator.New(cfg, []string{"local"}, []engine.Worker{{}}, nil)
	if err != nil {
		return nil, nil, err
	}
	return c.Local(0), c.Outcome, nil
})
