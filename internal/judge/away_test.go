package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestASystemThatWeirTookAwayIsNotBlamed: who counts as gone from weir's own fault on.
func TestASystemThatWeirTookAwayIsNotBlamed(t *testing.T) {
	restart := result.Fault{Do: "restart", To: "1", Processes: []string{"server-1"}, BeganNS: 5e9, UndoneNS: new(int64(7e9))}
	kill := result.Fault{Do: "kill", To: "1", Processes: []string{"server-1"}, BeganNS: 5e9}
	none := result.Fault{Do: "kill", To: "1", BeganNS: 5e9, Error: "no server runs"}
	for what, x := range map[string]struct {
		from  int64
		fault result.Fault
		lost  bool // the system is there, without what it held
		says  string
	}{
		"it ended in order":        {6.5e9, restart, false, "had not come back from weir's own restart 1 at 3.0 s when the drain ended"},
		"it is killed":             {5e9, kill, false, "weir's own kill 1 at 3.0 s was never undone"},
		"it went away before":      {3e9, kill, false, ""},
		"it came back, and went":   {9e9, restart, false, ""},
		"the fault did not happen": {5e9, none, false, ""},
		"it came back empty":       {5e9, restart, true, "the system came back from weir's own restart 1 at 3.0 s without what the run needs"},
	} {
		in := good()
		in.Run.WarmUpS = new(2.0)
		in.Run.Gone = &result.Gone{FromNS: x.from, Why: "nothing was confirmed", Answers: x.lost}
		in.Faults = []result.Fault{x.fault}
		says := ByOwnFault(&in).String()
		if (says == "") != (x.says == "") || !strings.Contains(says, x.says) {
			t.Errorf("%s: %q; want %q", what, says, x.says)
		}
		c := run(of(&in)).stored()
		if c.Status != result.Invalid || (x.says != "") == strings.HasPrefix(c.Value, "the system is gone") {
			t.Errorf("%s: %s, %q", what, c.Status, c.Value)
		}
	}
}
