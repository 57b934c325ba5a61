package driverpage

import (
	"cmp"
	"strings"

	"github.com/weirmq/weir/internal/textpage"
)

// Show writes the page.
func (d *Driver) Show(p *textpage.Page) {
	p.Line(p.Paint("\x1b[1m", d.Name) + ": " + d.Title)
	p.Paragraph(0, d.Summary)
	p.Line("")
	p.Paragraph(0, d.About)
	p.Line("")
	p.Table(0, d.overview())

	p.Head("What weir's words mean there")
	var rows [][]string
	for _, w := range d.Words {
		rows = append(rows, []string{w.Word, w.To})
		if w.Source != "" {
			rows = append(rows, []string{"", w.Source})
		}
	}
	p.Table(2, rows)

	p.Head("What a confirmation means")
	rows = [][]string{{"guarantee", "copies", "stable", "with"}}
	for _, c := range d.Confirmations {
		rows = append(rows, []string{c.Guarantee, c.Copies, c.Stable, cmp.Or(c.When, "any settings")})
	}
	p.Table(2, rows)

	if len(d.Tested) > 0 {
		p.Head("What it was tested against")
		rows = [][]string{{"server", "nodes", "passed", "on", "by"}}
		for _, x := range d.Tested {
			rows = append(rows, []string{x.Server + " " + x.Version, x.nodes(), x.checks(), x.Date, x.by()})
		}
		p.Table(2, rows)
	}

	p.Head("Options (--option NAME=VALUE, or system.options in a scenario)")
	ShowOptions(p, d.Options)
	if len(d.ServerOptions) > 0 {
		p.Head("Options of the server that weir starts")
		ShowOptions(p, d.ServerOptions)
	}
	p.Head("Examples")
	for _, x := range d.Examples {
		p.Line("  " + x)
	}
}

// overview is the table at the top of a page.
func (d *Driver) overview() [][]string {
	rows := [][]string{}
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
	rows = append(rows, []string{"promise", d.promise()})
	if s := d.settling(); s != "" {
		rows = append(rows, []string{"settle", s})
	}
	if len(d.Replays) > 0 {
		rows = append(rows, []string{"replays", "from " + strings.Join(d.Replays, ", ")})
	}
	return append(rows, []string{"can", strings.Join(d.can(true), ", ")}, []string{"cannot", strings.Join(d.can(false), ", ")})
}

// ShowOptions writes the table of a driver's options, or that there are none.
func ShowOptions(p *textpage.Page, options []Option) {
	if len(options) == 0 {
		p.Line("  none")
		return
	}
	rows := [][]string{{"name", "type", "default", "meaning"}}
	for _, o := range options {
		rows = append(rows, []string{o.Name, o.Type, cmp.Or(o.Default, "-"), o.meaning()})
	}
	p.Table(2, rows)
}
