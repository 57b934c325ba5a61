package engine

import "context"

// A coordinating provides package coordinator, which imports this one, to the tests.
type coordinating struct {
	alone func(ctx context.Context, stop <-chan struct{}, cfg Config) (*Raw, error)
	peers func(cfg Config) (peers Peers, outcome func() Outcome, err error) // for the only worker of a run
}

var coordinate coordinating

// Coordinate sets the coordinator that the tests use.
func Coordinate(alone func(context.Context, <-chan struct{}, Config) (*Raw, error), peers func(Config) (Peers, func() Outcome, error)) bool {
	coordinate = coordinating{alone, peers}
	return true
}

// Run executes cfg in this process alone.
func Run(ctx context.Context, stop <-chan struct{}, cfg Config) (*Raw, error) {
	return coordinate.alone(ctx, stop, cfg)
}

// executed executes cfg in this process alone, and returns the worker's result and the outcome of
// the drain.
func executed(ctx context.Context, cfg Config) (*WorkerResult, Outcome, error) {
	peers, outcome, err := coordinate.peers(cfg)
	if err != nil {
		return nil, Outcome{}, err
	}
	result, err := Execute(ctx, nil, cfg, peers)
	return result, outcome(), err
}
