package cli

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

func TestWhatARunGaveDecidesItsCode(t *testing.T) {
	t.Parallel()
	fine := func() *engine.Raw {
		all := result.Messages{Scheduled: 5, Sent: 5, Confirmed: 5, Delivered: 5}
		return &engine.Raw{All: all, Measured: all, Subscriptions: 1, Planned: 5}
	}
	tests := []struct {
		name    string
		damage  func(*engine.Raw)
		verdict result.Verdict
		want    Code
		says    string
	}{
		{"nothing is wrong", func(*engine.Raw) {}, result.Verdict{}, OK, ""},
		{
			"a message too few", func(r *engine.Raw) { r.Measured.Delivered = 4 },
			result.Verdict{},
			Failed,
			"weir: measured window: the books do not balance: confirmed for each subscription is 5, delivered + late + corrupted + lost + pending + unknown is 4\n",
		},
		{
			"another number than planned", func(r *engine.Raw) { r.Planned = 6 },
			result.Verdict{},
			Failed,
			"weir: whole run: 5 messages were scheduled; the plan has 6: the books do not balance\n",
		},
		{"the system is gone", func(r *engine.Raw) { r.Gone = errors.New("connection given up") }, result.Verdict{}, Unreachable, "weir: connection given up\n"},
		{
			"the run ended at once", func(r *engine.Raw) { r.Failed = "a producer is full" },
			result.Verdict{},
			Invalid,
			"weir: the run ended at once: a producer is full\n",
		},
		{"a message that was not confirmed arrived corrupted", func(r *engine.Raw) { r.Damaged = 1 }, result.Verdict{}, Lost, ""},
		{
			"messages failed", func(*engine.Raw) {},
			result.Verdict{Status: result.Invalid, Checks: []result.Check{{Name: judge.CheckFailed, Status: result.Suspect}}},
			Refused, "",
		},
		{
			"messages failed, as many as may", func(*engine.Raw) {},
			result.Verdict{Checks: []result.Check{{Name: judge.CheckFailed, Status: result.Valid}}},
			OK, "",
		},
		{"interrupted", func(r *engine.Raw) { r.Interrupted = true }, result.Verdict{Status: result.Invalid}, Interrupted, ""},
		{"the figures must not be used", func(*engine.Raw) {}, result.Verdict{Status: result.Invalid}, Invalid, ""},
		{"an objective was missed", func(*engine.Raw) {}, result.Verdict{SLO: []result.SLO{{Status: result.Pass}, {Status: result.Fail}}}, Missed, ""},
		{"an objective was not decided", func(*engine.Raw) {}, result.Verdict{SLO: []result.SLO{{Status: result.Undecided}}}, OK, ""},
		{
			"missed in a run that must not be used", func(*engine.Raw) {},
			result.Verdict{Status: result.Invalid, SLO: []result.SLO{{Status: result.Fail}}},
			Invalid, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			said := &watch{}
			m := &measurement{env: &env{World: World{Stderr: said}}, scenario: &scenario.Scenario{}}
			raw := fine()
			tt.damage(raw)
			if got := worst(m.codes(raw, &result.Result{Verdict: tt.verdict})...); got != tt.want {
				t.Errorf("exit code %d; want %d", got, tt.want)
			}
			if said.String() != tt.says {
				t.Errorf("it says %q; want %q", said, tt.says)
			}
		})
	}
}

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
