package offset_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
)

// An agent on each kind of wrong clock asks a coordinator on a right one. In
// virtual time both can be read at one instant, so that the truth is known.
func TestInstantsOfAWrongClockAreCorrected(t *testing.T) {
	for _, c := range []struct {
		wrong string
		steps int
	}{
		{"constant=25ms", 0},
		{"drift=40ppm", 0},
		{"constant=-3h,drift=-30ppm", 0},
		{"constant=25ms,drift=40ppm,step=15s:3ms", 1},
		{"step=15s:-3ms", 1},
	} {
		t.Run(c.wrong, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := pace.ParseWrong(c.wrong)
				if err != nil {
					t.Fatal(err)
				}
				coordinator := pace.NewClock()
				wrong, err := pace.NewWrongClock(w)
				if err != nil {
					t.Fatal(err)
				}
				agent := wrong.At(coordinator.Epoch().MonotonicNS) // so that it is off by the constant, too
				random := rand.New(rand.NewPCG(1, 2))
				travel := func() {
					time.Sleep(50*time.Microsecond + time.Duration(random.ExpFloat64()*float64(200*time.Microsecond)))
				}
				track := offset.NewTrack(0)
				type instant struct{ agent, coordinator int64 }
				var instants []instant
				for coordinator.Now() < int64(30*time.Second) {
					e := offset.Exchange{T1: agent.Now()}
					travel()
					e.T2, e.T3 = coordinator.Now(), coordinator.Now()
					travel()
					e.T4 = agent.Now()
					if err := track.Add(e); err != nil && c.steps == 0 {
						t.Fatal(err)
					}
					time.Sleep(100 * time.Millisecond)
					instants = append(instants, instant{agent.Now(), coordinator.Now()})
				}
				course, ok := track.Fit()
				if !ok || len(course.Steps) != c.steps {
					t.Fatalf("%+v, want %d steps", course, c.steps)
				}
				if off := -int64(w.Constant); c.steps == 0 && w.DriftPPM == 0 && (course.Lines[0].Offset > off+course.Bound() || course.Lines[0].Offset < off-course.Bound()) {
					t.Errorf("offset %d, want %d", course.Lines[0].Offset, off)
				}
				for _, i := range instants {
					got, bound := course.At(i.agent)
					if off := i.agent + got - i.coordinator; max(off, -off) > bound {
						t.Fatalf("the agent's %d is corrected by %d ± %d, which is off by %d; %+v", i.agent, got, bound, off, course)
					}
				}
			})
		})
	}
}
