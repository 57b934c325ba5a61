package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// Rates over two windows state the windows' lengths, rates over one do not, and an unknown rate is not
// shown as a number.
func TestThroughputNamesDifferentWindows(t *testing.T) {
	perS, bytes := 16_000.0, 16e6
	base := result.Result{MessagesAll: result.Messages{Scheduled: 20_000, Delivered: 20_000}, Run: result.Run{Loop: result.LoopClosed}}
	for name, tt := range map[string]struct {
		t    result.Throughput
		want string
	}{
		"two windows": {
			result.Throughput{SentPerS: 40_000, ConfirmedPerS: 40_000, SentBytesPerS: 4e7, ReceivedPerS: &perS, ReceivedBytesPerS: &bytes, SendS: 0.5, ReceiveS: 1.25},
			"sent 40,000/s, confirmed 40,000/s in 500 ms, delivered 16,000/s in 1.25 s; 40.0 MB/s out, 16.0 MB/s in",
		},
		"one window": {
			result.Throughput{SentPerS: 40_000, ConfirmedPerS: 40_000, SentBytesPerS: 4e7, ReceivedPerS: &perS, ReceivedBytesPerS: &bytes, SendS: 0.5, ReceiveS: 0.5},
			"sent 40,000/s, confirmed 40,000/s, delivered 16,000/s; 40.0 MB/s out, 16.0 MB/s in",
		},
		"not known": {
			result.Throughput{SentPerS: 40_000, ConfirmedPerS: 40_000, SentBytesPerS: 4e7, SendS: 0.5},
			"sent 40,000/s, confirmed 40,000/s, delivered not known (all came in one call); 40.0 MB/s out",
		},
		"nothing came": {
			result.Throughput{},
			"throughput  received nothing\n",
		},
	} {
		r := base
		r.Throughput = tt.t
		if name == "nothing came" {
			r = result.Result{Run: result.Run{Mode: result.ModeConsume}}
		}
		b := rendered(t, Text, entry(&r), Options{})
		if !strings.Contains(unwrapped(b), unwrapped(tt.want)) {
			t.Errorf("%s: it does not say %q:\n%s", name, tt.want, b)
		}
	}
}
