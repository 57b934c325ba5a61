package judge

import (
	"testing"

	"github.com/weirmq/weir/result"
)

// If the system said why it took no messages, the checks repeat that, and do not blame the load, the
// generator or the drain.
func TestBlockReasonComesFromSystem(t *testing.T) {
	in := good()
	in.Evidence = &result.Evidence{Errors: &result.Errors{Kinds: 1}, Subscriptions: 1, BySystem: []result.Block{ // of two producers at a time
		{FromNS: 2e9, ToNS: 4e9, Why: "low on memory"}, {FromNS: 3e9, ToNS: 7e9, Why: "low on memory.", Open: true},
	}}
	if by := BlockedBySystem(&in); by.Values["blocked"] != int64(5e9) || by.Values["open"] != true || by.Values["whys"] != "low on memory; low on memory" {
		t.Errorf("%+v", by)
	}
	wants := func(c check, status result.Status, why string) {
		if t.Helper(); c.status != status || whyOf(c) != why {
			t.Errorf("%s: %s, %s; want %s, %s", c.name, c.status, whyOf(c), status, why)
		}
	}
	in.MessagesAll = result.Messages{Scheduled: 100, Sent: 100, Confirmed: 70, Unconfirmed: 30}
	wants(failed(of(&in)), result.Suspect, "system.blocks_sentence system.blocks failed.accepted failed.lacks")
	in.Messages = result.Messages{Scheduled: 100, Sent: 100, Unconfirmed: 100}
	wants(run(of(&in)), result.Invalid, "system.blocks_sentence system.blocks run.blocked")
	in.Messages = result.Messages{Scheduled: 100, Unsent: 100}
	wants(run(of(&in)), result.Invalid, "run.sent_nothing unsent.waited system.blocks")
	if why := of(&in).systemBehind(); why.Code != "system.blocks_sentence" {
		t.Errorf("confirmations fall behind: %q", why)
	}
	in.Evidence = &result.Evidence{Errors: &result.Errors{Kinds: 1, Worst: "blocked: OOM", Failed: 30, Blocked: 30}}
	in.MessagesAll = result.Messages{Scheduled: 100, Sent: 100, Confirmed: 70, Failed: 30}
	wants(failed(of(&in)), result.Suspect, "failed.blocks failed.frequent failed.accepted failed.lacks")
}
