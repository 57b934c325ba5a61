package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/golden"
)

// driverDocs is where the drivers' pages are, as from here.
const driverDocs = "../../docs/drivers"

// TestTheDriversPagesAreUpToDate generates docs/drivers and compares; -update
// writes it.
func TestTheDriversPagesAreUpToDate(t *testing.T) {
	var l driverList
	want := []string{"README.md"}
	for _, d := range all.Definitions() {
		p := pageOf(d, all.Tested())
		l.Drivers = append(l.Drivers, p)
		want = append(want, d.Name+".md")
		golden.File(t, filepath.Join(driverDocs, d.Name+".md"), p.markdown())
	}
	golden.File(t, filepath.Join(driverDocs, "README.md"), l.markdown())
	entries, err := os.ReadDir(driverDocs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains(want, e.Name()) {
			continue
		}
		if golden.Updating() { // of a driver that was removed
			if err := os.Remove(filepath.Join(driverDocs, e.Name())); err != nil {
				t.Error(err)
			}
			continue
		}
		t.Errorf("docs/drivers/%s is not a driver's: make generate removes it", e.Name())
	}
}

func TestADriversPageForTheTerminal(t *testing.T) {
	i := slices.IndexFunc(all.Definitions(), func(d driver.Definition) bool { return d.Name == "jetstream" })
	d := pageOf(all.Definitions()[i], []tested.Entry{
		{Driver: "jetstream", Test: "TestConformance/file", Server: "nats-server", Version: "2.0.0", Nodes: 1, Client: "v1.0.0", Passed: 28, Date: "2026-01-02"},
		{
			Driver: "jetstream", Test: "TestConformance/three_nodes", Recipe: "nats", Server: "nats-server", Version: "2.0.0", Nodes: 3, Client: "v1.0.0", Passed: 27,
			Waived: []string{"LostConnectionReported"}, Date: "2026-01-02",
		},
	})
	p := &page{width: 80}
	d.show(p)
	expected(t, "drivers-jetstream.txt", p.String())
	painted := &page{width: 80, colour: true}
	d.show(painted)
	if unpainted(painted.String()) != p.String() || painted.String() == p.String() {
		t.Error("colour changes the text, or is none")
	}
}

// TestEveryCapabilityIsShown sets each field of a driver's capabilities and
// looks for it on the pages: a new one must be shown.
func TestEveryCapabilityIsShown(t *testing.T) {
	def := driver.Definition{Name: "x", New: func() driver.Config { return all.Definitions()[0].New() }}
	shown := func(c driver.Capabilities) (text, markdown, list, asJSON string) {
		d := def
		d.Capabilities = c
		one := pageOf(d, all.Tested())
		l := driverList{Drivers: []driverPage{one}}
		p, q := &page{width: 100}, &page{width: 100}
		one.show(p)
		l.show(q)
		b, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		return p.String(), one.markdown(), q.String(), string(b)
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

func TestMarkupInATextIsKeptAsText(t *testing.T) {
	if got, want := mdText("weir.<run> | a_b ${env:X} *"), `weir.\<run> \| a\_b \${env:X} \*`; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// TestTheExamplesOfADriverParse resolves each, and runs none.
func TestTheExamplesOfADriverParse(t *testing.T) {
	for _, d := range all.Definitions() {
		for _, x := range pageOf(d, all.Tested()).Examples {
			args := append(strings.Fields(x)[1:], "--explain", "--out", "r")
			code, stdout, stderr := do(t, World{Drivers: all.Definitions()}, args...)
			if code != int(OK) {
				t.Errorf("%s: exit code %d\n%s%s", x, code, stdout, stderr)
			}
		}
	}
}

// TestTheListFitsATerminalOf80Columns holds every line of the list to it.
func TestTheListFitsATerminalOf80Columns(t *testing.T) {
	var l driverList
	for _, d := range all.Definitions() {
		l.Drivers = append(l.Drivers, pageOf(d, all.Tested()))
	}
	p := &page{width: 79} // the last column is left free
	l.show(p)
	for line := range strings.Lines(p.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 79 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, c := range capabilities {
		if !strings.Contains(p.String(), " "+c.short) || !strings.Contains(p.String(), "\n"+c.short+" ") {
			t.Errorf("%s is not a column, or is not explained", c.short)
		}
	}
}

func TestTheFeaturesAreOnEveryPage(t *testing.T) {
	d := all.Definitions()[0]
	d.Features = driver.Features{Persistence: "xkept", Replication: "xcopied", Protocol: "xspoken"}
	one := pageOf(d, nil)
	l := driverList{Drivers: []driverPage{one}}
	p, q := &page{width: 79}, &page{width: 79}
	one.show(p)
	l.show(q)
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"page": p.String(), "list": q.String(), "Markdown of it": one.markdown(), "Markdown of the list": l.markdown(), "JSON": string(b),
	} {
		for _, want := range []string{"xkept", "xcopied", "xspoken"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not on the %s", want, name)
			}
		}
	}
}

func TestWhatWasTestedIsOnEveryPage(t *testing.T) {
	d := all.Definitions()[0]
	run := tested.Entry{Driver: d.Name, Test: "TestConformance/one", Recipe: "r", Server: "server", Version: "1.9", Nodes: 1, Passed: 20, Date: "2026-01-02"}
	three, newer, other, foreign := run, run, run, run
	three.Test, three.Nodes, three.Passed, three.Waived = "TestConformance/three", 3, 19, []string{"Order"}
	newer.Test, newer.Version, newer.Nodes, newer.Passed, newer.Date = "TestConformance/five", "1.10", 5, 25, "2026-01-03"
	other.Test, other.Server, other.Nodes, other.Recipe = "TestConformance", "library", 0, ""
	foreign.Driver = "another"
	one := pageOf(d, []tested.Entry{other, run, three, foreign})
	if got, want := strings.Join(one.latest(), "; "), "library 1.9, 20 checks, 2026-01-02; server 1.9, 1 and 3 nodes, 20 checks, 2026-01-02"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	latest := func(es ...tested.Entry) []string {
		one := pageOf(d, es)
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
	l := driverList{Drivers: []driverPage{one}}
	p, q := &page{width: 79}, &page{width: 79}
	one.show(p)
	l.show(q)
	for what, pair := range map[string][2]string{
		"page":          {p.String(), "  server 1.9   3      19 checks, 1 waived  2026-01-02  recipe r: three\n"},
		"page, library": {p.String(), "  library 1.9  -      20 checks            2026-01-02  TestConformance\n"},
		"Markdown":      {one.markdown(), "| server 1.9 | 3 | 19 checks, 1 waived | 2026-01-02 | recipe r: three |  |"},
		"its list":      {l.markdown(), "| library 1.9, 20 checks, 2026-01-02; server 1.9, 1 and 3 nodes, 20 checks, 2026-01-02 |"},
		"list":          {strings.Join(strings.Fields(q.String()), " "), "server 1.9, 1 and 3 nodes, 20 checks, 2026-01-02"},
	} {
		if !strings.Contains(pair[0], pair[1]) {
			t.Errorf("%s: no %q in\n%s", what, pair[1], pair[0])
		}
	}
	if none := pageOf(d, nil); latest() != nil || strings.Contains(none.markdown(), "tested against") {
		t.Error("a driver without a record was tested against something")
	}
}

func TestAGridWrapsEveryColumnButTheFirst(t *testing.T) {
	p := &page{width: 40}
	p.grid(2, [][]string{{"", "one", "two"}, {"name", "a few words that are too many", "few"}, {"n", "x", "and a few words too many"}})
	want := `
        one              two
  name  a few words      few
        that are too
        many
  n     x                and a few words
                         too many
`
	if got := "\n" + p.String(); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}
