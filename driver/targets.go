package driver

import (
	"context"
	"fmt"
)

// Targets are what the destinations of one producer are in its system (a subject, a
// topic, a table), so that Publish finds them and refuses the rest. Use it in every
// producer. The goroutine that publishes uses it; a look-up allocates nothing.
type Targets[T any] struct {
	of    map[string]T
	one   string // the destination, where there is a single one: most producers have one
	only  T
	most  int64
	limit string
}

// NewTargets returns the targets of destinations. Each comes from place.
func NewTargets[T any](destinations []string, place func(destination string) (T, error)) (*Targets[T], error) {
	t := &Targets[T]{of: make(map[string]T, len(destinations))}
	for _, d := range destinations {
		target, err := place(d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		t.of[d] = target
	}
	if len(t.of) == 1 {
		t.one = destinations[0]
		t.only = t.of[t.one]
	}
	return t, nil
}

// Limit has Of refuse messages of more than most bytes; limit says who sets that,
// as in CheckSize.
func (t *Targets[T]) Limit(most int64, limit string) { t.most, t.limit = most, limit }

// All returns the targets by destination. The map is the Targets' own.
func (t *Targets[T]) All() map[string]T { return t.of }

// Of returns where m goes, or why it is not sent: ctx has ended, m is for a
// destination that the producer was not opened for, or it is too large.
func (t *Targets[T]) Of(ctx context.Context, m *Message) (target T, err error) {
	if err := ctx.Err(); err != nil {
		return target, err
	}
	if len(t.of) == 1 && m.Destination == t.one {
		return t.only, CheckSize(len(m.Payload), t.most, t.limit)
	}
	target, ok := t.of[m.Destination]
	if !ok {
		return target, fmt.Errorf("destination %q is not one of this producer's: %w", m.Destination, ErrUnsupported)
	}
	return target, CheckSize(len(m.Payload), t.most, t.limit)
}
