package judge

import (
	"slices"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/result"
)

func say(code string, values ...any) finding.Finding { return finding.New(code, values...) }

// A check is the finding of one check, as data.
type check struct {
	name         string
	status       result.Status
	value        []finding.Finding // what was found
	limit        finding.Finding   // the limit for it
	why          []finding.Finding // cause and advice
	inapplicable bool              // does not apply to the run
	with         string            // another check with the same finding
	part         float64           // measured amount, to order hosts of one status
	noted        bool              // something was found that decides nothing about the run
}

func valid(name string, limit finding.Finding, value ...finding.Finding) check {
	return check{name: name, status: result.Valid, limit: limit, value: value}
}

func notRun(name string, limit finding.Finding, why ...finding.Finding) check {
	return check{name: name, status: result.NotRun, limit: limit, why: why}
}

// inapplicable returns a check that does not apply to the run.
func inapplicable(name string, limit finding.Finding, why ...finding.Finding) check {
	c := notRun(name, limit, why...)
	c.inapplicable = true
	return c
}

// find sets the status and the reasons.
func (c *check) find(status result.Status, why ...finding.Finding) { c.status, c.why = status, why }

// finds is find with a different value.
func (c *check) finds(status result.Status, value finding.Finding, why ...finding.Finding) {
	c.status, c.value, c.why = status, []finding.Finding{value}, why
}

// suspect marks the check suspect if so.
func (c check) suspect(so bool, code string, values ...any) check {
	if so {
		c.find(result.Suspect, say(code, values...))
	}
	return c
}

// notes adds a reason to a check that decides nothing about the run, if so: what it may have moved is marked
// figure by figure.
func (c check) notes(so bool, code string, values ...any) check {
	if so {
		c.find(result.Valid, say(code, values...))
		c.noted = true
	}
	return c
}

func (c *check) add(code string, values ...any) { c.value = append(c.value, say(code, values...)) }

func (c *check) wrong() bool { return rankOf(c.status) > 0 }

// found reports whether the check found something, whether or not it decides anything.
func (c *check) found() bool { return c.wrong() || c.noted }

// stored renders the check's sentences.
func (c check) stored() result.Check {
	codes, values := finding.Data(slices.Concat([]finding.Finding{c.limit}, c.value, c.why)...)
	return result.Check{
		Name: c.name, Status: c.status, Inapplicable: c.inapplicable, Noted: c.noted, With: c.with,
		Value: finding.Join(c.value, "; "), Limit: c.limit.String(), Why: finding.Join(c.why, " "),
		Codes: codes[1:], Values: values,
	}
}

// when returns value if so, else nil.
func when(so bool, value any) any {
	if !so {
		return nil
	}
	return value
}
