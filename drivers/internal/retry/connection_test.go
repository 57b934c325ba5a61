package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/internal/must"
)

// A line is one connection. It is lost a second after it was opened.
type line int

var errCut, errNobody, errNever = errors.New("cut"), errors.New("nobody there"), errors.New("never")

// lines holds a test's connections. Attempts to connect fail with the errors in fails, in order;
// nil: the attempt succeeds.
type lines struct {
	begin  time.Time
	n      line
	fails  []error
	happen []string
}

func (s *lines) note(format string, v ...any) {
	s.happen = append(s.happen, fmt.Sprintf("%v ", time.Since(s.begin))+fmt.Sprintf(format, v...))
}

func (s *lines) connection() *retry.Connection[line] {
	s.begin = time.Now()
	return &retry.Connection[line]{
		Connect: func(context.Context) (*line, error) {
			if len(s.fails) > 0 {
				err := s.fails[0]
				if s.fails = s.fails[1:]; err != nil {
					s.note("%v", err)
					return nil, err
				}
			}
			s.n++
			n := s.n
			return &n, nil
		},
		Hold: func(ctx context.Context, c *line) error {
			retry.Pause(ctx, time.Second)
			s.note("end of %d", *c)
			return errCut
		},
		Made:  func(lost, now *line, why error) { s.note("%d after %d: %v", *now, *lost, why) },
		Wait:  100 * time.Millisecond,
		For:   time.Minute,
		Final: func(err error) bool { return errors.Is(err, errNever) },
	}
}

func (s *lines) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.happen, want) {
		t.Errorf("happened:\n%s\nwant:\n%s", strings.Join(s.happen, "\n"), strings.Join(want, "\n"))
	}
}

// TestLostConnectionIsReopened checks the order of calls, the pause before each attempt, and that
// the end of the context is not a loss.
func TestLostConnectionIsReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lines{fails: []error{errNobody, errNobody}}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := s.connection().Keep(ctx, new(line)); err != nil {
			t.Error(err)
		}
		s.want(t, "1s end of 0", "1.1s nobody there", "1.2s nobody there", "1.3s 1 after 0: cut", "1.5s end of 1")
	})
}

// TestLossCanTriggerImmediateRetry makes the immediate retry fail: later attempts are paused.
func TestLossCanTriggerImmediateRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lines{fails: []error{nil, errNever, errNever}}
		k := s.connection()
		k.AtOnce = func(why error) bool { return errors.Is(why, errCut) }
		if err := k.Keep(t.Context(), new(line)); !errors.Is(err, errNever) {
			t.Error(err)
		}
		s.want(t, "1s end of 0", "1s 1 after 0: cut", "2s end of 1", "2s never", "2.1s never")
	})
}

// TestAttemptsEnd covers a final error, the time limit, and the context.
func TestAttemptsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lines{fails: []error{errNobody, errNever}}
		if err := s.connection().Keep(t.Context(), new(line)); !errors.Is(err, errNever) || errors.Is(err, driver.ErrDisconnected) {
			t.Errorf("a final error: %v", err)
		}
		s.want(t, "1s end of 0", "1.1s nobody there", "1.2s never")

		s = &lines{fails: slices.Repeat([]error{errNobody}, 100)}
		k := s.connection()
		k.For, k.Final = 250*time.Millisecond, nil
		err := k.Keep(t.Context(), new(line))
		if !errors.Is(err, errNobody) || err.Error() != "connection lost: not connected again within 250ms: nobody there" {
			t.Errorf("after its time: %v", err)
		}
		s.want(t, "1s end of 0", "1.1s nobody there", "1.2s nobody there")

		k.For = 0
		if err := k.Keep(t.Context(), new(line)); !errors.Is(err, driver.ErrDisconnected) {
			t.Errorf("without any time: %v", err)
		}

		s = &lines{fails: slices.Repeat([]error{errNobody}, 100)}
		ctx, cancel := context.WithTimeout(t.Context(), 1150*time.Millisecond)
		defer cancel()
		if err := s.connection().Keep(ctx, new(line)); err != nil {
			t.Errorf("the end of the context: %v", err)
		}
		s.want(t, "1s end of 0", "1.1s nobody there")
	})
}

// TestStartReportsConnectionsAndEnd reconnects twice and gives up.
func TestStartReportsConnectionsAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lines{fails: []error{nil, errNobody, nil, errNever}}
		c := s.connection()
		c.Made = nil
		first := must.Get(c.Connect(t.Context()))(t)
		x := c.Start(first, driver.Run{Event: func(kind, text string) { s.note("%s %s", kind, text) }}, "producer 0")
		time.Sleep(time.Minute)
		if *x.Now() != 2 {
			t.Errorf("now is %d", *x.Now())
		}
		x.End()
		<-x.Life().Done()
		s.want(t, "1s end of 1", "1.1s nobody there", "1.2s reconnect producer 0: cut",
			"2.2s end of 2", "2.3s never", "2.3s lost producer 0: never")
	})
}
