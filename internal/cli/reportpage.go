package cli

import (
	"bytes"
	"fmt"

	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/result"
)

// page writes report.html, as weir report --html does of the folder. Of a log that
// could not be written, which is told of where it failed, it shows what there is.
func (m *measurement) page(r *result.Result, env *result.Environment) {
	course, _ := report.NewCourse(r.Intervals, m.folder.Dir())
	m.entry = report.Entry{Result: r, Scenario: m.scenario.YAML(), Hosts: env.Hosts, Weir: env.Weir.Version, Settings: env.System.Settings, Course: course}
	var b bytes.Buffer
	if err := report.HTML(&b, m.entry, report.Options{Session: m.session}); err != nil { // a Buffer takes all
		m.complain(fmt.Errorf("drawing %s: %w", result.FileReport, err))
		return
	}
	_ = m.folder.WriteReport(b.Bytes()) // kept by the folder
}

// page writes the page of several runs into the folder that they have in common.
func (s *series) page() error {
	var b bytes.Buffer
	if err := report.OverviewHTML(&b, s.entries, report.Options{Session: session(s.command.Session)}); err != nil {
		return err
	}
	return s.folder.WriteReport(b.Bytes())
}
