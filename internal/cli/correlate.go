package cli

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// correlate takes the intervals of the percentiles anew, from what the slices of
// the run tell of how much its samples depend on one another.
func (m *measurement) correlate(raw *engine.Raw, l *result.Latency) {
	for k, d := range map[measure.Kind]*result.Dist{
		measure.SendResponse: l.Send.Response, measure.SendService: l.Send.Service, measure.SendLateness: l.Send.Lateness,
		measure.SendHeldUp: l.Send.HeldUp, measure.SendBlocked: l.Send.Blocked, measure.SendFailed: l.Send.Failed,
		measure.SendOnTime: l.Send.OnTime, measure.E2EOnTime: l.E2E.OnTime, measure.RTTOnTime: l.RTT.OnTime,
		measure.E2EResponse: l.E2E.Response, measure.E2EService: l.E2E.Service,
		measure.RTTResponse: l.RTT.Response, measure.RTTService: l.RTT.Service, measure.Settle: l.Settle,
	} {
		if d != nil {
			m.slices.Widen(k, d, &raw.Snapshot.Kinds[k][measure.Measure], &raw.Censored[k][measure.Measure])
		}
	}
}
