package driver

import (
	"context"
	"fmt"
)

// Targets maps the destinations of one producer to what they are in its system (a subject, a topic,
// a table), so that Publish finds them and rejects others. Use it in every producer. Only the
// publishing goroutine may use it; a lookup allocates nothing.
type Targets[T any] struct {
	of    map[string]T
	one   string // the destination, if there is only one, as in most producers
	only  T
	most  int64
	limit string
}

// NewTargets returns the targets of destinations, each computed by place.
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

// Limit makes Of reject messages of more than most bytes; limit names what sets that, as in
// CheckSize.
func (t *Targets[T]) Limit(most int64, limit string) { t.most, t.limit = most, limit }

// All returns the targets by destination. The map is the Targets' own.
func (t *Targets[T]) All() map[string]T { return t.of }

// Of returns the target of m, or why it is not sent: ctx has ended, the producer was not opened for
// m's destination, or m is too large.
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
