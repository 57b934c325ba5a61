package view

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/layout"
)

// narrow is a terminal of 80 columns, the last of them free.
var narrow = layout.Terminal(80, false)

// A newly added capability must be shown.
func TestEveryCapabilityIsShown(t *testing.T) {
	def := driver.Definition{Name: "x", New: func() driver.Config { return all.Definitions()[0].New() }}
	shown := func(c driver.Capabilities) (text, markdown, list, asJSON string) {
		d := def
		d.Capabilities = c
		one := DriverOf(d, standard.Tested())
		l := DriverList{Drivers: []Driver{one}}
		p, q := new(layout.Page), new(layout.Page)
		one.Show(p)
		l.ShowFull(q)
		b := must.Get(json.Marshal(one))(t)
		return narrow.Page(p), one.Markdown(), narrow.Page(q), string(b)
	}
	text, markdown, list, asJSON := shown(driver.Capabilities{})
	fields := reflect.TypeFor[driver.Capabilities]()
	for i := range fields.NumField() {
		var c driver.Capabilities
		f := reflect.ValueOf(&c).Elem().Field(i)
		name := fields.Field(i).Name
		switch f.Interface().(type) {
		case bool:
			f.SetBool(true)
			if !slices.ContainsFunc(capabilities[:], func(c capability) bool { return c.field == name }) {
				t.Errorf("%s has no row in capabilities", name)
			}
		case int:
			f.SetInt(12345)
		case driver.Promise:
			f.Set(reflect.ValueOf(driver.ExactlyOnce))
		case driver.Ordering:
			f.Set(reflect.ValueOf(driver.PerKey))
		case []driver.Settle:
			f.Set(reflect.ValueOf([]driver.Settle{driver.SettleBatch}))
		case []driver.Guarantee:
			f.Set(reflect.ValueOf([]driver.Guarantee{driver.Written}))
		case []driver.Start:
			f.Set(reflect.ValueOf([]driver.Start{driver.AtEarliest, driver.AtTime}))
		default:
			t.Errorf("%s: a type that this test does not know", name)
		}
		t2, m2, l2, j2 := shown(c)
		if t2 == text && name != "Guarantees" || m2 == markdown && name != "Guarantees" || j2 == asJSON {
			t.Errorf("%s is not on the page", name)
		}
		if l2 == list && !slices.Contains([]string{"Settle", "MaxPayload"}, name) {
			t.Errorf("%s is not in the list", name)
		}
	}
}

func TestMarkupInTextIsEscaped(t *testing.T) {
	if got, want := mdText("weir.<run> | a_b ${env:X} *"), `weir.\<run> \| a\_b \${env:X} \*`; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

func TestListFits80Columns(t *testing.T) {
	var l DriverList
	for _, d := range all.Definitions() {
		l.Drivers = append(l.Drivers, DriverOf(d, standard.Tested()))
	}
	p := new(layout.Page) // the last column is left free
	l.ShowFull(p)
	for line := range strings.Lines(narrow.Page(p)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 79 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, c := range capabilities {
		if !strings.Contains(narrow.Page(p), " "+c.short) || !strings.Contains(narrow.Page(p), "\n"+c.short+" ") {
			t.Errorf("%s is not a column, or is not explained", c.short)
		}
	}
}

func TestTheFeaturesAreOnEveryPage(t *testing.T) {
	d := all.Definitions()[0]
	d.Features = driver.Features{Persistence: "xkept", Replication: "xcopied", Protocol: "xspoken"}
	one := DriverOf(d, nil)
	l := DriverList{Drivers: []Driver{one}}
	p, q := new(layout.Page), new(layout.Page)
	one.Show(p)
	l.ShowFull(q)
	b := must.Get(json.Marshal(l))(t)
	for _, text := range map[string]string{
		"page": narrow.Page(p), "list": narrow.Page(q), "Markdown of it": one.Markdown(), "Markdown of the list": l.Markdown(), "JSON": string(b),
	} {
		mentions(t, text, "xkept", "xcopied", "xspoken")
	}
}

func TestEveryPageListsTestedVersions(t *testing.T) {
	d := all.Definitions()[0]
	run := tested.Entry{Driver: d.Name, Test: "TestConformance/one", Recipe: "r", Server: "server", Version: "1.9", Nodes: 1, Passed: 20, Date: "2026-01-02"}
	three, newer, other, foreign := run, run, run, run
	three.Test, three.Nodes, three.Passed, three.Waived = "TestConformance/three", 3, 19, []string{"Order"}
	newer.Test, newer.Version, newer.Nodes, newer.Passed, newer.Date = "TestConformance/five", "1.10", 5, 25, "2026-01-03"
	other.Test, other.Server, other.Nodes, other.Recipe = "TestConformance", "library", 0, ""
	foreign.Driver = "another"
	one := DriverOf(d, []tested.Entry{other, run, three, foreign})
	if got, want := strings.Join(one.latest(), "; "), "library 1.9, 20 checks, 2026-01-02; server 1.9, 1 and 3 nodes, 20 checks, 2026-01-02"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	latest := func(es ...tested.Entry) []string {
		one := DriverOf(d, es)
		return one.latest()
	}
	if got := latest(run, newer); len(got) != 1 || got[0] != "server 1.10, 5 nodes, 25 checks, 2026-01-03" {
		t.Errorf("of two versions: %q", got)
	}
	sameDay := run
	sameDay.Test, sameDay.Version = "TestConformance/two", "2.0"
	if got := strings.Join(latest(run, sameDay), "; "); got != "server 1.9, 1 node, 20 checks, 2026-01-02; server 2.0, 1 node, 20 checks, 2026-01-02" {
		t.Errorf("of two versions on one day: %q", got)
	}
	if got := latest(run); len(got) != 1 || got[0] != "server 1.9, 1 node, 20 checks, 2026-01-02" {
		t.Errorf("of one: %q", got)
	}
	l := DriverList{Drivers: []Driver{one}}
	p, q := new(layout.Page), new(layout.Page)
	one.Show(p)
	l.ShowFull(q)
	for what, pair := range map[string][2]string{
		"page":          {narrow.Page(p), "  server 1.9   3      19 checks, 1 waived  2026-01-02  recipe r: three\n"},
		"page, library": {narrow.Page(p), "  library 1.9  -      20 checks            2026-01-02\n"},
		"Markdown":      {one.Markdown(), "| server 1.9 | 3 | 19 checks, 1 waived | 2026-01-02 | recipe r: three |  |"},
		"its list":      {l.Markdown(), "| library 1.9, 20 checks, 2026-01-02; server 1.9, 1 and 3 nodes, 20 checks, 2026-01-02 |"},
		"list":          {strings.Join(strings.Fields(narrow.Page(q)), " "), "server 1.9, 1 and 3 nodes, 20 checks, 2026-01-02"},
	} {
		if !strings.Contains(pair[0], pair[1]) {
			t.Errorf("%s: no %q in\n%s", what, pair[1], pair[0])
		}
	}
	if none := DriverOf(d, nil); latest() != nil || strings.Contains(none.Markdown(), "tested against") {
		t.Error("a driver without a record was tested against something")
	}
}

// If the names agree, the title's version alone is shown.
func TestServerNameShownWhenTitleDiffers(t *testing.T) {
	for want, es := range map[string][]tested.Entry{
		"":                                nil,
		" (2.0.11)":                       {{Server: "mongodb", Version: "2.0.11", Nodes: 1}},
		" (4.3, 4.4)":                     {{Server: "MongoDB", Version: "v4.3", Nodes: 1}, {Server: "MongoDB", Version: "4.4", Nodes: 1}},
		" (FerretDB 1.24.2)":              {{Server: "FerretDB", Version: "v1.24.2", Nodes: 1}, {Server: "FerretDB", Version: "1.24.2", Nodes: 3}, {Server: "a library", Version: "1", Nodes: 0}},
		" (MongoDB 8.0; FerretDB 1.24.2)": {{Server: "MongoDB", Version: "8.0", Nodes: 1}, {Server: "FerretDB", Version: "v1.24.2", Nodes: 1}},
	} {
		d := all.Definitions()[0]
		d.Title = "MongoDB"
		for i := range es {
			es[i].Driver, es[i].Date = d.Name, "2026-01-02"
		}
		if one := DriverOf(d, es); one.versions() != want {
			t.Errorf("got %q; want %q", one.versions(), want)
		}
	}
}
