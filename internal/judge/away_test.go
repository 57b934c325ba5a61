package judge

import (
	"testing"

	"github.com/weirmq/weir/result"
)

// The system counts as gone since weir's own fault.
func TestSystemNotBlamedForInjectedOutage(t *testing.T) {
	restart := result.Fault{Do: "restart", To: "1", Processes: []string{"server-1"}, BeganNS: 5e9, UndoneNS: new(int64(7e9))}
	kill := result.Fault{Do: "kill", To: "1", Processes: []string{"server-1"}, BeganNS: 5e9}
	none := result.Fault{Do: "kill", To: "1", BeganNS: 5e9, Error: "no server runs"}
	for what, x := range map[string]struct {
		from  int64
		fault result.Fault
		lost  bool // the system is there, without what it held
		says  string
	}{
		"it ended in order":        {6.5e9, restart, false, "away.not_back"},
		"it is killed":             {5e9, kill, false, "away.never_undone"},
		"it went away before":      {3e9, kill, false, ""},
		"it came back, and went":   {9e9, restart, false, ""},
		"the fault did not happen": {5e9, none, false, ""},
		"it came back empty":       {5e9, restart, true, "away.empty"},
	} {
		in := good()
		in.Run.WarmUpS = new(2.0)
		in.Run.Gone = &result.Gone{FromNS: x.from, Why: "nothing was confirmed", Answers: x.lost}
		in.Faults = []result.Fault{x.fault}
		code := ByOwnFault(&in).Code
		if code != x.says {
			t.Errorf("%s: %q; want %q", what, code, x.says)
		}
		c := run(of(&in)).stored()
		if c.Status != result.Invalid || says(c, "run.look") != (x.says == "") {
			t.Errorf("%s: %s, %q", what, c.Status, c.Value)
		}
	}
}
