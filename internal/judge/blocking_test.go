package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestABlockIsTheSystemsOwnWord: where the system said why it took no messages, the checks
// repeat that, and do not blame the load, the generator or the drain.
func TestABlockIsTheSystemsOwnWord(t *testing.T) {
	const says = "The system answered, and took no messages for 5.0 s, until the end of the drain: low on memory"
	blocks := []result.Block{ // of two producers at a time
		{FromNS: 2e9, ToNS: 4e9, Why: "low on memory"}, {FromNS: 3e9, ToNS: 7e9, Why: "low on memory", Open: true},
	}
	in := good()
	in.Evidence = &result.Evidence{BySystem: blocks, Errors: &result.Errors{Kinds: 1}, Subscriptions: 1}
	in.MessagesAll = result.Messages{Scheduled: 100, Sent: 100, Confirmed: 70, Unconfirmed: 30}
	if c := failed(of(&in)).stored(); c.Status != result.Suspect || !strings.Contains(c.Why, says) || strings.Contains(c.Why, "carry the load") || strings.Contains(c.Why, "limits.failed") {
		t.Errorf("failed messages: %s, %q", c.Status, c.Why)
	}
	in.Messages = result.Messages{Scheduled: 100, Sent: 100, Unconfirmed: 100}
	if c := run(of(&in)).stored(); c.Status != result.Invalid || !strings.Contains(c.Why, says) || strings.Contains(c.Why, "longer drain") {
		t.Errorf("nothing confirmed: %s, %q", c.Status, c.Why)
	}
	in.Messages = result.Messages{Scheduled: 100, Unsent: 100}
	if c := run(of(&in)).stored(); c.Status != result.Invalid || !strings.Contains(c.Why, says) {
		t.Errorf("nothing sent: %s, %q", c.Status, c.Why)
	}
	if why := of(&in).systemBehind().String(); !strings.HasPrefix(why, says) || strings.Contains(why, "Lower the rate") {
		t.Errorf("confirmations fall behind: %q", why)
	}
	in.Evidence = &result.Evidence{Errors: &result.Errors{Kinds: 1, Worst: "blocked: OOM", Failed: 30, Blocked: 30}}
	in.MessagesAll = result.Messages{Scheduled: 100, Sent: 100, Confirmed: 70, Failed: 30}
	if c := failed(of(&in)).stored(); !strings.Contains(c.Why, "failed 30 of them because it takes no messages") || strings.Contains(c.Why, "carry the load") {
		t.Errorf("failed by blocks: %q", c.Why)
	}
}
