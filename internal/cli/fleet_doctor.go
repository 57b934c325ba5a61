package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/layout"
)

// fleetDoctor is `weir fleet doctor`.
type fleetDoctor struct {
	lookout `embed:""`
	Strict  bool `help:"Exit with 5 when something is bad; without it, always with 0."`
	JSON    bool `name:"json" help:"Print a JSON object on stdout."`
	NoColor bool `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*fleetDoctor) Help() string {
	return lookHelp + " Each idle agent watches its host for half a second as weir doctor does, and changes nothing. The list shows its warnings and what is bad. " +
		"The exit code is 0 whatever it finds; with --strict it is 5 when something is bad. It is 3 when no agent is there. " + fleetHelp
}

// fleetDiagnosis is what --json prints.
type fleetDiagnosis struct {
	Schema   string             `json:"schema"`
	Weir     string             `json:"weir"`
	At       string             `json:"at"`
	Agents   []string           `json:"agents"` // that answered
	Health   host.Health        `json:"health"` // the worst of all findings; what is not known does not count
	Findings []survey.Complaint `json:"findings"`
}

// run looks at the fleet.
func (c *fleetDoctor) run(ctx context.Context, e *env) Code {
	sight, code := c.look(ctx, e, true)
	if sight == nil {
		return code
	}
	d := fleetDiagnosis{Schema: "weir.fleet-doctor/v1", Weir: buildinfo.Version(), At: sight.At, Agents: []string{}, Findings: sight.Check(buildinfo.Version())}
	if d.Findings == nil {
		d.Findings = []survey.Complaint{}
	}
	for _, x := range sight.Agents {
		if !x.Gone {
			d.Agents = append(d.Agents, x.Name)
		}
	}
	var all []host.Finding
	for _, f := range d.Findings {
		all = append(all, f.Finding)
	}
	d.Health = worstHealth(all)
	show := d.show
	if len(sight.Agents) == 0 {
		show = func(*layout.Page) {}
	}
	if err := e.answer(c.JSON, &d, c.NoColor, show); err != nil {
		e.complain(fmt.Errorf("writing the findings: %w", err))
		return Failed
	}
	switch {
	case len(sight.Agents) == 0:
		return c.nobody(e, sight)
	case c.Strict && d.Health == host.Bad:
		return Invalid
	}
	return OK
}

// show puts the findings on a page, the worst first.
func (d *fleetDiagnosis) show(p *layout.Page) {
	p.Say(fmt.Sprintf("%s at %s: %s", number(len(d.Agents), "agent"), place(d.At), strings.Join(d.Agents, ", ")))
	var all []host.Finding
	for _, f := range d.Findings {
		if len(f.Agents) > 0 {
			f.Found = strings.Join(f.Agents, ", ") + ": " + f.Found
		}
		all = append(all, f.Finding)
	}
	counts := findings(p, all)
	if len(counts) == 0 {
		counts = []string{"No finding that would make a run invalid"}
	}
	p.Gap()
	p.Say(strings.Join(counts, ", ") + ".")
}
