package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// driverDocs is where the drivers' pages are, as from here.
const driverDocs = "../../docs/drivers"

// TestTheDriversPagesAreUpToDate generates docs/drivers and compares; -update
// writes it.
func TestTheDriversPagesAreUpToDate(t *testing.T) {
	var l view.DriverList
	want := []string{"README.md"}
	for _, d := range all.Definitions() {
		p := view.DriverOf(d, standard.Tested())
		if slices.ContainsFunc(standard.Absent(), func(a driver.Absent) bool { return a.Name == d.Name }) {
			p.Only("weir-all")
		}
		l.Drivers = append(l.Drivers, p)
		want = append(want, d.Name+".md")
		golden.File(t, filepath.Join(driverDocs, d.Name+".md"), p.Markdown())
	}
	golden.File(t, filepath.Join(driverDocs, "README.md"), l.Markdown())
	entries := must.Get(os.ReadDir(driverDocs))(t)
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
	d := view.DriverOf(all.Definitions()[i], []tested.Entry{
		{Driver: "jetstream", Test: "TestConformance/file", Server: "nats-server", Version: "2.0.0", Nodes: 1, Client: "v1.0.0", Passed: 28, Date: "2026-01-02"},
		{
			Driver: "jetstream", Test: "TestConformance/three_nodes", Recipe: "nats", Server: "nats-server", Version: "2.0.0", Nodes: 3, Client: "v1.0.0", Passed: 27,
			Waived: []string{"LostConnectionReported"}, Date: "2026-01-02",
		},
	})
	p := new(layout.Page)
	d.Show(p)
	plain, painted := layout.Text{Width: 80, Fold: true}.Page(p), layout.Text{Width: 80, Fold: true, Colour: true}.Page(p)
	expected(t, "drivers-jetstream.txt", plain)
	if unpainted(painted) != plain || painted == plain {
		t.Error("colour changes the text, or is none")
	}
}

// TestTheExamplesOfADriverParse resolves each, and runs none.
func TestTheExamplesOfADriverParse(t *testing.T) {
	for _, d := range all.Definitions() {
		for _, x := range view.DriverOf(d, standard.Tested()).Examples {
			args := append(strings.Fields(x)[1:], "--explain", "--out", "r")
			code, stdout, stderr := do(t, World{Drivers: all.Definitions()}, args...)
			if code != int(OK) {
				t.Errorf("%s: exit code %d\n%s%s", x, code, stdout, stderr)
			}
		}
	}
}
