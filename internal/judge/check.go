package judge

import (
	"slices"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

func say(code string, values ...any) finding.Finding { return finding.New(code, values...) }

// A check is what one check found, as data.
type check struct {
	name         string
	status       result.Status
	value        []finding.Finding // what was found
	limit        finding.Finding   // what that is held against
	why          []finding.Finding // the cause, and what to do
	inapplicable bool              // there is nothing to judge in such a run
	with         string            // another check with the same finding
	part         float64           // how much there was of what it judges, to order hosts of one status
}

func valid(name string, limit finding.Finding, value ...finding.Finding) check {
	return check{name: name, status: result.Valid, limit: limit, value: value}
}

func notRun(name string, limit finding.Finding, why ...finding.Finding) check {
	return check{name: name, status: result.NotRun, limit: limit, why: why}
}

// inapplicable is a check for which there is nothing to judge in such a run.
func inapplicable(name string, limit finding.Finding, why ...finding.Finding) check {
	c := notRun(name, limit, why...)
	c.inapplicable = true
	return c
}

// find sets what the check finds wrong, and why.
func (c *check) find(status result.Status, why ...finding.Finding) { c.status, c.why = status, why }

// finds is find where the value is another, too.
func (c *check) finds(status result.Status, value finding.Finding, why ...finding.Finding) {
	c.status, c.value, c.why = status, []finding.Finding{value}, why
}

// suspect is the check, suspect where it is so.
func (c check) suspect(so bool, code string, values ...any) check {
	if so {
		c.find(result.Suspect, say(code, values...))
	}
	return c
}

func (c *check) add(code string, values ...any) { c.value = append(c.value, say(code, values...)) }

func (c *check) wrong() bool { return rankOf(c.status) > 0 }

// stored returns the check with its sentences.
func (c check) stored() result.Check {
	codes, values := finding.Data(slices.Concat([]finding.Finding{c.limit}, c.value, c.why)...)
	return result.Check{
		Name: c.name, Status: c.status, Inapplicable: c.inapplicable, With: c.with,
		Value: finding.Join(c.value, "; "), Limit: c.limit.String(), Why: finding.Join(c.why, " "),
		Codes: codes[1:], Values: values,
	}
}

// when is a value where it is so, and else none.
func when(so bool, value any) any {
	if !so {
		return nil
	}
	return value
}
