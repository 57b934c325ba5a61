package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/textpage"
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
	if err := c.print(e, &d); err != nil {
		e.complain(fmt.Errorf("writing the findings: %w", err))
		return Failed
	}
	if c.Strict && d.Health == host.Bad {
		return Invalid
	}
	return OK
}

func (c *doctorCommand) print(e *env, d *diagnosis) error {
	if c.JSON {
		return writeJSON(e.Stdout, d)
	}
	p := e.newPage(c.NoColor)
	d.show(p)
	return p.To(e.Stdout)
}

// severities are the healths, worst first, with the word and colour shown.
var severities = [...]struct {
	health host.Health
	word   string
	many   string // after a number of them
	colour string
}{
	{host.Bad, "bad", "bad", "\x1b[1;31m"},
	{host.Warn, "warn", "warnings", "\x1b[1;33m"},
	{host.Unknown, "not known", "not known", "\x1b[2m"},
	{host.Healthy, "ok", "ok", "\x1b[1;32m"},
}

func worstHealth(fs []host.Finding) host.Health {
	for _, h := range []host.Health{host.Bad, host.Warn} {
		if slices.ContainsFunc(fs, func(f host.Finding) bool { return f.Health == h }) {
			return h
		}
	}
	return host.Healthy
}

// show writes the findings.
func (d *diagnosis) show(p *textpage.Page) {
	p.Paragraph(0, d.about())
	p.Line("\n" + strings.Join(findings(p, d.Findings), ", ") + ".")
}

// findings writes them, the worst first, and returns how many there are of each
// severity that there are any of.
func findings(p *textpage.Page, all []host.Finding) (counts []string) {
	const wordWidth = 11
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
				p.Line("")
			}
			word := p.Paint(s.colour, s.word) + strings.Repeat(" ", wordWidth-len(s.word))
			for i, l := range textpage.Wrapped(f.Found, p.Width-wordWidth-longest-2) {
				if i > 0 {
					p.Line(strings.Repeat(" ", wordWidth+longest+2) + l)
					continue
				}
				p.Line(fmt.Sprintf("%s%-*s  %s", word, longest, f.Name, l))
			}
			if f.Do != "" {
				advise(p, wordWidth, f)
			}
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s.many))
		}
	}
	return counts
}

// advise writes why a finding matters and what to do about it.
func advise(p *textpage.Page, indent int, f host.Finding) {
	if f.Why != "" {
		p.Paragraph(indent, sentence(f.Why))
	}
	p.Table(indent, [][]string{{"->", f.Do}})
	for _, c := range f.Commands {
		p.Line(strings.Repeat(" ", indent) + "    $ " + c) // never broken: it is to be copied
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

// writeJSON writes v as the programs that read us want it: indented, one object.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
