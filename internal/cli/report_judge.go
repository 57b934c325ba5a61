package cli

import (
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view"
)

// What weir report --judge can fail on.
const (
	failOnChange  = "change"
	failOnVerdict = "verdict"
)

// checkGate refuses a --fail-on with nothing to check, and reads --require.
func (c *reportCommand) checkGate(e *env) (err error) {
	if c.require, err = e.requirement(c.Require); err != nil {
		return err
	}
	switch {
	case c.Require != nil && (c.FailOn == nil || *c.FailOn != failOnVerdict):
		return errors.New("--require: needs --judge --fail-on verdict")
	case c.FailOn == nil:
		return nil
	case *c.FailOn != failOnChange && *c.FailOn != failOnVerdict:
		return fmt.Errorf("--fail-on: %q is not known (%s, %s)", *c.FailOn, failOnChange, failOnVerdict)
	case !c.Judge:
		return errors.New("--fail-on: needs --judge")
	}
	return nil
}

// gate is the exit code of a written report, by the repeated judgements.
func (c *reportCommand) gate(e *env, entries []view.Entry) Code {
	if c.FailOn == nil {
		return OK
	}
	changed, partly := 0, 0
	codes := []Code{OK}
	for _, x := range entries {
		deserved := codesOf(&x.Result.Verdict, false, c.require)
		codes = append(codes, deserved...)
		if says := disturbed(worst(deserved...), &x.Result.Verdict); says != "" && *c.FailOn == failOnVerdict {
			e.complain(fmt.Errorf("%s: exit code %d: %s", x.Dir, worst(deserved...), says))
		}
		if len(x.Review.Changes) > 0 {
			changed++
		}
		if !x.Review.Whole() {
			partly++
		}
	}
	switch {
	case *c.FailOn == failOnVerdict:
		return worst(codes...)
	case changed > 0:
		e.say("weir: %s from the stored verdict", quantity.Counted(changed, "run differs", "runs differ"))
		return Missed
	case partly > 0: // a gate that cannot close is useless
		return e.because(Usage, fmt.Errorf("--fail-on: no change was found, but %s could be judged in part only (results that hold all that the checks need)",
			quantity.Counted(partly, "run", "runs")))
	}
	return OK
}
