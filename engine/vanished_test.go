package engine

import (
	"testing"

	"github.com/weirmq/weir/schedule"
)

// Missing messages of a subscription that ran dry are lost, unless they may have reached a process
// that cannot report them.
func TestDeliveriesToLostWorkerAreNotLost(t *testing.T) {
	none := schedule.Part{Index: 2, Count: 3} // of two
	for name, tt := range map[string]struct {
		share Worker
		there bool
		dry   bool
	}{
		"nobody vanished":   {Worker{Producers: schedule.Part{Count: 1}, Consumers: schedule.Part{Count: 1}}, true, true},
		"without consumers": {Worker{Producers: schedule.Part{Count: 1}, Consumers: none}, false, true},
		"with consumers":    {Worker{Producers: none, Consumers: schedule.Part{Index: 1, Count: 2}}, false, false},
	} {
		j := &assembly{shape: &shape{cfg: Config{Mode: Stream, Consumers: 2, Plan: schedule.Spec{Producers: 2}}}, parts: []*WorkerResult{{Worker: tt.share, Missing: !tt.there}}}
		if dry := !j.deaf(); dry != tt.dry {
			t.Errorf("%s: what is missing is lost: %v; want %v", name, dry, tt.dry)
		}
	}
}
