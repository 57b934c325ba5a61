package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

func TestFailedObjectiveNamesDisturbedHost(t *testing.T) {
	t.Parallel()
	failed := result.SLO{Expr: "e2e.p99 <= 1us", Status: result.Fail, Unit: "ns"}
	cpu := result.Check{Name: CheckCPU, Status: result.Suspect}
	for name, tt := range map[string]struct {
		slo    result.SLO
		checks []result.Check
		want   string
	}{
		"a time, on a busy host":             {failed, []result.Check{cpu}, "e2e.p99 <= 1us failed while the host was disturbed (cpu): "},
		"figures that must not be used":      {failed, []result.Check{{Name: CheckLateness, Status: result.Invalid}, cpu}, "e2e.p99 <= 1us failed while the host was disturbed (lateness, cpu): "},
		"a check that another tells":         {failed, []result.Check{{Name: CheckRate, Status: result.Suspect, With: CheckLateness}}, ""},
		"a host that is well":                {failed, []result.Check{{Name: CheckCPU, Status: result.Valid}, {Name: CheckSteady, Status: result.Suspect}}, ""},
		"a message lost, which no host does": {result.SLO{Expr: "lost == 0", Status: result.Fail, Unit: "messages"}, []result.Check{cpu}, ""},
		"nothing was sent":                   {failed, []result.Check{{Name: CheckRun, Status: result.Invalid, Value: "nothing was sent"}, cpu}, ""},
		"an objective that passed":           {result.SLO{Expr: "e2e.p99 <= 1s", Status: result.Pass, Unit: "ns"}, []result.Check{cpu}, ""},
	} {
		got := Waive(&result.Verdict{Checks: tt.checks, SLO: []result.SLO{tt.slo}}).String()
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q; want %q", name, got, tt.want)
		}
	}
}
