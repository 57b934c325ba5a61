package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/view/layout"
)

// A Diagnosis is the output of weir doctor --json.
type Diagnosis struct {
	Schema   string         `json:"schema"`
	Weir     string         `json:"weir"`
	Host     host.Facts     `json:"host"`
	Health   host.Health    `json:"health"` // worst of all findings; unknown ones do not count
	Findings []host.Finding `json:"findings"`
}

// Diagnose returns the diagnosis of a host, by weir of a version.
func Diagnose(version string, facts host.Facts, findings []host.Finding) *Diagnosis {
	return &Diagnosis{Schema: "weir.doctor/v1", Weir: version, Host: facts, Health: host.Worst(findings), Findings: findings}
}

// severities are the healths, worst first, with their words and tones.
var severities = [...]struct {
	health host.Health
	word   string
	many   string // after a count
	tone   layout.Tone
}{
	{host.Bad, "bad", "bad", layout.Bad},
	{host.Warn, "warn", "warnings", layout.Doubtful},
	{host.Unknown, "not known", "not known", layout.Faint},
	{host.Healthy, "ok", "ok", layout.Good},
}

// Show puts the findings on a page.
func (d *Diagnosis) Show(p *layout.Page) {
	p.Say(d.about())
	counts := ShowFindings(p, d.Findings)
	p.Gap()
	p.Say(strings.Join(counts, ", ") + ".")
	says, next := d.conclusion()
	p.Say(says)
	p.Labelled("next", layout.Plain.Of(next))
}

func (d *Diagnosis) conclusion() (says, next string) {
	switch d.Health {
	case host.Bad:
		return "A run on this host now is probably SUSPECT or INVALID.", "do what the first arrow says, then weir doctor again"
	case host.Warn:
		return "This host can measure, but the warnings may make a run SUSPECT. weir calibrate tells how precise it is.", "weir calibrate"
	}
	return "Nothing here spoils a measurement. weir calibrate tells how precise this host is.", "weir calibrate"
}

// ShowFindings writes the findings, worst first, and returns the count of each severity that occurs.
func ShowFindings(p *layout.Page, all []host.Finding) (counts []string) {
	const wordWidth = 9
	longest := 0
	for _, f := range all {
		longest = max(longest, len(f.Name))
	}
	for _, s := range severities {
		n := 0
		for _, f := range all {
			if f.Health != s.health {
				continue
			}
			if n++; n == 1 {
				p.Gap()
			}
			t := layout.Listing("", "", "")
			t.Columns[0].Least, t.Columns[1].Least = wordWidth, longest
			t.Row("", f.Name, f.Found)
			t.Rows[0][0] = s.tone.Of(s.word)
			p.Table(t)
			if f.Do != "" {
				advise(p.Inset(wordWidth+2), f)
			}
		}
		if n > 0 {
			many := s.many
			if n == 1 {
				many = strings.TrimSuffix(many, "s")
			}
			counts = append(counts, fmt.Sprintf("%d %s", n, many))
		}
	}
	return counts
}

// advise explains why a finding matters and what to do about it.
func advise(p *layout.Page, f host.Finding) {
	if f.Why != "" {
		p.Say(layout.Sentence(f.Why))
	}
	t := layout.Listing("", "")
	t.Row("->", f.Do)
	p.Table(t)
	for _, c := range f.Commands {
		p.Inset(4).Verbatim("$ " + c) // never broken: it is to be copied
	}
}

func (d *Diagnosis) about() string {
	h := &d.Host
	parts := []string{cmp.Or(h.Hostname, "this host") + ":"}
	for _, s := range []string{h.CPUModel, h.Distribution, strings.TrimSpace(h.OS + " " + h.Kernel + " " + h.Arch)} {
		if s != "" {
			parts = append(parts, s+",")
		}
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ",")
}
