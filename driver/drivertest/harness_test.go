package drivertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/golden"
)

func of(vs []verdict, name string) verdict {
	return vs[slices.IndexFunc(vs, func(v verdict) bool { return v.name == name })]
}

func TestAWaivedCheckThatFailsIsWaived(t *testing.T) {
	vs := try(t, "lets one overtake", nil, func(h *Harness) { h.Waive = map[string]string{"Order": "the system has a bug"} })
	v := of(vs, "Order")
	if v.status != waived || v.lines[0] != "the system has a bug" || len(v.lines) < 2 {
		t.Errorf("Order: %+v, want it waived with its reason and what failed", v)
	}
	// But the capability must not stay declared.
	if c := of(vs, "CapabilitiesTrue"); c.status != failed || !strings.Contains(c.lines[0], "Ordering is declared, and its check Order waived") {
		t.Errorf("CapabilitiesTrue: %+v", c)
	}
}

func TestAWaivedCheckThatPassesFails(t *testing.T) {
	vs := try(t, "", nil, func(h *Harness) { h.Waive = map[string]string{"FlushMeansAll": "once it failed"} })
	if v := of(vs, "FlushMeansAll"); v.status != failed || !strings.Contains(v.lines[0], "remove the waiver") {
		t.Errorf("FlushMeansAll: %+v", v)
	}
}

func TestWaiverOfInapplicableCheckFails(t *testing.T) {
	vs := try(t, "", mute, func(h *Harness) { h.Waive = map[string]string{"Order": "unordered"} })
	if v := of(vs, "Order"); v.status != failed || !strings.Contains(v.lines[0], "does not apply") {
		t.Errorf("Order: %+v", v)
	}
}

func TestLostConnectionNeedsCutOrAReason(t *testing.T) {
	uncut := func(h *Harness) { h.Cut = nil }
	if v := of(try(t, "", nil, uncut), "LostConnectionReported"); v.status != failed {
		t.Errorf("with neither: %+v", v)
	}
	reasoned := func(h *Harness) {
		h.Cut = nil
		h.Waive = map[string]string{"LostConnectionReported": "the server cannot be restarted here"}
	}
	if v := of(try(t, "", nil, reasoned), "LostConnectionReported"); v.status != waived {
		t.Errorf("with a reason: %+v", v)
	}
}

func TestHarnessWithoutCutReportsIt(t *testing.T) {
	vs := try(t, "", nil, func(h *Harness) { h.Cut = func() error { return errors.New("no such process") } })
	if v := of(vs, "LostConnectionReported"); v.status != failed || !strings.Contains(v.lines[0], "no such process") {
		t.Errorf("%+v", v)
	}
}

func TestHarnessStallsAndResumesSystem(t *testing.T) {
	stalls, resumes := 0, 0
	vs := try(t, "", nil, func(h *Harness) {
		stall := h.Stall
		h.Stall = func() (func(), error) {
			stalls++
			resume, err := stall()
			return func() { resumes++; resume() }, err
		}
	})
	if names, text := failures(vs); len(names) > 0 {
		t.Error(text)
	}
	if stalls != 3 || resumes != 3 {
		t.Errorf("stalled %d times and resumed %d times, want 3 and 3", stalls, resumes)
	}
}

func TestReplicasAreTestedGivenNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("", memCapabilities())
		m.nodes = 3
		s := newSuite(m.definition(), m.harness())
		for _, c := range checks() {
			if v := s.run(c); v.status != passed {
				t.Errorf("%+v", v)
			}
		}
	})
}

func TestFaultyWaiversAreReported(t *testing.T) {
	s := newSuite(newMemory("", memCapabilities()).definition(), Harness{Waive: map[string]string{"Oder": "typo", "Order": " "}})
	got := s.faults()
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " (")
	}
	want := []string{"waiver of Oder: there is no such check", "waiver of Order: has no reason"}
	golden.Equal(t, want, got, "")
}

func TestLastCheckExaminesOthers(t *testing.T) {
	names := Names()
	if names[len(names)-1] != "CapabilitiesTrue" {
		t.Errorf("the last check is %s", names[len(names)-1])
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != len(checks()) {
		t.Errorf("%d names for %d checks", n, len(checks()))
	}
}

func TestRunPassesASoundDriver(t *testing.T) {
	m := newMemory("", memCapabilities())
	h := m.harness()
	h.Expect = len(checks())
	h.Quiet = 10 * time.Millisecond // on the host's clock
	Run(t, m.definition(), h)
}
