// Package each does something for each destination of a call, and says in an error which
// destination it was. Use it in Declare, Delete and Backlog, and where a producer or a
// consumer looks for its destinations.
package each

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weirmq/weir/driver"
)

// About returns err with the name of the destination that it is about; nil: none.
func About(destination string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("destination %s: %w", destination, err)
}

// Of calls do for each of ds, whatever became of those before. Its error is all errors,
// joined. Use it to remove what may be there.
func Of(ds []driver.Destination, do func(d driver.Destination) error) error {
	var errs []error
	for _, d := range ds {
		errs = append(errs, About(d.Name, do(d)))
	}
	return errors.Join(errs...)
}

// InTurn calls do for each of ds until one fails, and returns that error. Use it to make
// what needs all of ds.
func InTurn(ds []driver.Destination, do func(d driver.Destination) error) error {
	for _, d := range ds {
		if err := do(d); err != nil {
			return About(d.Name, err)
		}
	}
	return nil
}

// Name is InTurn for the names of destinations: i is the index of each, as
// driver.Delivery.Source has it.
func Name(destinations []string, do func(i int, d string) error) error {
	for i, d := range destinations {
		if err := do(i, d); err != nil {
			return About(d, err)
		}
	}
	return nil
}

// Sum adds up what count returns for each of some destinations, until one fails. Use it for
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

// AtOnce calls do for each of all, at the same time. Its error is all errors, joined. Use it
// to ask, or to end, several connections.
func AtOnce[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, one := range all {
		calls.Go(func() { errs[i] = do(one) })
	}
	calls.Wait()
	return errors.Join(errs...)
}
