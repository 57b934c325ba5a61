package placement

import (
	"fmt"
	"slices"
	"strings"
)

// An Error says that a run cannot be placed on its agents.
type Error struct{ Err error }

// Error returns the text of the error that it wraps.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Expected returns the agents of a run of n, if the placement determines them before they join; nil
// if labels leave that open. Its error is an *Error.
func Expected(p Spec, n int) ([]Agent, error) {
	var names []string
	for _, s := range slices.Concat(p.Producers, p.Consumers) {
		if s.Name == "" {
			return nil, nil
		}
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	if len(names) > n {
		return nil, &Error{fmt.Errorf("the placement names %d agents (%s), and %d do the run (name fewer, or have more do it)", len(names), strings.Join(names, ", "), n)}
	}
	for i := 1; len(names) < n; i++ {
		if name := fmt.Sprintf("agent-%d", i); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var all []Agent
	for _, name := range names {
		all = append(all, Agent{Name: name})
	}
	return all, nil
}
