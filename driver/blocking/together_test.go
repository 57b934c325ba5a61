package blocking

import (
	"context"
	"errors"
	"testing"

	"github.com/weirmq/weir/driver"
)

// counting is a sink that counts without a lock, for the race detector to see.
type counting struct {
	driver.Sink
	delivered int
}

func (c *counting) Deliver(ds []driver.Delivery) error {
	c.delivered += len(ds)
	return nil
}

func TestPartsDeliverOneAtATime(t *testing.T) {
	var sink counting
	err := Together(t.Context(), &sink, 4, func(_ context.Context, _ int, sink driver.Sink) error {
		for range 1000 {
			if err := sink.Deliver(make([]driver.Delivery, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || sink.delivered != 4000 {
		t.Errorf("%d delivered, %v", sink.delivered, err)
	}
}

func TestAPartThatFailsEndsTheOthers(t *testing.T) {
	lost := errors.New("lost")
	err := Together(t.Context(), &counting{}, 3, func(ctx context.Context, part int, _ driver.Sink) error {
		if part == 1 {
			return lost
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}
