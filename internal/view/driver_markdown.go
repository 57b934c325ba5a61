package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/view/layout"
)

// generated is the first line of every file in docs/drivers.
const generated = "<!-- Generated from the driver's definition by go test ./internal/cli -update. -->\n\n"

// Markdown returns docs/drivers/README.md. It omits module versions, which the program itself knows.
func (l *DriverList) Markdown() string {
	var b strings.Builder
	b.WriteString(generated + "# Drivers\n\nA driver is weir's adapter to one system. Each has a page here; `weir drivers --full` and `weir drivers NAME` print the same.\n" +
		"A driver can live in [a repository of its own](../writing-a-driver.md#a-driver-in-a-repository-of-its-own) too.\n\n")
	l.mdTable(&b, []string{"driver", "system", "persistence", "replication", "protocol"}, func(d *Driver) []string {
		return []string{d.Title, d.Features.Persistence, d.Features.Replication, d.Features.Protocol}
	})
	b.WriteString("\n## What happens when a server dies, and what surrounds it\n\n" +
		"Failover is what the makers of the system describe, for a cluster where there can be one. What weir saw\nis on another page: [what is lost when a node dies](../results/loss.md).\n\n")
	l.mdTable(&b, []string{"driver", "failover", "encryption", "compression", "console"}, func(d *Driver) []string {
		f := d.Features
		return []string{cmp.Or(f.Failover, "none"), cmp.Or(f.Encryption, "none"), cmp.Or(f.Compression, "none"), cmp.Or(f.Console, "none")}
	})
	b.WriteString("\n## What each system promises\n\n")
	l.mdTable(&b, []string{"driver", "guarantee", "delivery", "order", "settle", "groups", "replay from", "resume"}, func(d *Driver) []string {
		return []string{
			d.span(), d.Delivery, d.Ordering, strings.Join(d.Settle, ", "), d.groups(), strings.Join(d.Replays, ", "),
			map[bool]string{true: "yes"}[d.Capabilities["resumes"]],
		}
	})
	b.WriteString("\nThe guarantee is what a confirmation of a message means, weakest first: buffered, written, received, replicated, persisted " +
		"([METHOD.md](../../METHOD.md)). The figures of different guarantees are not comparable. Groups: several subscriptions that each get every message, " +
		"several consumers that compete for those of one.\n")
	b.WriteString("\n## What is measured, and what it was tested against\n\nThe conformance suites have passed against these servers, on that day at last; each page lists all runs.\n\n")
	l.mdTable(&b, []string{"driver", "client library", "started by weir", "tested against", "never run against"}, func(d *Driver) []string {
		d = d.unversioned()
		client := "none"
		if d.Client != nil {
			client = strings.TrimSpace(d.Client.Path + " " + d.testedClient())
		}
		return []string{client, d.started(), strings.Join(d.latest(), "; "), d.Features.Untried}
	})
	b.WriteString("\n## What each driver can do\n\nWhat it cannot is refused before a run begins.\n\n")
	head := []string{"driver"}
	for _, c := range capabilities {
		head = append(head, c.word)
	}
	l.mdTable(&b, head, func(d *Driver) []string {
		var row []string
		for _, c := range capabilities {
			row = append(row, map[bool]string{true: "yes"}[d.Capabilities[c.word]])
		}
		return row
	})
	b.WriteString("\n")
	mdRow(&b, "word", "means that")
	mdRule(&b, 2)
	for _, c := range capabilities {
		mdRow(&b, c.word, mdText(c.means))
	}
	return b.String()
}

// mdTable writes a table with a row for each driver: its linked name and the cells that of returns.
func (l *DriverList) mdTable(b *strings.Builder, head []string, of func(*Driver) []string) {
	mdRow(b, head...)
	mdRule(b, len(head))
	for i := range l.Drivers {
		row := []string{fmt.Sprintf("[%[1]s](%[1]s.md)", l.Drivers[i].Name)}
		for _, cell := range of(&l.Drivers[i]) {
			row = append(row, mdText(cell))
		}
		mdRow(b, row...)
	}
}

func (d *Driver) groups() string {
	var words []string
	for _, w := range []string{"subscriptions", "competing"} {
		if d.Capabilities[w] {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", ")
}

// testedClient is the client library's version in the latest tests.
func (d *Driver) testedClient() string {
	last := tested.Entry{}
	for _, t := range d.Tested {
		if t.Date >= last.Date {
			last = t
		}
	}
	return last.Client
}

// Markdown returns docs/drivers/<name>.md, also without versions.
func (d *Driver) Markdown() string {
	d = d.unversioned()
	var b strings.Builder
	b.WriteString(generated)
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n\n%s\n\n", d.Name, mdText(d.Title), mdText(d.Summary), mdText(d.About))
	mdRow(&b, "", "")
	mdRule(&b, 2)
	for _, r := range d.overview() {
		mdRow(&b, r[0], mdText(r[1]))
	}
	b.WriteString("\n## What weir's words mean there\n\n")
	mdRow(&b, "word", "there", "source")
	mdRule(&b, 3)
	for _, w := range d.Words {
		mdRow(&b, w.Word, mdText(w.To), link(w.Source))
	}
	b.WriteString("\n## What a confirmation means\n\nThe strongest row whose settings all hold counts. A run reads the settings from the running system and prints what they give. A setting that is not known does not hold.\n\n")
	mdRow(&b, "guarantee", "copies", "stable", "with", "source")
	mdRule(&b, 5)
	for _, c := range d.Confirmations {
		mdRow(&b, c.Guarantee, c.Copies, c.Stable, mdText(cmp.Or(c.When, "any settings")), link(c.Source))
	}
	if len(d.Tested) > 0 {
		b.WriteString("\n## What it was tested against\n\nThe conformance suite of package drivertest passed:\n\n")
		mdRow(&b, "server", "nodes", "passed", "on", "settings", "client library")
		mdRule(&b, 6)
		for _, t := range d.Tested {
			mdRow(&b, mdText(t.Server+" "+t.Version), nodesOf(t), checksOf(t), t.Date, mdText(testedWith(t)), t.Client)
		}
	}
	b.WriteString("\n## Options\n\n`--option NAME=VALUE`, or `system.options` in a scenario.\n\n")
	mdOptions(&b, d.Options)
	if len(d.ServerOptions) > 0 {
		b.WriteString("\nOf the server that weir starts:\n\n")
		mdOptions(&b, d.ServerOptions)
	}
	b.WriteString("\n## Examples\n\n```sh\n" + strings.Join(d.Examples, "\n") + "\n```\n")
	return b.String()
}

// unversioned returns the page without the versions of modules.
func (d *Driver) unversioned() *Driver {
	u := *d
	if d.Client != nil {
		u.Client = &driverModule{Path: d.Client.Path, Why: d.Client.Why}
	}
	if d.Embedded != nil {
		u.Embedded = &driverModule{Path: d.Embedded.Path}
	}
	return &u
}

func mdOptions(b *strings.Builder, options []DriverOption) {
	if len(options) == 0 {
		b.WriteString("None.\n")
		return
	}
	mdRow(b, "name", "type", "default", "meaning")
	mdRule(b, 4)
	for _, o := range options {
		def := ""
		if o.Default != "" {
			def = "`" + o.Default + "`"
		}
		mdRow(b, "`"+o.Name+"`", o.Type, def, mdText(o.meaning()))
	}
}

func mdRow(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func mdRule(b *strings.Builder, n int) { b.WriteString("|" + strings.Repeat(" --- |", n) + "\n") }

// mdText escapes a text so that it is taken for neither markup nor a formula.
func mdText(s string) string { return strings.ReplaceAll(layout.Escape(s), "$", `\$`) }

func link(address string) string {
	if address == "" {
		return ""
	}
	return "<" + address + ">"
}
