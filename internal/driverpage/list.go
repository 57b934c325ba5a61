package driverpage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/textpage"
)

// A List is drivers, as they are written as JSON.
type List struct {
	Schema  string   `json:"schema"`
	Weir    string   `json:"weir"`
	Drivers []Driver `json:"drivers"`
}

// Show writes the list: what each driver is, and then the features of all, in
// tables that a terminal of 80 columns holds.
func (l *List) Show(p *textpage.Page) {
	p.Table(0, l.rows(nil, func(d *Driver) []string { return []string{d.Title + ": " + d.Summary} }))

	p.Head("Storage, replication and protocol")
	p.Grid(0, l.rows([]string{"", "persistence", "replication", "protocol"}, func(d *Driver) []string {
		return []string{d.Features.Persistence, d.Features.Replication, d.Features.Protocol}
	}))

	p.Head("What each system promises")
	p.Table(0, l.rows([]string{"", "guarantee", "delivery", "order"}, func(d *Driver) []string {
		return []string{d.span(), d.Delivery, d.Ordering}
	}))

	p.Head("How a consumer settles, and where a subscription can begin")
	p.Table(0, l.rows([]string{"", "settle", "replay from"}, func(d *Driver) []string {
		return []string{cmp.Or(strings.Join(d.Settle, ", "), "none"), cmp.Or(strings.Join(d.Replays, ", "), "none")}
	}))

	p.Head("What each driver can do")
	l.matrix(p)
	p.Line("")
	var rows [][]string
	for _, c := range capabilities {
		rows = append(rows, []string{c.short, c.means})
	}
	p.Table(0, rows)

	p.Head("The client library measured, and what weir can start")
	rows = nil
	for i := range l.Drivers {
		d := &l.Drivers[i]
		client := "none"
		if d.Client != nil {
			client = d.Client.String()
		}
		rows = append(rows, []string{d.Name, client})
		if s := d.started(); s != "" {
			rows = append(rows, []string{"", s})
		}
	}
	p.Table(0, rows)

	p.Head("What each was tested against")
	p.Table(0, l.rows(nil, func(d *Driver) []string {
		return []string{cmp.Or(strings.Join(d.latest(), "; "), "no record")}
	}))
	p.Line("\nweir drivers NAME shows all about one.")
}

// rows are a head, if there is one, and a row for each driver: its name, and what
// of says of it.
func (l *List) rows(head []string, of func(*Driver) []string) [][]string {
	var rows [][]string
	if head != nil {
		rows = append(rows, head)
	}
	for i := range l.Drivers {
		rows = append(rows, append([]string{l.Drivers[i].Name}, of(&l.Drivers[i])...))
	}
	return rows
}

// matrix writes which driver can do what, in as many tables as the width needs,
// of about as many columns each.
func (l *List) matrix(p *textpage.Page) {
	name := 0
	for i := range l.Drivers {
		name = max(name, len(l.Drivers[i].Name))
	}
	// fits reports whether tables of at most n columns are narrow enough.
	fits := func(n int) bool {
		for some := range slices.Chunk(capabilities[:], n) {
			width := name
			for _, c := range some {
				width += 2 + max(len(c.short), len("yes"))
			}
			if width > p.Width {
				return false
			}
		}
		return true
	}
	tables := 1
	columns := func() int { return (len(capabilities) + tables - 1) / tables }
	for columns() > 1 && !fits(columns()) {
		tables++
	}
	first := true
	for some := range slices.Chunk(capabilities[:], columns()) {
		if !first {
			p.Line("")
		}
		first = false
		head := []string{""}
		for _, c := range some {
			head = append(head, c.short)
		}
		p.Table(0, l.rows(head, func(d *Driver) []string {
			var row []string
			for _, c := range some {
				row = append(row, map[bool]string{true: "yes", false: "."}[d.Capabilities[c.word]])
			}
			return row
		}))
	}
}

// features are those of the feature table that are not capabilities.
func (d *Driver) features() [3][2]string {
	return [3][2]string{{"persistence", d.Features.Persistence}, {"replication", d.Features.Replication}, {"protocol", d.Features.Protocol}}
}

// started says what weir can start; "" if nothing.
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

// latest says of each server in a clause with which version, or versions, and when
// the suites last passed.
func (d *Driver) latest() []string {
	newest := map[string]string{} // day, by server
	for _, t := range d.Tested {
		newest[t.Server] = max(newest[t.Server], t.Date)
	}
	var said []string
	for i, first := range d.Tested {
		if first.Date != newest[first.Server] || slices.ContainsFunc(d.Tested[:i], first.like) {
			continue
		}
		var nodes []string
		most := 0
		for _, t := range d.Tested {
			if !t.like(first) {
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

// like reports whether two tests ran against one version of one server on one day.
func (t Tested) like(other Tested) bool {
	return t.Server == other.Server && t.Version == other.Version && t.Date == other.Date
}

// nodes writes how many servers there were.
func (t Tested) nodes() string {
	if t.Nodes == 0 {
		return "-"
	}
	return strconv.Itoa(t.Nodes)
}

// checks writes how many there were.
func (t Tested) checks() string {
	s := fmt.Sprintf("%d checks", t.Passed)
	if len(t.Waived) > 0 {
		s += fmt.Sprintf(", %d waived", len(t.Waived))
	}
	return s
}

// by says how the system was had and which test passed.
func (t Tested) by() string {
	s := strings.TrimPrefix(t.Test, "TestConformance/")
	if t.Recipe != "" {
		s = "recipe " + t.Recipe + ": " + s
	}
	return s
}
