// Package each runs a function for each destination of a call and names the destination in errors.
// Use it in Declare, Delete and Backlog, and where a producer or a consumer looks up its
// destinations.
package each

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weirmq/weir/driver"
)

// About returns err with the destination's name added; nil stays nil.
func About(destination string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("destination %s: %w", destination, err)
}

// Of calls do for each of ds, even after errors, and returns all errors joined. Use it to remove
// things that may not exist.
func Of(ds []driver.Destination, do func(d driver.Destination) error) error {
	var errs []error
	for _, d := range ds {
		errs = append(errs, About(d.Name, do(d)))
	}
	return errors.Join(errs...)
}

// InTurn calls do for each of ds until one call fails, and returns that error. Use it where all of
// ds are needed.
func InTurn(ds []driver.Destination, do func(d driver.Destination) error) error {
	for _, d := range ds {
		if err := do(d); err != nil {
			return About(d.Name, err)
		}
	}
	return nil
}

// Name is InTurn for the names of destinations; i is the index, as in driver.Delivery.Source.
func Name(destinations []string, do func(i int, d string) error) error {
	for i, d := range destinations {
		if err := do(i, d); err != nil {
			return About(d, err)
		}
	}
	return nil
}

// Sum adds up the results of count over the destinations, until a call fails. Use it for
// driver.Backlogger.
func Sum(destinations []string, count func(d string) (uint64, error)) (sum uint64, err error) {
	for _, d := range destinations {
		n, err := count(d)
		if err != nil {
			return 0, About(d, err)
		}
		sum += n
	}
	return sum, nil
}

// AtOnce calls do for each of all concurrently and returns all errors joined. Use it to query or
// close several connections.
func AtOnce[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, one := range all {
		calls.Go(func() { errs[i] = do(one) })
	}
	calls.Wait()
	return errors.Join(errs...)
}
