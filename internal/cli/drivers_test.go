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
	"github.com/weirmq/weir/drivers/all"
)

// driverDocs is where the drivers' pages are, as from here.
const driverDocs = "../../docs/drivers"

// TestTheDriversPagesAreUpToDate generates docs/drivers and compares; -update
// writes it.
func TestTheDriversPagesAreUpToDate(t *testing.T) {
	var l driverList
	want := []string{"README.md"}
	for _, d := range all.Definitions() {
		p := pageOf(d)
		l.Drivers = append(l.Drivers, p)
		want = append(want, d.Name+".md")
		goldenFile(t, filepath.Join(driverDocs, d.Name+".md"), p.markdown())
	}
	goldenFile(t, filepath.Join(driverDocs, "README.md"), l.markdown())
	entries, err := os.ReadDir(driverDocs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(want, e.Name()) {
			t.Errorf("docs/drivers/%s is no driver's", e.Name())
		}
	}
}

func TestADriversPageForTheTerminal(t *testing.T) {
	i := slices.IndexFunc(all.Definitions(), func(d driver.Definition) bool { return d.Name == "jetstream" })
	d := pageOf(all.Definitions()[i])
	p := &page{width: 80}
	d.show(p)
	golden(t, "drivers-jetstream.txt", p.String())
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
		one := pageOf(d)
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
		for _, x := range pageOf(d).Examples {
			args := append(strings.Fields(x)[1:], "--explain", "--out", "r")
			code, stdout, stderr := do(t, World{Drivers: all.Definitions()}, args...)
			if code != int(OK) {
				t.Errorf("%s: exit code %d\n%s%s", x, code, stdout, stderr)
			}
		}
	}
}
