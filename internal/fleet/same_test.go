package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/schedule"
)

// plansOf are scenarios whose messages must not depend on how many send them.
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

// messagesOf counts what a plan has.
func messagesOf(t *testing.T, spec schedule.Spec) (n uint64) {
	t.Helper()
	s, err := schedule.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	for range s.Due(schedule.Part{Count: 1}) {
		n++
	}
	return n
}

// Whoever sends it, and whether over a network or not, a scenario's messages are
// the same: of which producer, with which number, due when.
func TestTheSameIsSentWhoeverSendsIt(t *testing.T) {
	t.Parallel()
	alone, drivers := memoryDrivers(t)
	want := make([][]mark, len(plansOf()))
	for i, yaml := range plansOf() {
		r := runOf(t, drivers, "alone", yaml+common)
		n := messagesOf(t, r.Config.Plan)
		exact(t, here(t, r, 1), n)
		if want[i] = alone.marks(); uint64(len(want[i])) != n {
			t.Fatalf("%d messages were sent, the plan has %d:%s", len(want[i]), n, yaml)
		}
	}
	for _, agents := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(agents), func(t *testing.T) {
			t.Parallel()
			m, drivers := memoryDrivers(t)
			w := fleetOf(t, agents, drivers)
			for i, yaml := range plansOf() {
				id := fmt.Sprintf("run%d", i)
				exact(t, here(t, runOf(t, drivers, id, yaml+common), agents), uint64(len(want[i])))
				if got := m.marks(); !slices.Equal(got, want[i]) {
					t.Errorf("in this process others were sent than by one: %d, want %d:%s", len(got), len(want[i]), yaml)
				}
				raw := w.do(t, runOf(t, drivers, id, yaml+common)).Raw
				exact(t, raw, uint64(len(want[i])))
				if stages := strings.Count(yaml, "for: "); len(raw.Stages) != stages {
					t.Errorf("%d stages; want %d:%s", len(raw.Stages), stages, yaml)
				}
				if got := m.marks(); !slices.Equal(got, want[i]) {
					t.Errorf("over a network others were sent than by one: %d, want %d:%s", len(got), len(want[i]), yaml)
				}
			}
		})
	}
}
