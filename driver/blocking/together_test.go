package blocking

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

func TestFailingPartEndsOthers(t *testing.T) {
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

// readying is a sink that notes when it is ready.
type readying struct {
	counting
	ready int
}

func (r *readying) Ready() { r.ready++ }

func TestConsumerReadyWhenAllPartsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sink readying
		start := time.Now()
		err := Together(t.Context(), &sink, 3, func(_ context.Context, part int, s driver.Sink) error {
			time.Sleep(time.Duration(part) * time.Second)
			s.Ready()
			if d := time.Since(start); d != 2*time.Second {
				t.Errorf("part %d continues after %v", part, d)
			}
			return s.Deliver(make([]driver.Delivery, 1))
		})
		if err != nil || sink.ready != 1 || sink.delivered != 3 {
			t.Errorf("ready %d times, %d delivered, %v", sink.ready, sink.delivered, err)
		}
	})
}

func TestPartFailingBeforeReadyReturnsError(t *testing.T) {
	lost := errors.New("lost")
	var sink readying
	err := Together(t.Context(), &sink, 2, func(ctx context.Context, part int, s driver.Sink) error {
		if part == 1 {
			return lost
		}
		s.Ready()
		return ctx.Err()
	})
	if !errors.Is(err, lost) || sink.ready != 0 {
		t.Errorf("ready %d times, %v", sink.ready, err)
	}
}

func TestSinglePartUsesSinkDirectly(t *testing.T) {
	var sink readying
	err := Together(t.Context(), &sink, 1, func(_ context.Context, _ int, s driver.Sink) error {
		if s != driver.Sink(&sink) {
			t.Error("the sink is another")
		}
		s.Ready()
		return nil
	})
	if err != nil || sink.ready != 1 {
		t.Errorf("ready %d times, %v", sink.ready, err)
	}
}

type feed struct {
	run   func(ctx context.Context, s driver.Sink) error
	close func()
}

func (f feed) Run(ctx context.Context, s driver.Sink) error { return f.run(ctx, s) }
func (f feed) Close()                                       { f.close() }

func TestFeedsAreAConsumer(t *testing.T) {
	lost := errors.New("lost")
	var sink readying
	closed := 0
	var fs Feeds
	for i := range 3 {
		fs = append(fs, feed{func(ctx context.Context, s driver.Sink) error {
			_ = s.Deliver(make([]driver.Delivery, 1))
			if i == 0 {
				return lost
			}
			<-ctx.Done()
			return nil
		}, func() { closed++ }})
	}
	if err := driver.Consumer(fs).Run(t.Context(), &sink); !errors.Is(err, lost) {
		t.Error(err)
	}
	if err := fs.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if sink.ready != 1 || sink.delivered != 3 || closed != 3 {
		t.Errorf("ready %d times, %d delivered, %d closed", sink.ready, sink.delivered, closed)
	}
}

func TestFeedsOfOtherDestinationsCloseOnError(t *testing.T) {
	refused := errors.New("refused")
	closed := 0
	_, err := NewFeeds([]string{"a", "b", "c"}, func(i int, d string) (Feeds, error) {
		if d == "c" {
			return nil, refused
		}
		return Feeds{feed{close: func() { closed += i + 1 }}}, nil
	})
	if !errors.Is(err, refused) || err.Error() != "destination c: refused" || closed != 3 {
		t.Errorf("%v, %d closed", err, closed)
	}
}
