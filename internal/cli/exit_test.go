package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
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
