package engine

import (
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// Every third destination's messages arrive on another's: each is counted, is lost to its own, and
// no figure counts it as a delivery. A consumer of one destination detects it as well as one of
// several.
func TestAMessageFromAnotherDestinationIsMisrouted(t *testing.T) {
	for name, consumers := range map[string]int{"a consumer of all": 1, "a consumer of each": 3, "consumers of two and one": 2} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				f := &fake{late: time.Millisecond, route: func(d string) string {
					if d == "t-d1" {
						return "t-d2"
					}
					return d
				}}
				cfg := config(f, 1000)
				cfg.Plan.Producers, cfg.Plan.Destinations, cfg.Consumers = 1, 3, consumers
				raw := must.Get(Run(t.Context(), nil, cfg))(t)
				m := raw.All
				astray := m.Sent / 3
				if m.Sent < 100 || m.Misrouted < astray || m.Misrouted > astray+1 {
					t.Errorf("%d of %d messages are misrouted; want a third", m.Misrouted, m.Sent)
				}
				expect(t, "lost", m.Lost, m.Misrouted)
				expect(t, "delivered", m.Delivered, m.Sent-m.Misrouted)
				expect(t, "duplicated, reordered, foreign", m.Duplicated+m.Reordered+m.Foreign, 0)
				expect(t, "samples of e2e", raw.Snapshot.Kinds[measure.E2EResponse][measure.Measure].Total(), raw.Measured.Delivered)
				expect(t, "kinds of failure", raw.Errors, []ErrorCount{{Class: "misrouted", Text: errMisrouted.Error(), Count: m.Misrouted}})
			})
		})
	}
}

// A driver that cannot tell where a message came from says so, and that is not a source of this
// consumer.
func TestMessageWithoutSourceIsMisrouted(t *testing.T) {
	virtual(t, func(t *testing.T) {
		sh := must.Get(newShape(config(&fake{}, 1000)))(t)
		k := &receiver{run: &run{shape: sh}, owner: anybody, serves: []int{0}}
		for source, want := range map[int32]bool{-1: false, 0: true, 1: false} {
			if got := k.isPlace(source, 0); got != want {
				t.Errorf("isPlace(%d) = %v; want %v", source, got, want)
			}
		}
	})
}
