package series

import (
	"errors"
	"testing"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// Those of the window, and of the plan.
func TestUnbalancedAccountingIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		damage func(*engine.Raw)
		want   string
	}{
		"nothing is wrong": {func(*engine.Raw) {}, ""},
		"a message too few": {
			func(r *engine.Raw) { r.Measured.Delivered = 4 },
			"measured window: the message accounting does not balance: confirmed for each subscription is 5, delivered + late + dead-lettered + corrupted + lost + pending + unknown is 4",
		},
		"another number than planned": {
			func(r *engine.Raw) { r.Planned = 6 },
			"whole run: 5 messages were scheduled; the plan has 6: the message accounting does not balance",
		},
	} {
		all := result.Messages{Scheduled: 5, Sent: 5, Confirmed: 5, Delivered: 5}
		raw := &engine.Raw{All: all, Measured: all, Subscriptions: 1, Planned: 5}
		tt.damage(raw)
		got := ""
		e := (&measurement{scenario: &scenario.Scenario{}}).evidence(raw)
		if err := judge.Accounting(&result.Result{Messages: raw.Measured, MessagesAll: raw.All, Evidence: e}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q; want %q", name, got, tt.want)
		}
	}
}

func TestSystemLossAfterWindowIsNotEarly(t *testing.T) {
	t.Parallel()
	m := &measurement{scenario: &scenario.Scenario{Load: scenario.Load{Closed: true}, WarmUp: time.Second, Measure: time.Second}}
	for to, want := range map[time.Duration]string{
		2 * time.Second:         "the system is gone: no answer",
		1500 * time.Millisecond: "ended early: no answer",
	} {
		r := &result.Result{Messages: result.Messages{Sent: 1, Confirmed: 1}, Run: result.Run{Gone: &result.Gone{Why: "no answer"}}}
		r.Evidence = m.evidence(&engine.Raw{Closed: true, To: int64(to), Gone: errors.New("no answer")})
		if got := judge.Verdict(r, nil).Checks[0]; got.Name != judge.CheckRun || got.Value != want {
			t.Errorf("window ends at %v: %+v; want %q", to, got, want)
		}
	}
}

func TestAProfileOfSeveralRatesVaries(t *testing.T) {
	t.Parallel()
	low, high := schedule.PerSecond(10), schedule.PerSecond(20)
	for name, tt := range map[string]struct {
		profile []schedule.Phase
		want    bool
	}{
		"none":                {nil, false},
		"one step":            {[]schedule.Phase{{From: low, To: low, For: 1}}, false},
		"the same step twice": {[]schedule.Phase{{From: low, To: low, For: 1}, {From: low, To: low, For: 2}}, false},
		"two steps":           {[]schedule.Phase{{From: low, To: low, For: 1}, {From: high, To: high, For: 1}}, true},
		"a ramp":              {[]schedule.Phase{{From: low, To: high, For: 1}}, true},
		"bursts":              {[]schedule.Phase{{Burst: 5, Every: 1, For: 9}}, false},
		"bursts after a step": {[]schedule.Phase{{From: low, To: low, For: 1}, {Burst: 5, Every: 1, For: 9}}, true},
	} {
		if got := varying(tt.profile); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
