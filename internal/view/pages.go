package view

import (
	"bytes"

	"github.com/weirmq/weir/internal/suite"
	"github.com/weirmq/weir/result"
)

// Pages draws the pages that runs write into their folders. One goroutine uses it.
type Pages struct {
	Session uint64 // messages of a user's session; 0: not asked for

	courses map[string]*Course // of runs by their folders, as many as a page of several draws
}

// Run draws a run in the folder dir.
func (p *Pages) Run(e result.Entry, dir string, percentiles []float64) ([]byte, error) {
	course, _ := NewCourse(e.Result, e.Result.Intervals, dir) // of a file that cannot be read the run has told
	if len(p.courses) < mostDrawn {
		if p.courses == nil {
			p.courses = map[string]*Course{}
		}
		p.courses[e.Dir] = course
	}
	var b bytes.Buffer
	err := HTML(&b, Entry{Entry: e, Course: course}, Options{Session: p.Session, Percentiles: percentiles})
	return b.Bytes(), err
}

// Suite draws the table of a suite.
func (p *Pages) Suite(r *suite.Report) ([]byte, error) { return SuiteReport{r}.HTML() }

// Runs draws several runs, of which rest more were planned.
func (p *Pages) Runs(entries []result.Entry, rest int) ([]byte, error) {
	all := Entries(entries)
	for i := range all {
		all[i].Course = p.courses[all[i].Dir]
	}
	var b bytes.Buffer
	err := OverviewHTML(&b, all, Options{Session: p.Session, Rest: rest})
	return b.Bytes(), err
}
