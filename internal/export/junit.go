package export

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

// The elements of JUnit's XML that build servers read.
type (
	testSuites struct {
		XMLName  xml.Name    `xml:"testsuites"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Suites   []testSuite `xml:"testsuite"`
	}
	testSuite struct {
		Name      string     `xml:"name,attr"`
		Tests     int        `xml:"tests,attr"`
		Failures  int        `xml:"failures,attr"`
		Skipped   int        `xml:"skipped,attr"`
		Time      string     `xml:"time,attr"`
		Timestamp string     `xml:"timestamp,attr,omitempty"`
		Cases     []testCase `xml:"testcase"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *outcome `xml:"failure,omitempty"`
		Skipped *outcome `xml:"skipped,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	outcome struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes a test suite for each run, with cases for its verdict, loss, failed messages, each
// objective, and the exit code of weir run. An undecided objective is skipped. A suspect verdict passes,
// with the reason.
func junit(w io.Writer, runs []Run) error {
	all := testSuites{Name: "weir"}
	for _, r := range runs {
		s := suiteOf(r)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func suiteOf(r Run) testSuite {
	x := r.Result
	s := testSuite{Name: r.name(), Time: number(x.Run.MeasureS)}
	if at, err := time.Parse(time.RFC3339Nano, x.Run.StartedAt); err == nil {
		s.Timestamp = at.UTC().Format("2006-01-02T15:04:05") // without a zone, as readers expect
	}
	class := "weir." + x.System.Driver
	verdict := testCase{Class: class, Name: "verdict"}
	for _, c := range x.Verdict.Checks {
		if c.Status == result.Suspect || c.Status == result.Invalid {
			verdict.Out += fmt.Sprintf("%s  %s: %s (limit %s)\n", c.Status, c.Name, c.Value, c.Limit)
		}
	}
	if x.Verdict.Status == result.Invalid {
		verdict.Failure = &outcome{Message: "INVALID: the figures must not be used", Text: verdict.Out}
		verdict.Out = ""
	}
	loss := testCase{Class: class, Name: "no message lost or corrupted"}
	if m := &x.MessagesAll; m.Lost+m.Corrupted > 0 {
		loss.Failure = &outcome{Message: fmt.Sprintf("lost %d, corrupted %d of %d sent", m.Lost, m.Corrupted, m.Sent)}
	}
	refused := testCase{Class: class, Name: "no message failed beyond limits.failed"}
	for _, c := range x.Verdict.Checks {
		if c.Name == judge.CheckFailed && c.Status == result.Suspect {
			refused.Failure = &outcome{Message: fmt.Sprintf("%s (limit %s)", c.Value, c.Limit), Text: c.Why}
		}
	}
	s.Cases = append(s.Cases, verdict, loss, refused)
	for i := range x.Verdict.SLO {
		s.Cases = append(s.Cases, objectiveCase(class, &x.Verdict.SLO[i]))
	}
	exit := testCase{Class: class, Name: "exit code 0"}
	if e := x.Exit; e != nil {
		exit.Failure = &outcome{Message: fmt.Sprintf("exit code %d: %s", e.Code, e.Why)}
	}
	s.Cases = append(s.Cases, exit)
	for _, c := range s.Cases {
		s.Tests++
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	return s
}

func objectiveCase(class string, o *result.SLO) testCase {
	c := testCase{Class: class, Name: o.Expr}
	found := "found " + o.Found().Text(func(v float64) string {
		if o.Unit == unitNS {
			return time.Duration(v).String()
		}
		return number(v) + " " + o.Unit
	})
	switch o.Outcome() {
	case result.Fail:
		c.Failure = &outcome{Message: found, Text: o.Why}
	case result.Undecided:
		c.Skipped = &outcome{Message: "not decided: " + o.Why}
	default:
		c.Out = found
	}
	return c
}
