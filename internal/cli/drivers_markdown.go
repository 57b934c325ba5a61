package cli

import (
	"cmp"
	"fmt"
	"strings"
)

// generated is said at the top of every file of docs/drivers.
const generated = "<!-- Generated from the driver's definition by go test ./internal/cli -update. -->\n\n"

// markdown returns docs/drivers/README.md. Versions are left to the program,
// which knows those that it was built with.
func (l *driverList) markdown() string {
	var b strings.Builder
	b.WriteString(generated + "# Drivers\n\nA driver is weir's adapter to one system. Each has a page here; `weir drivers` and `weir drivers NAME` print the same.\n\n")
	mdRow(&b, "driver", "system", "guarantee", "delivery", "order", "client library", "started by weir")
	mdRule(&b, 7)
	for i := range l.Drivers {
		d := &l.Drivers[i]
		client, started := "none", ""
		if d.Client != nil {
			client = d.Client.Path
		}
		if d.Embedded != nil {
			started = d.Embedded.Path
		}
		mdRow(&b, fmt.Sprintf("[%s](%s.md)", d.Name, d.Name), mdText(d.Title), d.span(), d.Delivery, d.Ordering, client, started)
	}
	b.WriteString("\nWhat each can do; what it cannot is refused before a run begins:\n\n")
	head := []string{""}
	for i := range l.Drivers {
		head = append(head, l.Drivers[i].Name)
	}
	mdRow(&b, append(head, "means that")...)
	mdRule(&b, len(head)+1)
	for _, c := range capabilities {
		row := []string{c.word}
		for i := range l.Drivers {
			row = append(row, map[bool]string{true: "yes", false: ""}[l.Drivers[i].Capabilities[c.word]])
		}
		mdRow(&b, append(row, c.means)...)
	}
	b.WriteString("\nThe guarantee is what a confirmation of a message means, weakest first: buffered, written, received, replicated, persisted " +
		"([METHOD.md](../../METHOD.md)). The figures of different guarantees are not comparable.\n")
	return b.String()
}

// markdown returns docs/drivers/<name>.md, without versions too.
func (d *driverPage) markdown() string {
	d = d.unversioned()
	var b strings.Builder
	b.WriteString(generated)
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n\n%s\n\n", d.Name, mdText(d.Title), mdText(d.Summary), mdText(d.About))
	mdRow(&b, "", "")
	mdRule(&b, 2)
	for _, r := range d.overview() {
		mdRow(&b, r[0], mdText(r[1]))
	}
	b.WriteString("\n## What weir's words are there\n\n")
	mdRow(&b, "word", "there", "source")
	mdRule(&b, 3)
	for _, w := range d.Words {
		source := ""
		if w.Source != "" {
			source = "<" + w.Source + ">"
		}
		mdRow(&b, w.Word, mdText(w.To), source)
	}
	b.WriteString("\n## What a confirmation means\n\nWhat to expect; a run reads from the running system what is so, and prints that.\n\n")
	mdRow(&b, "guarantee", "copies", "stable", "with")
	mdRule(&b, 4)
	for _, c := range d.Confirmations {
		mdRow(&b, c.Guarantee, c.Copies, c.Stable, mdText(cmp.Or(c.When, "any settings")))
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
func (d *driverPage) unversioned() *driverPage {
	u := *d
	if d.Client != nil {
		u.Client = &module{Path: d.Client.Path, Why: d.Client.Why}
	}
	if d.Embedded != nil {
		u.Embedded = &module{Path: d.Embedded.Path}
	}
	return &u
}

func mdOptions(b *strings.Builder, options []optionPage) {
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

// mdText keeps a text from being taken for markup.
func mdText(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "$", `\$`).Replace(s)
}
