package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/result"
)

// exit returns the exit code for result.json; nil: OK.
func (c *runCommand) exit(o *series.Outcome) *result.Exit {
	code := worst(c.codes(o)...)
	if code == OK {
		return nil
	}
	return &result.Exit{Code: int(code), Why: c.reason(code, o)}
}

// said formats an exit code with its reason, the last line of a run.
func said(x *result.Exit) error { return fmt.Errorf("exit code %d: %s", x.Code, x.Why) }

// ended reports last why the command ends with code. Of several runs it names the first with that code.
func (e *env) ended(code Code, exits map[string]*result.Exit, dirs []string) {
	var with []string
	for _, dir := range dirs {
		if x := exits[dir]; x != nil && x.Code == int(code) {
			with = append(with, dir)
		}
	}
	switch {
	case code == OK || len(with) == 0: // no run, or one without figures: its error explains it
	case len(dirs) == 1:
		e.complain(said(exits[with[0]]))
	default:
		e.complain(fmt.Errorf("exit code %d, in %d of %s, first in %s: %s", code, len(with), quantity.Counted(len(dirs), "run", "runs"), with[0], exits[with[0]].Why))
	}
}

// reason explains the exit code of a run with figures.
func (c *runCommand) reason(code Code, o *series.Outcome) string {
	v := &o.Result.Verdict
	if says := disturbed(code, v); says != "" {
		return says
	}
	switch code {
	case Interrupted:
		return "the run was interrupted: the figures cover the part that ran"
	case Failed:
		first, _, _ := strings.Cut(errors.Join(o.Err, o.Accounting, o.Undone, o.Written).Error(), "\n")
		return first
	case Unreachable:
		if by := judge.ByOwnFault(o.Result).String(); by != "" {
			return by + ": " + o.Gone.Error()
		}
		return o.Gone.Error()
	case Lost:
		return view.Broken(o.Result)
	}
	if code == Invalid && o.Failed != "" {
		return "the run ended at once: " + o.Failed
	}
	why := deserved(code, v, c.strict)
	if by := judge.BlockedBySystem(o.Result).String(); by != "" && (code == Refused || code == Invalid) {
		why += "; " + by
	}
	return why
}

// deserved explains an exit code of codesOf for a verdict and its objectives.
func deserved(code Code, v *result.Verdict, strict bool) string {
	var failed, undecided []string
	refused := ""
	for _, x := range v.Checks {
		if x.Name == judge.CheckRun && x.Status == result.Invalid && code == Invalid { // its name says nothing
			return "the run is INVALID: " + x.Value
		}
		if x.Name == judge.CheckFailed {
			refused = fmt.Sprintf("%s; the limit is %s", x.Value, x.Limit)
		}
	}
	for i := range v.SLO {
		switch x := &v.SLO[i]; {
		case x.Outcome() == result.Fail:
			failed = append(failed, x.Expr)
		case x.Outcome() == result.Undecided && strict:
			undecided = append(undecided, x.Expr)
		}
	}
	why := judge.Reasons(v)
	if why != "" {
		why = " for " + why
	}
	switch {
	case code == Refused:
		return refused
	case code == Invalid && v.Status == result.Suspect:
		return "the run is SUSPECT" + why + ", and --require asks for VALID"
	case code == Invalid:
		return "the run is INVALID" + why + ": do not use its figures"
	case len(failed) > 0:
		return strings.Join(failed, ", ") + " failed"
	}
	return strings.Join(undecided, ", ") + " could not be decided, and --strict counts that as failed"
}
