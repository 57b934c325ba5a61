package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/schedule"
)

func TestSleepingThreadDueBetweenMessages(t *testing.T) {
	t.Parallel()
	step := func(perSecond uint64) schedule.Phase {
		return schedule.Phase{From: schedule.PerSecond(perSecond), To: schedule.PerSecond(perSecond), For: time.Second}
	}
	for name, x := range map[string]struct {
		plan schedule.Spec
		want time.Duration
	}{
		"one message a period":      {schedule.Spec{Phases: []schedule.Phase{step(1000)}}, 666_666},
		"one message in ten":        {schedule.Spec{Phases: []schedule.Phase{step(100)}}, 666_666},
		"two messages a period":     {schedule.Spec{Phases: []schedule.Phase{step(2000)}}, 333_333},
		"a closed loop":             {schedule.Spec{}, 0},
		"a ramp":                    {schedule.Spec{Phases: []schedule.Phase{{From: schedule.PerSecond(1), To: schedule.PerSecond(2), For: time.Second}}}, 0},
		"bursts":                    {schedule.Spec{Phases: []schedule.Phase{{Burst: 10, Every: time.Second, For: time.Second}}}, 0},
		"two rates":                 {schedule.Spec{Phases: []schedule.Phase{step(1000), step(2000)}}, 0},
		"messages that come random": {schedule.Spec{Arrival: schedule.Arrival{Kind: schedule.Poisson}, Phases: []schedule.Phase{step(1000)}}, 0},
	} {
		if got := betweenMessages(&x.plan); got != int64(x.want) {
			t.Errorf("%s: %v; want %v", name, time.Duration(got), x.want)
		}
	}
}
