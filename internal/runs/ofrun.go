package runs

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/result"
)

// ofRun is what a run received of other runs of weir; nil for nothing.
func ofRun(o *engine.OfRun) *result.OfRun {
	if o == nil {
		return nil
	}
	of := &result.OfRun{Number: uint64(o.Run), Several: o.Several, Received: o.Messages, Corrupted: o.Corrupted}
	if of.Several {
		of.Number = 0
	}
	return of
}
