package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// Not if it is unknown, or if weir did not publish.
func TestClientLineNamesPublisher(t *testing.T) {
	for _, tt := range []struct {
		path, mode string
		want       bool
	}{{"weir's own publisher", "stream", true}, {"weir's own publisher", "consume", false}, {"", "stream", false}} {
		r := &result.Result{Run: result.Run{Mode: tt.mode}, System: result.System{Driver: "x", Client: "lib v1", ClientPath: tt.path}}
		b := rendered(t, Text, entry(r), Options{})
		if got := strings.Contains(b, "client lib v1: weir's own publisher\n"); got != tt.want || !strings.Contains(b, "client lib v1") {
			t.Errorf("%+v:\n%s", tt, b)
		}
	}
}
