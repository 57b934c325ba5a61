package view

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"

	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Pages draws the pages that runs write into their folders. It is not safe for concurrent use.
type Pages struct {
	Session uint64 // messages in a user's session; 0: not requested

	courses map[string]*Course // by folder, as many as a page of several runs draws over one time
}

// Run draws a run in the folder dir.
func (p *Pages) Run(e result.Entry, dir string, percentiles []float64) ([]byte, error) {
	course, _ := NewCourse(e.Result, e.Result.Intervals, dir) // the run has already reported files that cannot be read
	if len(p.courses) < mostTogether {
		if p.courses == nil {
			p.courses = map[string]*Course{}
		}
		p.courses[e.Dir] = course
	}
	var b bytes.Buffer
	err := HTML(&b, Entry{Entry: e, Course: course}, Options{Session: p.Session, Percentiles: percentiles, files: filesOf(dir)})
	return b.Bytes(), err
}

// filesOf lists the files of a run's folder, for its page in that folder.
func filesOf(dir string) []string {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil // the page then names none
	}
	var files []string
	for _, f := range found {
		if f.Type().IsRegular() && f.Name() != result.FileReport {
			files = append(files, f.Name())
		}
	}
	return files
}

// Suite draws the table of a suite.
func (p *Pages) Suite(r *suite.Report) ([]byte, error) {
	var b bytes.Buffer
	err := SuiteReport{Report: r, above: true, To: func(dir string) string {
		return "./" + url.PathEscape(dir) + "/" + result.FileReport
	}}.HTML(&b)
	return b.Bytes(), err
}

// Runs draws several runs, where rest of the planned ones are missing.
func (p *Pages) Runs(entries []result.Entry, rest int) ([]byte, error) {
	all := Entries(entries)
	for i := range all {
		all[i].Course = p.courses[all[i].Dir]
	}
	var b bytes.Buffer
	err := OverviewHTML(&b, all, Options{Session: p.Session, Rest: rest, Link: func(dir string) string {
		return "./" + url.PathEscape(filepath.Base(dir)) + "/" + result.FileReport
	}})
	return b.Bytes(), err
}

// A Linking returns the address of a run's page, relative to the page that leads there; "" if there is none. A nil
// one has no address for any run.
type Linking func(dir string) string

// LinksFrom returns the addresses for a page in a file. A run has one if its folder lies below that of the page: else
// the page would lead nowhere once it is moved. path resolves a name that the user gave.
func LinksFrom(page string, path func(string) string) Linking {
	folder := filepath.Dir(path(page))
	return func(dir string) string {
		report := filepath.Join(path(dir), result.FileReport)
		below, err := filepath.Rel(folder, report)
		if err != nil || !filepath.IsLocal(below) {
			return ""
		}
		if _, err := os.Stat(report); err != nil {
			return ""
		}
		return "./" + (&url.URL{Path: filepath.ToSlash(below)}).EscapedPath()
	}
}

// span is a text that leads to a run's page.
func (l Linking) span(text, dir string) layout.Span {
	if l == nil || dir == "" {
		return plain(text)
	}
	return layout.Span{Text: text, Link: l(dir)}
}
