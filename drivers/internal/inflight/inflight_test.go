package inflight_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/inflight"
)

// ends records completions.
type ends map[*driver.Message][]error

func (e ends) Complete(m *driver.Message, err error) { e[m] = append(e[m], err) }

// TestEachMessageEndsOnce checks that duplicate answers, and answers after Close, are ignored.
func TestEachMessageEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ms := ends{}, [3]driver.Message{}
		s := inflight.New[int](e)
		if !s.Begin(0, &ms[0], nil) || !s.Begin(1, &ms[1], nil) {
			t.Error("an open producer takes no message")
		}
		refused := errors.New("refused")
		if !s.Ended(0, refused) || s.Ended(0, nil) {
			t.Error("the first message has not ended once")
		}
		began, stopped := time.Now(), errors.New("stopped")
		err := s.Close(context.Background(), func() error {
			if waited := time.Since(began); waited != 2*time.Second {
				t.Errorf("waited %v for an answer", waited)
			}
			return stopped
		})
		if !errors.Is(err, stopped) || s.Ended(1, nil) || s.Begin(2, &ms[2], nil) || s.Flush(context.Background()) != nil {
			t.Errorf("after Close, which returned %v, something is open", err)
		}
		if err := s.Close(context.Background(), nil); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		for i, want := range []error{refused, driver.ErrClosed, driver.ErrClosed} {
			if got := e[&ms[i]]; len(got) != 1 || !errors.Is(got[0], want) {
				t.Errorf("message %d ended with %v; want %v", i, got, want)
			}
		}
	})
}
