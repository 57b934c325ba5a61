package series

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/result"
)

// ofRun is what a run received from other runs of weir; nil if nothing.
func (m *measurement) ofRun(raw *engine.Raw) *result.OfRun {
	if n := m.scenario.Of(); n != 0 {
		return &result.OfRun{Booked: true, Number: n, Received: raw.All.Deliveries() - raw.All.Foreign, Corrupted: raw.All.Corrupted + raw.Damaged}
	}
	o := raw.OfRun
	if o == nil {
		return nil
	}
	of := &result.OfRun{Number: uint64(o.Run), Several: o.Several, Received: o.Messages, Corrupted: o.Corrupted}
	if of.Several {
		of.Number = 0
	}
	return of
}
