package fleet

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	driverjs "github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/engine"
)

// TestAgentsPauseTogether: consumers of two agents take nothing for the same second, and what
// waits then is counted over both. Where the host has no time for an agent until the pause is
// nearly over, the run says nothing of it and is done again.
func TestAgentsPauseTogether(t *testing.T) {
	t.Parallel()
	for range 5 {
		if pausesTogether(t) {
			return
		}
	}
	t.Error("the host had no time for the agents in five runs")
}

// TestAgentsPauseUntilSoManyWait: the coordinator sees how many wait at all agents, and fixes the
// instant at which their consumers go on.
func TestAgentsPauseUntilSoManyWait(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 3, drivers)
	r := runOf(t, drivers, "run", "topology: {producers: 2, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 3s\nconsume: {pause: at 300ms until 200}"+common)
	raw := w.do(t, r).Raw
	exact(t, raw, 3200)
	p := raw.Paused
	if p == nil {
		t.Fatal("the run does not tell of the pause")
	}
	// 200 wait after 0.2 s. That is known 0.1 s later, and all agents hear of the end 0.3 s before it.
	if p.Resumed < int64(1000*time.Millisecond) || p.Resumed >= int64(3*time.Second) {
		t.Errorf("paused from %v to %v; want an end after 1 s, and long before that of the run", time.Duration(p.Began), time.Duration(p.Resumed))
	}
	if p.Waiting < 200 || p.Old.Total() == 0 || p.Live.Total() == 0 {
		t.Errorf("%d waited, %d old messages and %d live ones; want 200 or more", p.Waiting, p.Old.Total(), p.Live.Total())
	}
}

// pausesTogether reports whether the agents had time to pause.
func pausesTogether(t *testing.T) bool {
	t.Helper()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 3, drivers)
	r := runOf(t, drivers, "run", "topology: {producers: 2, consumers: 3}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 2500ms\nconsume: {pause: at 300ms for 1s}"+common)
	var mu sync.Mutex
	told := map[string]int{}
	r.Config.OnEvent = func(e engine.Event) {
		mu.Lock()
		defer mu.Unlock()
		if name, text, _ := strings.Cut(e.Text, ": "); e.Kind == "pause" {
			told[text]++
			told[name]++
		}
	}
	raw := w.do(t, r).Raw
	exact(t, raw, 2700)
	p := raw.Paused
	if p == nil {
		t.Fatal("the run does not tell of the pause")
	}
	if p.Began >= int64(1200*time.Millisecond) {
		return false
	}
	if p.Resumed != int64(1500*time.Millisecond) || p.Began < int64(500*time.Millisecond) || p.Step < int64(2*time.Millisecond) {
		t.Errorf("paused from %d to %d, looks each %d", p.Began, p.Resumed, p.Step)
	}
	if p.Waiting == 0 || p.Waiting > 1500 || p.Old.Total() == 0 || p.Old.Total() > 1500 {
		t.Errorf("%d waited, %d came that were due before; want about 1,000", p.Waiting, p.Old.Total())
	}
	if p.Old.Total()+p.Live.Total() > 2700 || p.Live.Total() < 800 || p.Old.Max() < int64(200*time.Millisecond) {
		t.Errorf("%d old ones, the oldest after %v, and %d live ones", p.Old.Total(), time.Duration(p.Old.Max()), p.Live.Total())
	}
	mu.Lock()
	defer mu.Unlock()
	if told["the consumers take nothing from here on"] != 3 || told["the consumers go on"] != 3 || told["a"] != 2 {
		t.Errorf("told %v", told)
	}
	return true
}

// TestAgentsTakeTurnsInChurn: a consumer closes every 100 ms, whichever agent has it.
func TestAgentsTakeTurnsInChurn(t *testing.T) {
	t.Parallel()
	drivers := registry(t, driverjs.Definition())
	w := fleetOf(t, 2, drivers)
	r := runOf(t, drivers, "run", fmt.Sprintf("system: {driver: jetstream, start: none, options: {address: [%q]}}\n", server(t))+
		"topology: {producers: 2, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 200ms\nmeasure: 1050ms\nconsume: {churn: 100ms}\n")
	raw := w.do(t, r).Raw
	if m := raw.All; m.Sent != 1250 || m.Confirmed != 1250 || m.Delivered != 1250 {
		t.Errorf("%+v", m)
	}
	if c := raw.Churned; c == nil || c.Changes < 2 || c.Changes > 20 {
		t.Errorf("%+v; want about 10 changes", c)
	}
}
