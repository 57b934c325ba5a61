package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// TestReportShowsWeakenedConfirmationTime: of several times the sum, and of a run
// without any nothing.
func TestReportShowsWeakenedConfirmationTime(t *testing.T) {
	r := &result.Result{System: result.System{
		Driver: "artemis", Server: result.Server{Name: "artemis", Version: "2.56.0", Nodes: 2}, Guarantee: "replicated", Copies: "all", Stable: "none",
	}}
	text := func() string {
		page := &layout.Page{}
		(&single{Page: page, r: r}).system()
		return strings.Join(strings.Fields(layout.Text{}.Page(page)), " ")
	}
	const plainly = "a confirmation means: several nodes have the message, in memory only (replicated, all copies, stable none)"
	if got := text(); !strings.Contains(got, plainly) || strings.Contains(got, "(for") {
		t.Errorf("a run without faults says %q", got)
	}
	r.System.Weaker = []result.Weaker{
		{FromNS: 15e9, ToNS: 40e9, Guarantee: "received", Copies: "1", Stable: "fsync"},
		{FromNS: 40e9, ToNS: 42e9, Guarantee: "received", Copies: "1", Stable: "none"},
		{FromNS: 60e9, ToNS: 70e9, Guarantee: "received", Copies: "1", Stable: "fsync"},
	}
	if got, want := text(), plainly+" (for 35.0 s: received, 1 copy, stable fsync; for 2.00 s: received, 1 copy, stable none)"; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
}
