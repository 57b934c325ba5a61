package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

func TestASystemGoneAfterTheWindowDidNotEndTheRunEarly(t *testing.T) {
	t.Parallel()
	m := &measurement{scenario: &scenario.Scenario{Load: scenario.Load{Closed: true}, WarmUp: time.Second, Measure: time.Second}}
	for to, want := range map[time.Duration][2]string{ // aborted, gone
		2 * time.Second:         {"", "no answer"},
		1500 * time.Millisecond: {"no answer", ""},
	} {
		in := m.evidence(&engine.Raw{Closed: true, To: int64(to), Gone: errors.New("no answer")}, &result.Result{})
		if got := [2]string{in.Aborted, in.Gone}; got != want {
			t.Errorf("window ends at %v: %q; want %q", to, got, want)
		}
	}
}
