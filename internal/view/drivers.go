package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/view/layout"
)

// A DriverList is a list of drivers as written to JSON.
type DriverList struct {
	Schema  string   `json:"schema"`
	Weir    string   `json:"weir"`
	Drivers []Driver `json:"drivers"`
	Absent  []string `json:"absent,omitempty"` // drivers that only weir-all has
}

// Show writes the list to a page: what each driver is, then the features of all, in tables for a terminal
// of 80 columns.
func (l *DriverList) Show(p *layout.Page) {
	p.Table(l.table(layout.Listing("", ""), func(d *Driver) []string { return []string{d.Title + d.versions() + ": " + d.Summary} }))
	p.Gap()
	p.Say("In brackets is what the tests last passed against: the version of the server, with its name where the title does not have it. weir drivers NAME shows all about one driver, and weir drivers --full compares all of them.")
	if len(l.Absent) > 0 {
		p.Say("weir-all (go run ./cmd/weir-all) also has " + strings.Join(l.Absent, ", ") + ".")
	}
}

// ShowFull writes the list with tables of what the drivers are and can do.
func (l *DriverList) ShowFull(p *layout.Page) {
	p.Table(l.table(layout.Listing("", ""), func(d *Driver) []string { return []string{d.Title + ": " + d.Summary} }))

	l.part(p, "Storage, replication and protocol")
	features := &layout.Table{Columns: layout.Columns(layout.Prose, layout.Plain, "", "persistence", "replication", "protocol")}
	features.Columns[0].Kind = layout.Word
	p.Table(l.table(features, func(d *Driver) []string {
		return []string{d.Features.Persistence, d.Features.Replication, d.Features.Protocol}
	}))

	l.part(p, "Failover, encryption, compression and consoles")
	choosing := &layout.Table{Columns: layout.Columns(layout.Prose, layout.Plain, "", "failover", "encryption", "compression", "console")}
	choosing.Columns[0].Kind = layout.Word
	p.Table(l.table(choosing, func(d *Driver) []string {
		f := d.Features
		return []string{cmp.Or(f.Failover, "none"), cmp.Or(f.Encryption, "none"), cmp.Or(f.Compression, "none"), cmp.Or(f.Console, "none")}
	}))

	l.part(p, "What each system promises")
	p.Table(l.table(layout.Listing("", "guarantee", "delivery", "order"), func(d *Driver) []string {
		return []string{d.span(), d.Delivery, d.Ordering}
	}))

	l.part(p, "How a consumer settles, and where a subscription can begin")
	p.Table(l.table(layout.Listing("", "settle", "replay from"), func(d *Driver) []string {
		return []string{cmp.Or(strings.Join(d.Settle, ", "), "none"), cmp.Or(strings.Join(d.Replays, ", "), "none")}
	}))

	l.part(p, "What each driver can do")
	can, means := &layout.Table{Even: true, Columns: layout.Columns(layout.Word, layout.Plain, "")}, layout.Listing("", "")
	for _, c := range capabilities {
		can.Columns = append(can.Columns, layout.Column{Kind: layout.Word, Head: c.short})
		means.Row(c.short, c.means)
	}
	p.Table(l.table(can, func(d *Driver) []string {
		var row []string
		for _, c := range capabilities {
			row = append(row, map[bool]string{true: "yes", false: "."}[d.Capabilities[c.word]])
		}
		return row
	}))
	p.Gap()
	p.Table(means)

	l.part(p, "The client library measured, and what weir can start")
	clients := layout.Listing("", "")
	for i := range l.Drivers {
		d := &l.Drivers[i]
		client := "none"
		if d.Client != nil {
			client = d.Client.String()
		}
		clients.Row(d.Name, client)
		if s := d.started(); s != "" {
			clients.Row("", s)
		}
	}
	p.Table(clients)

	l.part(p, "What each was tested against")
	p.Table(l.table(layout.Listing("", ""), func(d *Driver) []string {
		said := cmp.Or(strings.Join(d.latest(), "; "), "no record")
		if d.Features.Untried != "" {
			said += "; never run against " + d.Features.Untried
		}
		return []string{said}
	}))
	p.Gap()
	p.Say("weir drivers NAME shows all about one.")
}

func (l *DriverList) part(p *layout.Page, title string) {
	p.Gap()
	p.Chapter(title)
}

// table adds a row for each driver: its name and the cells that of returns.
func (l *DriverList) table(t *layout.Table, of func(*Driver) []string) *layout.Table {
	for i := range l.Drivers {
		t.Row(append([]string{l.Drivers[i].Name}, of(&l.Drivers[i])...)...)
	}
	return t
}

// features are the rows of the feature table that are not capabilities.
func (d *Driver) features() [][2]string {
	f := d.Features
	all := [][2]string{
		{"persistence", f.Persistence},
		{"replication", f.Replication},
		{"failover", f.Failover},
		{"protocol", f.Protocol},
		{"encryption", f.Encryption},
		{"compression", f.Compression},
		{"console", f.Console},
		{"never run against", f.Untried},
	}
	return slices.DeleteFunc(all, func(f [2]string) bool { return f[1] == "" })
}

// started describes what weir can start; "" if nothing.
func (d *Driver) started() string {
	var can []string
	if d.Embedded != nil {
		can = append(can, strings.TrimSpace("embedded "+d.Embedded.Path+" "+d.Embedded.Version))
	}
	var recipes []string
	for _, r := range d.Recipes {
		recipes = append(recipes, r.Name)
	}
	if len(recipes) > 0 {
		can = append(can, "by recipe "+strings.Join(recipes, ", "))
	}
	return strings.Join(can, "; ")
}

// versions lists in brackets the server versions that the suites last passed against, with the servers'
// names if there are several or if the title does not name the one; "" without a record.
func (d *Driver) versions() string {
	var servers []string
	of := map[string][]string{}
	for _, t := range d.newest() {
		if t.Version == "" || t.Nodes == 0 {
			continue
		}
		if of[t.Server] == nil {
			servers = append(servers, t.Server)
		}
		if version := strings.TrimPrefix(t.Version, "v"); !slices.Contains(of[t.Server], version) {
			of[t.Server] = append(of[t.Server], version)
		}
	}
	var said []string
	for _, s := range servers {
		name := s + " "
		if len(servers) == 1 && strings.Contains(strings.ToLower(d.Title), strings.ToLower(s)) {
			name = ""
		}
		said = append(said, name+strings.Join(of[s], ", "))
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, "; ") + ")"
}

// newest returns each server's tests of its latest day.
func (d *Driver) newest() []tested.Entry {
	day := map[string]string{} // by server
	for _, t := range d.Tested {
		day[t.Server] = max(day[t.Server], t.Date)
	}
	return slices.DeleteFunc(slices.Clone(d.Tested), func(t tested.Entry) bool { return t.Date != day[t.Server] })
}

// latest says for each server which versions the suites last passed with, and when.
func (d *Driver) latest() []string {
	newest := d.newest()
	var said []string
	for i, first := range newest {
		if slices.ContainsFunc(newest[:i], func(t tested.Entry) bool { return alike(t, first) }) {
			continue
		}
		var nodes []string
		most := 0
		for _, t := range newest {
			if !alike(t, first) {
				continue
			}
			most = max(most, t.Passed)
			if n := strconv.Itoa(t.Nodes); t.Nodes > 0 && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
		slices.Sort(nodes) // from 1 to 9
		clause := first.Server + " " + first.Version
		switch {
		case len(nodes) == 1 && nodes[0] == "1":
			clause += ", 1 node"
		case len(nodes) > 0:
			clause += ", " + strings.Join(nodes, " and ") + " nodes"
		}
		said = append(said, fmt.Sprintf("%s, %d checks, %s", clause, most, first.Date))
	}
	return said
}

// alike reports whether two tests ran against the same version of the same server on one day.
func alike(t, other tested.Entry) bool {
	return t.Server == other.Server && t.Version == other.Version && t.Date == other.Date
}

func nodesOf(t tested.Entry) string {
	if t.Nodes == 0 {
		return "-"
	}
	return strconv.Itoa(t.Nodes)
}

func checksOf(t tested.Entry) string {
	s := fmt.Sprintf("%d checks", t.Passed)
	if len(t.Waived) > 0 {
		s += fmt.Sprintf(", %d waived", len(t.Waived))
	}
	return s
}

// testedWith says how the system was obtained and how it was configured.
func testedWith(t tested.Entry) string {
	_, says, _ := strings.Cut(t.Test, "/") // of a test's name, what was set
	says = strings.ReplaceAll(says, "_", " ")
	switch {
	case t.Recipe == "":
		return says
	case says == "":
		return "recipe " + t.Recipe
	}
	return "recipe " + t.Recipe + ": " + says
}
