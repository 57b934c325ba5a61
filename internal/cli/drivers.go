package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/buildinfo"
)

// driversCommand is `weir drivers`.
type driversCommand struct {
	Name     string `arg:"" optional:"" placeholder:"DRIVER" help:"The driver to show all about; without a name, list all."`
	JSON     bool   `name:"json" xor:"form" help:"Print a JSON object on stdout."`
	Markdown bool   `xor:"form" help:"Print Markdown, as in docs/drivers."`
	NoColor  bool   `help:"No colour."`
}

// A driverList is what --json prints.
type driverList struct {
	Schema  string       `json:"schema"`
	Weir    string       `json:"weir"`
	Drivers []driverPage `json:"drivers"`
}

// run lists the drivers, or shows one.
func (c *driversCommand) run(_ context.Context, e *env) Code {
	l := driverList{Schema: "weir.drivers/v1", Weir: buildinfo.Version()}
	names := e.registry.Names()
	if c.Name != "" {
		names = []string{c.Name}
	}
	for _, n := range names {
		d, err := e.registry.Lookup(n)
		if err != nil {
			e.complain(err)
			return Usage
		}
		l.Drivers = append(l.Drivers, pageOf(d, e.Tested))
	}
	p := e.newPage(c.NoColor)
	switch {
	case c.JSON:
		if err := writeJSON(p, l); err != nil {
			e.complain(fmt.Errorf("describing the drivers: %w", err))
			return Failed
		}
	case c.Markdown && c.Name != "":
		p.WriteString(l.Drivers[0].markdown())
	case c.Markdown:
		p.WriteString(l.markdown())
	case c.Name != "":
		l.Drivers[0].show(p)
	default:
		l.show(p)
	}
	if err := p.to(e.Stdout); err != nil {
		e.complain(fmt.Errorf("writing the drivers: %w", err))
		return Failed
	}
	return OK
}

// show writes the page.
func (d *driverPage) show(p *page) {
	p.line(p.paint("\x1b[1m", d.Name) + ": " + d.Title)
	p.paragraph(0, d.Summary)
	p.line("")
	p.paragraph(0, d.About)
	p.line("")
	p.table(0, d.overview())

	p.head("What weir's words mean there")
	var rows [][]string
	for _, w := range d.Words {
		rows = append(rows, []string{w.Word, w.To})
		if w.Source != "" {
			rows = append(rows, []string{"", w.Source})
		}
	}
	p.table(2, rows)

	p.head("What a confirmation means")
	rows = [][]string{{"guarantee", "copies", "stable", "with"}}
	for _, c := range d.Confirmations {
		rows = append(rows, []string{c.Guarantee, c.Copies, c.Stable, cmp.Or(c.When, "any settings")})
	}
	p.table(2, rows)

	if len(d.Tested) > 0 {
		p.head("What it was tested against")
		rows = [][]string{{"server", "nodes", "passed", "on", "by"}}
		for _, x := range d.Tested {
			rows = append(rows, []string{x.Server + " " + x.Version, x.nodes(), x.checks(), x.Date, x.by()})
		}
		p.table(2, rows)
	}

	p.head("Options (--option NAME=VALUE, or system.options in a scenario)")
	showOptions(p, d.Options)
	if len(d.ServerOptions) > 0 {
		p.head("Options of the server that weir starts")
		showOptions(p, d.ServerOptions)
	}
	p.head("Examples")
	for _, x := range d.Examples {
		p.line("  " + x)
	}
}

// overview is the table at the top of a page.
func (d *driverPage) overview() [][]string {
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

func showOptions(p *page, options []optionPage) {
	if len(options) == 0 {
		p.line("  none")
		return
	}
	rows := [][]string{{"name", "type", "default", "meaning"}}
	for _, o := range options {
		rows = append(rows, []string{o.Name, o.Type, cmp.Or(o.Default, "-"), o.meaning()})
	}
	p.table(2, rows)
}
