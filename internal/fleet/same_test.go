package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/schedule"
)

// plansOf are scenarios whose messages must not depend on the number of agents.
func plansOf() []string {
	return []string{
		`
topology: {producers: 8, consumers: 8}
load: {rate: 1000/s}
warmup: 100ms
measure: 300ms`, `
topology: {producers: 8, consumers: 8, destinations: 3, subscriptions: 2}
load: {rate: 1000/s, arrival: poisson}
warmup: 100ms
measure: 300ms`, `
topology: {producers: 11, consumers: 9, destinations: 2}
load:
  batch: 1..5
  profile:
  - {rate: 500/s, for: 200ms}
  - {ramp: 500/s..1500/s, for: 200ms}
  - {burst: 50, every: 100ms, for: 200ms}
warmup: 0s`,
	}
}

const common = "\nmessage: {size: 64B}\nsystem: {driver: memory}\ndrain: 20s\n"

// planOf returns the marks of all messages that a plan has, in the order of marks. Each producer
// of these plans has one destination.
func planOf(t *testing.T, spec schedule.Spec) []mark {
	t.Helper()
	s := must.Get(schedule.New(spec))(t)
	m := &memory{}
	next := map[uint32]uint64{}
	for i, due := range s.Due(schedule.Part{Count: 1}) {
		p := s.Producer(i)
		stream := s.Stream(p, s.Destination(p, 0))
		m.sent = append(m.sent, mark{stream, next[stream], due})
		next[stream]++
	}
	return m.marks()
}

// asPlanned checks that a run sent all of its plan, except what pacers left unsent, and reported, after the
// host stalled for over a second.
func asPlanned(t *testing.T, raw *engine.Raw, got, plan []mark, who, yaml string) {
	t.Helper()
	exact(t, raw, raw.All.Sent+raw.All.Unsent)
	in := map[mark]int{}
	for _, m := range plan {
		in[m]++
	}
	for _, m := range got {
		if in[m]--; in[m] < 0 {
			t.Fatalf("%s: message %d of stream %d, due at %d ns, is not in the plan:%s", who, m.seq, m.stream, m.due, yaml)
		}
	}
	left := uint64(len(plan) - len(got))
	if raw.All.Sent != uint64(len(got)) || raw.All.Unsent != left || raw.Behind < left {
		t.Errorf("%s: %d sent, %d unsent, %d of them behind; the system got %d, the plan has %d:%s",
			who, raw.All.Sent, raw.All.Unsent, raw.Behind, len(got), len(plan), yaml)
	}
}

// Whoever sends them, over a network or not, a scenario's messages have the same producers, numbers and due
// times.
func TestFleetSendsSameMessagesAsOneProcess(t *testing.T) {
	t.Parallel()
	alone, drivers := memoryDrivers(t)
	plans := make([][]mark, len(plansOf()))
	for i, yaml := range plansOf() {
		r := runOf(t, drivers, "alone", yaml+common)
		plans[i] = planOf(t, r.Config.Plan)
		raw := here(t, r, 1)
		asPlanned(t, raw, alone.marks(), plans[i], "alone", yaml)
	}
	for _, agents := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(agents), func(t *testing.T) {
			t.Parallel()
			m, drivers := memoryDrivers(t)
			w := fleetOf(t, agents, drivers)
			for i, yaml := range plansOf() {
				id := fmt.Sprintf("run%d", i)
				raw := here(t, runOf(t, drivers, id, yaml+common), agents)
				asPlanned(t, raw, m.marks(), plans[i], "in this process", yaml)
				raw = w.do(t, runOf(t, drivers, id, yaml+common)).Raw
				asPlanned(t, raw, m.marks(), plans[i], "over a network", yaml)
				if stages := strings.Count(yaml, "for: "); len(raw.Stages) != stages {
					t.Errorf("%d stages; want %d:%s", len(raw.Stages), stages, yaml)
				}
			}
		})
	}
}
