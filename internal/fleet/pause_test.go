package fleet

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	driverjs "github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
)

// calmly repeats a run until the host was fast enough: a busy host leaves messages unsent, or an agent no
// time to pause.
func calmly(t *testing.T, do func() (calm bool)) {
	t.Helper()
	for range 5 {
		if do() || t.Failed() {
			return
		}
	}
	needs.Host(t, "time", "the agents had none in five runs")
}

// Consumers of three agents, one with another clock, pause for the same second, and the waiting messages are counted over all.
func TestAgentsPauseTogether(t *testing.T) {
	t.Parallel()
	calmly(t, func() bool { return pausesTogether(t) })
}

// The coordinator sees how many wait at all agents, and sets the time at which their consumers resume.
func TestAgentsPauseUntilBacklogReachesCount(t *testing.T) {
	t.Parallel()
	calmly(t, func() bool {
		_, drivers := memoryDrivers(t)
		w := fleetOf(t, 3, drivers)
		r := runOf(t, drivers, "run", "topology: {producers: 2, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 3s\nconsume: {pause: at 300ms until 200}"+common)
		raw := w.do(t, r).Raw
		exact(t, raw, 3200)
		p := raw.Paused
		if p == nil || raw.All.Unsent > 0 || p.Resumed >= int64(3*time.Second) {
			return false
		}
		// All agents hear of the end 0.3 s before it.
		if p.Resumed < int64(800*time.Millisecond) || p.Waiting < 200 || p.Old.Total() == 0 || p.Live.Total() == 0 {
			t.Errorf("paused from %v to %v, %d waited, %d old messages and %d live ones; want 200 or more, from 0.5 s to 0.8 s or later",
				time.Duration(p.Began), time.Duration(p.Resumed), p.Waiting, p.Old.Total(), p.Live.Total())
		}
		for _, x := range raw.Workers {
			if x.Paused.Resumed != p.Resumed {
				t.Errorf("an agent resumed at %v, another at %v", time.Duration(x.Paused.Resumed), time.Duration(p.Resumed))
			}
		}
		return true
	})
}

// pausesTogether reports whether the agents had time to pause.
func pausesTogether(t *testing.T) bool {
	t.Helper()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 3, drivers, func(a *agent.Agent) {
		if a.Name == "b" {
			c := wrongClock(t, "constant=25ms,drift=100ppm")
			a.Clock, a.OwnTime = func() *pace.Clock { return c }, true
		}
	})
	r := runOf(t, drivers, "run", "topology: {producers: 2, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 2500ms\nconsume: {pause: at 300ms for 1s}"+common)
	var mu sync.Mutex
	kinds := map[string]int{}
	r.Config.OnEvent = func(e engine.Event) {
		mu.Lock()
		defer mu.Unlock()
		if name, text, _ := strings.Cut(e.Text, ": "); e.Kind == "pause" {
			kinds[text]++
			kinds[name]++
		}
	}
	raw := w.do(t, r).Raw
	exact(t, raw, 2700)
	p := raw.Paused
	if p == nil || raw.All.Unsent > 0 || p.Began >= int64(1200*time.Millisecond) || p.Resumed >= int64(2700*time.Millisecond) {
		return false
	}
	if p.Resumed != int64(1500*time.Millisecond) || p.Began < int64(500*time.Millisecond) || p.Step < int64(2*time.Millisecond) {
		t.Errorf("paused from %d to %d, looks each %d", p.Began, p.Resumed, p.Step)
	}
	if p.Waiting == 0 || p.Waiting > 1500 || p.Old.Total() == 0 || p.Old.Total() > 1500 {
		t.Errorf("%d waited, %d came that were due before; want about 1,000", p.Waiting, p.Old.Total())
	}
	if p.Old.Total()+p.Live.Total() > 2700 || p.Live.Total() == 0 || p.Old.Max() < int64(200*time.Millisecond) {
		t.Errorf("%d old ones, the oldest after %v, and %d live ones", p.Old.Total(), time.Duration(p.Old.Max()), p.Live.Total())
	}
	mu.Lock()
	defer mu.Unlock()
	if kinds["the consumers take nothing from here on"] != 3 || kinds["the consumers continue"] != 3 || kinds["a"] != 2 {
		t.Errorf("told %v", kinds)
	}
	return true
}

// A consumer closes every 100 ms, on whichever agent.
func TestAgentsTakeTurnsInChurn(t *testing.T) {
	t.Parallel()
	drivers := registry(t, driverjs.Definition())
	w := fleetOf(t, 2, drivers)
	r := runOf(t, drivers, "run", fmt.Sprintf("system: {driver: jetstream, start: none, options: {address: [%q]}}\n", server(t))+
		"topology: {producers: 2, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 1050ms\nconsume: {churn: 100ms}\n")
	raw := w.do(t, r).Raw
	exact(t, raw, 1250)
	if c := raw.Churned; c == nil || c.Changes < 2 || c.Changes > 20 {
		t.Errorf("%+v; want about 10 changes", c)
	}
}
