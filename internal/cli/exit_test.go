package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

func TestTheWorstCodeWins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		codes []Code
		want  Code
	}{
		{nil, OK},
		{[]Code{OK, OK}, OK},
		{[]Code{Missed}, Missed},
		{[]Code{Missed, Invalid}, Invalid},
		{[]Code{Invalid, Lost, Missed}, Lost},
		{[]Code{Refused, Invalid, Missed}, Refused},
		{[]Code{Refused, Lost}, Lost},
		{[]Code{Lost, Unreachable}, Unreachable},
		{[]Code{Unreachable, Failed}, Failed},
		{[]Code{Failed, Interrupted}, Interrupted},
		{[]Code{Interrupted, Usage, OK}, Usage},
	}
	for _, tt := range tests {
		if got := worst(tt.codes...); got != tt.want {
			t.Errorf("worst(%v) = %d; want %d", tt.codes, got, tt.want)
		}
	}
}

func TestEveryErrorHasItsCode(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]Code{
		nil:                   OK,
		engine.ErrContract:    Failed,
		engine.ErrGuarantee:   Usage,
		engine.ErrNotReady:    Unreachable,
		driver.ErrUnreachable: Unreachable,
		driver.ErrAuth:        Unreachable,
		driver.ErrUnsupported: Usage,
		context.Canceled:      Interrupted,

		&driver.OptionError{Name: "tls.ca", Err: os.ErrNotExist}: Usage,
		errors.New("other"): Unreachable,
	} {
		wrapped := err
		if err != nil {
			wrapped = fmt.Errorf("doing something: %w", err)
		}
		if got := codeOf(wrapped); got != want {
			t.Errorf("codeOf(%v) = %d; want %d", err, got, want)
		}
	}
}

func TestASuspectRunFailsWhereAValidOneIsRequired(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verdict, require result.Status
		want             Code
	}{
		{result.Valid, result.Valid, OK},
		{result.Suspect, result.Valid, Invalid},
		{result.Suspect, result.Suspect, OK},
		{result.Invalid, result.Suspect, Invalid},
	} {
		if got := worst(codesOf(&result.Verdict{Status: tt.verdict}, false, tt.require)...); got != tt.want {
			t.Errorf("%s where %s is required: %d; want %d", tt.verdict, tt.require, got, tt.want)
		}
	}
}

func TestAnObjectiveThatFailedOnADisturbedHostSaysSo(t *testing.T) {
	t.Parallel()
	failed := result.SLO{Expr: "e2e.p99 <= 1us", Status: result.Fail, Unit: "ns"}
	cpu := result.Check{Name: judge.CheckCPU, Status: result.Suspect}
	for _, tt := range []struct {
		name   string
		code   Code
		slo    result.SLO
		checks []result.Check
		want   string
	}{
		{"a time, on a busy host", Missed, failed, []result.Check{cpu}, "e2e.p99 <= 1us failed while the host was disturbed (cpu): "},
		{"figures that must not be used", Invalid, failed, []result.Check{{Name: judge.CheckLateness, Status: result.Invalid}, cpu}, "e2e.p99 <= 1us failed while the host was disturbed (lateness, cpu): "},
		{"a check that another tells", Missed, failed, []result.Check{{Name: judge.CheckRate, Status: result.Suspect, With: judge.CheckLateness}}, ""},
		{"a host that is well", Missed, failed, []result.Check{{Name: judge.CheckCPU, Status: result.Valid}, {Name: judge.CheckSteady, Status: result.Suspect}}, ""},
		{"a message lost, which no host does", Missed, result.SLO{Expr: "lost == 0", Status: result.Fail, Unit: "messages"}, []result.Check{cpu}, ""},
		{"an objective that passed", Invalid, result.SLO{Expr: "e2e.p99 <= 1s", Status: result.Pass, Unit: "ns"}, []result.Check{cpu}, ""},
		{"another reason to fail", Lost, failed, []result.Check{cpu}, ""},
	} {
		got := disturbed(tt.code, &result.Verdict{Checks: tt.checks, SLO: []result.SLO{tt.slo}})
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q; want %q", tt.name, got, tt.want)
		}
	}
}
