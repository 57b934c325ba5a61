package noop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// answered records when each message was confirmed, by its token.
type answered struct {
	began time.Time
	at    map[uint64]time.Duration
	errs  map[uint64]error
}

func (a *answered) Complete(m *driver.Message, err error) {
	a.at[m.Token], a.errs[m.Token] = time.Since(a.began), err
}

func pretend(t *testing.T, c config) (driver.Producer, *answered) {
	t.Helper()
	a := &answered{began: time.Now(), at: map[uint64]time.Duration{}, errs: map[uint64]error{}}
	conn := must.Get(c.Open(t.Context(), driver.Run{}))(t)
	p := must.Get(conn.Producer(t.Context(), driver.ProducerSpec{InFlight: 10}, a))(t)
	t.Cleanup(func() {
		if err := errors.Join(p.Close(context.Background()), conn.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return p, a
}

// TestSimulatedSystemFreezesAndSlowsDown: messages are answered exactly when the settings say, to
// the nanosecond of virtual time.
func TestSimulatedSystemFreezesAndSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config{Answer: time.Millisecond}
		c.Freeze.At, c.Freeze.For = 95*time.Millisecond, 100*time.Millisecond
		c.Slow.At, c.Slow.Answer = 295*time.Millisecond, 5*time.Millisecond
		p, a := pretend(t, c)
		for i := range uint64(4) { // at 0, 100, 200 and 300 ms
			p.Publish(t.Context(), &driver.Message{Token: i})
			time.Sleep(100 * time.Millisecond)
		}
		must.Do(t, p.Flush(t.Context()))
		want := map[uint64]time.Duration{0: time.Millisecond, 1: 195 * time.Millisecond, 2: 201 * time.Millisecond, 3: 305 * time.Millisecond}
		if diff := cmp.Diff(want, a.at); diff != "" {
			t.Error(diff)
		}
	})
}

// TestFrozenSystemReleasesHeldMessages: Flush ends with its context, and Close fails unanswered
// messages.
func TestFrozenSystemReleasesHeldMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config{Answer: time.Millisecond}
		c.Freeze.For = time.Hour
		p, a := pretend(t, c)
		p.Publish(t.Context(), new(driver.Message))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v; want the end of its context", err)
		}
		if err := p.Close(t.Context()); err != nil || !errors.Is(a.errs[0], driver.ErrClosed) {
			t.Errorf("Close: %v, and the message ended with %v; want ErrClosed", err, a.errs[0])
		}
	})
}

func TestSimulatedMessageDoesNotAllocate(t *testing.T) {
	c := config{Answer: time.Microsecond}
	conn := must.Get(c.Open(t.Context(), driver.Run{}))(t)
	var done counter
	p := must.Get(conn.Producer(t.Context(), driver.ProducerSpec{InFlight: 1}, &done))(t)
	m := new(driver.Message)
	n := testing.AllocsPerRun(100, func() {
		p.Publish(t.Context(), m)
		for s := p.(*pretender).system; ; {
			s.mu.Lock()
			left := len(p.(*pretender).open)
			s.mu.Unlock()
			if left == 0 {
				return
			}
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := errors.Join(p.Close(t.Context()), conn.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestFreezeNeedsServiceTime(t *testing.T) {
	c := new(config)
	c.Freeze.For = time.Second
	var bad *driver.OptionError
	if err := driver.Check(c); !errors.As(err, &bad) || bad.Name != "answer" {
		t.Errorf("%v; want the option answer refused", err)
	}
}
