package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/netpartition"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/slowdisk"
	"github.com/weirmq/weir/result"
)

// A Code is an exit code of the program.
type Code int

// The exit codes.
const (
	OK          Code = 0   // done; the verdict says how far figures can be used
	Failed      Code = 1   // weir failed: message accounting does not balance, a file could not be written, or a contract was broken
	Usage       Code = 2   // a flag or the scenario is wrong, or not supported by this system
	Unreachable Code = 3   // the system could not be reached or started, or was gone before the run ended
	Missed      Code = 4   // an objective failed or a regression was found
	Invalid     Code = 5   // the run is invalid, or a self-test failed: the figures must not be used
	Lost        Code = 6   // messages lost or corrupted, duplicated or reordered beyond what the driver declares
	Refused     Code = 7   // the system failed or never confirmed more messages than the scenario allows
	Interrupted Code = 130 // SIGINT, SIGTERM, SIGHUP, SIGQUIT or SIGABRT; what was measured is written and marked
)

// table lists the codes in order of precedence, with their meaning to users.
var table = []struct {
	code  Code
	means string
}{
	{Usage, "a flag or the scenario is wrong, or the system cannot do what they ask for"},
	{Interrupted, "interrupted by SIGINT, SIGTERM, SIGHUP, SIGQUIT or SIGABRT; the figures until then are written"},
	{Failed, "weir failed: the message accounting does not balance, a file could not be written, or a fault could not be done"},
	{Unreachable, "the system could not be reached or started, or was gone before the run ended"},
	{Lost, "messages were lost or corrupted, or came twice or out of order where the system must not do that"},
	{Refused, "the system failed messages, or never confirmed them, beyond limits.failed"},
	{Invalid, "the run is INVALID: do not use its figures; with --require valid also SUSPECT. A search for the capacity found no range. A self-test failed"},
	{Missed, "an objective (slo) failed, or with --strict is undecided; a regression was found"},
	{OK, "done"},
}

// worst returns the code with the highest precedence, OK if there is none.
func worst(codes ...Code) Code {
	for _, x := range table {
		if slices.Contains(codes, x.code) {
			return x.code
		}
	}
	return OK
}

// codesOf returns the exit codes for a verdict and its objectives. strict treats undecided objectives as
// missed. require is the minimum verdict.
func codesOf(v *result.Verdict, strict bool, require result.Status) (codes []Code) {
	if v.Status == result.Invalid || v.Status == result.Suspect && require == result.Valid {
		codes = append(codes, Invalid)
	}
	if slices.ContainsFunc(v.Checks, func(c result.Check) bool { return c.Name == judge.CheckFailed && c.Status == result.Suspect }) {
		codes = append(codes, Refused)
	}
	if slices.ContainsFunc(v.SLO, func(s result.SLO) bool {
		return s.Outcome() == result.Fail || strict && s.Outcome() == result.Undecided
	}) {
		codes = append(codes, Missed)
	}
	return codes
}

// disturbed is judge.Waive of the verdict if the exit code is that of a missed objective or of unusable
// figures; "" otherwise.
func disturbed(code Code, v *result.Verdict) string {
	if code != Missed && code != Invalid {
		return ""
	}
	return judge.Waive(v).String()
}

// requirement reads the minimum verdict from --require and the environment.
func (e *env) requirement(flag *string) (result.Status, error) {
	name, word := "--require", ""
	if flag != nil {
		word = *flag
	} else if v, ok := e.Env("WEIR_REQUIRE"); ok {
		name, word = "WEIR_REQUIRE", v
	}
	switch s := result.Status(strings.ToLower(word)); {
	case s == result.Valid, s == result.Suspect:
		return s, nil
	case word == "" && flag == nil:
		return result.Suspect, nil
	}
	return "", fmt.Errorf("%s: %q is not known (valid, suspect)", name, word)
}

// codeOf is the exit code of a run without figures because of err.
func codeOf(err error) Code {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, engine.ErrContract):
		return Failed
	case errors.Is(err, engine.ErrGuarantee), errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrTooLarge),
		errors.Is(err, network.ErrMissing), errors.Is(err, broker.ErrNoDisks), errors.Is(err, slowdisk.ErrMissing), errors.Is(err, clockstep.ErrMissing), errors.Is(err, netpartition.ErrMissing),
		errors.Is(err, protocol.ErrNotAllowed), errors.Is(err, admission.ErrScheme):
		return Usage
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	if wrong := (*placement.Error)(nil); errors.As(err, &wrong) {
		return Usage
	}
	if wrong := (*driver.OptionError)(nil); errors.As(err, &wrong) { // found only on use: a missing file
		return Usage
	}
	// Other failures before the first message are the system's.
	return Unreachable
}

// fail reports an error in one line and returns its code.
func (e *env) fail(err error) Code {
	code := codeOf(err)
	if errors.Is(err, broker.ErrKept) {
		code = Usage
	}
	// The code already says it.
	text := strings.TrimPrefix(err.Error(), driver.ErrUnsupported.Error()+": ")
	if rest, ok := strings.CutSuffix(text, ": "+context.Canceled.Error()); ok && code == Interrupted {
		text = "interrupted: " + rest
	}
	return e.because(code, errors.New(strings.ReplaceAll(text, "\n", "; ")))
}

// usage reports an error in the user's input.
func usage(e *env, err error) Code {
	return e.refused(errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// refused returns the code for invalid user input and reports why, with each fault of a scenario in a line
// of its own.
func (e *env) refused(why error) Code {
	faults := (scenario.Faults)(nil)
	if !errors.As(why, &faults) {
		e.complain(why)
	}
	for _, f := range faults {
		e.say("%v", f)
	}
	return Usage
}

// because reports why, and returns the code.
func (e *env) because(code Code, why error) Code {
	e.complain(why)
	return code
}

// failed reports an internal failure, and returns its code.
func (e *env) failed(why error) Code { return e.because(Failed, why) }

// printed is the exit code of a verb after printing what.
func (e *env) printed(what string, err error) Code {
	if err != nil {
		return e.failed(fmt.Errorf("writing %s: %w", what, err))
	}
	return OK
}

// unheard is the exit code of a verb that prints: on an error nobody is reading.
func unheard(err error) Code {
	if err != nil {
		return Failed
	}
	return OK
}
