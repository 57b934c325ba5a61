package cli

import (
	"context"
	"io"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/view"
)

// driversCommand is `weir drivers`.
type driversCommand struct {
	Name     string `arg:"" optional:"" placeholder:"DRIVER" help:"The driver to show all about; without a name, list all."`
	JSON     bool   `name:"json" xor:"form" help:"Print a JSON object on stdout."`
	Markdown bool   `xor:"form" help:"Print Markdown, as in docs/drivers."`
	Full     bool   `help:"List also what each driver is and can do, in tables."`
	NoColor  bool   `help:"No colour."`
}

// run lists the drivers, or shows one.
func (c *driversCommand) run(_ context.Context, e *env) Code {
	l := view.DriverList{Schema: "weir.drivers/v1", Weir: buildinfo.Version()}
	var record []tested.Entry
	if e.Tested != nil {
		record = e.Tested()
	}
	names := e.registry.Names()
	if c.Name != "" {
		names = []string{c.Name}
	}
	for _, n := range names {
		d, err := e.registry.Lookup(n)
		if err != nil {
			return e.refused(err)
		}
		page := view.DriverOf(d, record)
		if slices.ContainsFunc(e.Absent, func(a driver.Absent) bool { return a.Name == n }) {
			page.Only("weir-all")
		}
		l.Drivers = append(l.Drivers, page)
	}
	if c.Name == "" {
		l.Absent = slices.DeleteFunc(e.registry.Known(), func(n string) bool { return slices.Contains(names, n) })
	}
	show, markdown := l.Show, l.Markdown
	if c.Full {
		show = l.ShowFull
	}
	if c.Name != "" {
		show, markdown = l.Drivers[0].Show, l.Drivers[0].Markdown
	}
	var err error
	if c.Markdown {
		_, err = io.WriteString(e.Stdout, markdown())
	} else {
		err = e.answer(c.JSON, l, c.NoColor, show)
	}
	return e.printed("the drivers", err)
}
