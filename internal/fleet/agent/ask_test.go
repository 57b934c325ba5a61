package agent

import (
	"os"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
)

// TestBusyAgentIsNotExamined: neither while a run is under way, nor while another
// look is.
func TestBusyAgentIsNotExamined(t *testing.T) {
	t.Parallel()
	self := must.Get(admission.NewSelf())(t)
	a := &Agent{Name: "a", Clock: pace.NewClock, Dir: os.TempDir(), base: pace.NewClock(), self: self}
	a.looker.mu.Lock()
	if l := a.look(); l.Error == "" || l.Findings != nil {
		t.Errorf("%+v while another check is running", l)
	}
	a.looker.mu.Unlock()
	a.task = &task{job: &protocol.Job{Run: "r1"}}
	if l := a.look(); !strings.Contains(l.Error, "r1") || l.Findings != nil {
		t.Errorf("%+v in a run", l)
	}
	a.task = nil
	first := a.look()
	if first.Error != "" || len(first.Findings) == 0 {
		t.Errorf("%+v; want findings", first)
	}
}
