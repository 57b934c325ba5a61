package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/layout"
)

// doctorCommand is `weir doctor`.
type doctorCommand struct {
	Strict  bool `help:"Exit with 5 when something is bad; without it, always with 0."`
	JSON    bool `name:"json" help:"Print a JSON object on stdout."`
	NoColor bool `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*doctorCommand) Help() string {
	return "Looks for what on this host would spoil a measurement now. It watches the processor for a second, and changes nothing. " +
		"Each check says what it found, whether that is ok, a warning or bad, and what to do about it. " +
		"The exit code is 0 whatever it finds; with --strict it is 5 when something is bad."
}

// A diagnosis is what --json prints.
type diagnosis struct {
	Schema   string         `json:"schema"`
	Weir     string         `json:"weir"`
	Host     host.Facts     `json:"host"`
	Health   host.Health    `json:"health"` // the worst of all findings; what is not known does not count
	Findings []host.Finding `json:"findings"`
}

// run examines the host.
func (c *doctorCommand) run(ctx context.Context, e *env) Code {
	return c.diagnose(ctx, e, host.Examine)
}

func (c *doctorCommand) diagnose(ctx context.Context, e *env, examine func(context.Context, host.Patient) []host.Finding) Code {
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	work := e.Dir
	if work == "" {
		work = "."
		if wd, err := os.Getwd(); err == nil {
			work = wd
		}
	}
	d := diagnosis{Schema: "weir.doctor/v1", Weir: buildinfo.Version(), Host: host.Environment(ctx)}
	d.Findings = examine(ctx, host.Patient{Work: work, Temp: os.TempDir()})
	if ctx.Err() != nil {
		e.complain(errors.New("interrupted"))
		return Interrupted
	}
	d.Health = worstHealth(d.Findings)
	if err := e.answer(c.JSON, &d, c.NoColor, d.show); err != nil {
		e.complain(fmt.Errorf("writing the findings: %w", err))
		return Failed
	}
	if c.Strict && d.Health == host.Bad {
		return Invalid
	}
	return OK
}

// severities are the healths, worst first, with the word and tone shown.
var severities = [...]struct {
	health host.Health
	word   string
	many   string // after a number of them
	tone   layout.Tone
}{
	{host.Bad, "bad", "bad", layout.Bad},
	{host.Warn, "warn", "warnings", layout.Doubtful},
	{host.Unknown, "not known", "not known", layout.Faint},
	{host.Healthy, "ok", "ok", layout.Good},
}

func worstHealth(fs []host.Finding) host.Health {
	for _, h := range []host.Health{host.Bad, host.Warn} {
		if slices.ContainsFunc(fs, func(f host.Finding) bool { return f.Health == h }) {
			return h
		}
	}
	return host.Healthy
}

// show puts the findings on a page.
func (d *diagnosis) show(p *layout.Page) {
	p.Say(d.about())
	counts := findings(p, d.Findings)
	p.Gap()
	p.Say(strings.Join(counts, ", ") + ".")
	says, next := d.conclusion()
	p.Say(says)
	p.Labelled("next", layout.Plain.Of(next))
}

// conclusion says what the findings mean for a measurement, and what to do next.
func (d *diagnosis) conclusion() (says, next string) {
	switch d.Health {
	case host.Bad:
		return "A run on this host now is probably SUSPECT or INVALID. Do what the arrows say, then look again.", "weir doctor"
	case host.Warn:
		return "This host can measure, but the warnings may make a run SUSPECT. weir calibrate tells how precise it is.", "weir calibrate"
	}
	return "Nothing here spoils a measurement. weir calibrate tells how precise this host is.", "weir calibrate"
}

// findings puts them on a page, the worst first, and returns how many there are of each
// severity that there are any of.
func findings(p *layout.Page, all []host.Finding) (counts []string) {
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

// advise says why a finding matters and what to do about it.
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

// about is a line on the host.
func (d *diagnosis) about() string {
	h := &d.Host
	parts := []string{cmp.Or(h.Hostname, "this host") + ":"}
	for _, s := range []string{h.CPUModel, h.Distribution, strings.TrimSpace(h.OS + " " + h.Kernel + " " + h.Arch)} {
		if s != "" {
			parts = append(parts, s+",")
		}
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ",")
}
