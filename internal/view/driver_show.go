package view

import (
	"cmp"
	"strings"

	"github.com/weirmq/weir/internal/view/layout"
)

// Show writes everything about a driver to a page.
func (d *Driver) Show(p *layout.Page) {
	p.Line(layout.Strong.Of(d.Name), layout.Plain.Of(": "+d.Title))
	p.Say(d.Summary)
	for about := range strings.SplitSeq(d.About, "\n\n") {
		p.Gap()
		p.Say(about)
	}
	p.Gap()
	overview := layout.Listing("", "")
	for _, r := range d.overview() {
		overview.Row(r...)
	}
	p.Table(overview)

	part := func(title string, t *layout.Table) {
		p.Gap()
		p.Chapter(title)
		p.Inset(2).Table(t)
	}
	words := layout.Listing("", "")
	for _, w := range d.Words {
		words.Row(w.Word, w.To)
		if w.Source != "" {
			words.Row("", w.Source)
		}
	}
	part("What weir's words mean there", words)

	confirmations := layout.Listing("guarantee", "copies", "stable", "with")
	for _, c := range d.Confirmations {
		confirmations.Row(c.Guarantee, c.Copies, c.Stable, cmp.Or(c.When, "any settings"))
	}
	part("What a confirmation means", confirmations)

	if len(d.Tested) > 0 {
		tests := layout.Listing("server", "nodes", "passed", "on", "settings")
		for _, x := range d.Tested {
			tests.Row(x.Server+" "+x.Version, nodesOf(x), checksOf(x), x.Date, testedWith(x))
		}
		part("What it was tested against", tests)
	}

	ShowOptions(p, "Options (--option NAME=VALUE, or system.options in a scenario)", d.Options)
	if len(d.ServerOptions) > 0 {
		ShowOptions(p, "Options of the server that weir starts", d.ServerOptions)
	}
	p.Gap()
	p.Chapter("Examples")
	p.Inset(2).Verbatim(d.Examples...)
}

// overview is the table at the top of a page.
func (d *Driver) overview() [][]string {
	rows := [][]string{}
	if d.Program != "" {
		rows = append(rows, []string{"program", d.Program + ", not weir: go run ./cmd/" + d.Program + " (a release has it under the name weir)"})
	}
	if d.Client != nil {
		rows = append(rows, []string{"client", d.Client.String()}, []string{"", d.Client.Why})
	}
	if d.Embedded != nil {
		rows = append(rows, []string{"server", "weir starts " + d.Embedded.String() + " where no address is given"})
	}
	for i, r := range d.Recipes {
		rows = append(rows, []string{map[bool]string{true: "recipes"}[i == 0], r.String()})
	}
	for _, f := range d.features() {
		if f[1] != "" {
			rows = append(rows, f[:])
		}
	}
	rows = append(rows, []string{"delivery", d.promise()})
	if s := d.settling(); s != "" {
		rows = append(rows, []string{"settle", s})
	}
	if len(d.Replays) > 0 {
		rows = append(rows, []string{"replays", "from " + strings.Join(d.Replays, ", ")})
	}
	cannot := strings.Join(d.can(false), ", ")
	if d.Capabilities["consumers"] && !d.Capabilities["requests"] {
		cannot += " (--mode request works: weir echoes what it receives)"
	}
	return append(rows, []string{"supported", strings.Join(d.can(true), ", ")}, []string{"not supported", cannot}, []string{"", "docs/drivers/README.md says what each of these words means"})
}

// ShowOptions writes options under a title, or that there are none.
func ShowOptions(p *layout.Page, title string, options []DriverOption) {
	p.Gap()
	p.Chapter(title)
	if len(options) == 0 {
		p.Inset(2).Say("none")
		return
	}
	t := layout.Listing("name", "type", "default", "meaning")
	for _, o := range options {
		t.Row(o.Name, o.Type, cmp.Or(o.Default, "-"), o.meaning())
	}
	p.Inset(2).Table(t)
}
