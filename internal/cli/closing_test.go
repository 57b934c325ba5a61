package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// closing lays out the table of all systems. cases are those of the page, by the name of
// their file.
func closing(t *testing.T, page *layout.Page, cases map[string]systemCase) {
	t.Helper()
	page.Chapter("All systems in one table")
	for _, text := range proseOf(t).ClosingHead {
		page.Say(text)
	}
	x := &layout.Table{Columns: layout.Columns(layout.Word, layout.Plain, "system", "version", "shape")}
	x.Columns = append(x.Columns, layout.Columns(layout.Number, layout.Plain, "lines")...)
	x.Columns = append(x.Columns, layout.Columns(layout.Word, layout.Plain, "checks", "waived", "weir/tool")...)
	x.Columns = append(x.Columns, layout.Columns(layout.Number, layout.Plain, "e2e p99")...)
	x.Columns = append(x.Columns, layout.Columns(layout.Word, layout.Plain, "verdict")...)
	x.Columns[1].Key, x.Columns[2].Key = false, false
	ratios := peerRatios(t)
	ran := map[string]bool{}
	order := slices.SortedFunc(maps.Keys(cases), func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(cases[a].Title), strings.ToLower(cases[b].Title)), strings.Compare(a, b))
	})
	for _, name := range order {
		c := cases[name]
		s := &c.Result.System
		ran[s.Driver] = true
		entries := tested.Of(standard.Tested(), s.Driver)
		entries = slices.DeleteFunc(entries, func(e tested.Entry) bool { return e.Nodes != s.Server.Nodes || e.Version != s.Server.Version })
		p99 := "-"
		if v, ok := c.Result.Figures["e2e.p99"]; ok {
			p99 = quantity.Time(int64(v))
		}
		ratio := "-"
		if name == s.Driver { // its server in the default shape
			ratio = cmp.Or(strings.Join(ratios[s.Driver], ", "), "-")
		}
		x.Row(append(closingRow(t, c.Title, s.Server.Version, shape(s.Server.Nodes), s.Driver, entries), ratio, p99, verdictText(&c.Result))...)
	}
	for _, d := range all.Definitions() {
		if ran[d.Name] {
			continue
		}
		entries := tested.Of(standard.Tested(), d.Name)
		version, nodes := "-", 0
		if len(entries) > 0 {
			version, nodes = entries[0].Server+" "+entries[0].Version, entries[0].Nodes
		}
		x.Row(append(closingRow(t, cmp.Or(d.Title, d.Name), version, shape(nodes), d.Name, entries), "-", "-", "no run above")...)
	}
	page.Table(x)
}

// closingRow is the first columns of a row.
func closingRow(t *testing.T, title, version, shape, name string, entries []tested.Entry) []string {
	t.Helper()
	least, most := 0, 0
	waived := map[string]bool{}
	for i, e := range entries {
		if i == 0 {
			least = e.Passed
		}
		least, most = min(least, e.Passed), max(most, e.Passed)
		for _, w := range e.Waived {
			waived[w] = true
		}
	}
	checks := "none in this shape"
	switch {
	case most > least:
		checks = fmt.Sprintf("%d to %d", least, most)
	case most > 0:
		checks = strconv.Itoa(most)
	}
	return []string{title, version, shape, driverLines(t, name), checks, cmp.Or(strings.Join(slices.Sorted(maps.Keys(waived)), ", "), "-")}
}

// shape says how many nodes formed a system.
func shape(nodes int) string {
	switch nodes {
	case 0:
		return "in weir's process"
	case 1:
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// driverLines counts the lines of a driver's folder without tests, and names what it shares
// with others that is about a protocol or a server.
func driverLines(t *testing.T, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../drivers", strings.ReplaceAll(name, "-", ""), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files: %v", name, len(files), err)
	}
	n := 0
	var shared []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b := must.Get(os.ReadFile(file))(t)
		n += strings.Count(string(b), "\n")
		for line := range strings.Lines(string(b)) {
			_, part, found := strings.Cut(strings.Trim(line, "\t\n\""), "github.com/weirmq/weir/drivers/internal/")
			if found && (strings.HasSuffix(part, "conn") || strings.HasSuffix(part, "server")) && !slices.Contains(shared, part) {
				shared = append(shared, part)
			}
		}
	}
	// To hundreds, or each change of a driver would change the page.
	text := "some " + quantity.Count(uint64((n+50)/100*100))
	if len(shared) > 0 {
		slices.Sort(shared)
		text += " + " + strings.Join(shared, ", ")
	}
	return text
}

// peerRatios are what docs/results/peers.json has, by driver.
func peerRatios(t *testing.T) map[string][]string {
	t.Helper()
	b := must.Get(os.ReadFile("../../docs/results/peers.json"))(t)
	var peers struct {
		Rows []struct {
			Name, What string
			Ratio      struct {
				Median float64
				Lo, Hi *float64
			}
		}
	}
	if err := json.Unmarshal(b, &peers); err != nil || len(peers.Rows) == 0 {
		t.Fatalf("%d rows: %v", len(peers.Rows), err)
	}
	names := map[string]string{"redis": "redis-streams"} // where a row's name does not begin with the driver's
	by := map[string][]string{}
	for _, r := range peers.Rows {
		system, _, _ := strings.Cut(r.Name, "-")
		name := cmp.Or(names[system], system)
		if !slices.ContainsFunc(all.Definitions(), func(d driver.Definition) bool { return d.Name == name }) {
			t.Errorf("row %s of peers.json is of no driver", r.Name)
		}
		text := fmt.Sprintf("%s %.2f", r.What, r.Ratio.Median)
		if r.Ratio.Lo != nil && r.Ratio.Hi != nil {
			text += fmt.Sprintf(" (%.2f..%.2f)", *r.Ratio.Lo, *r.Ratio.Hi)
		}
		by[name] = append(by[name], text)
	}
	return by
}

// verdictText is the verdict of a run and the checks that it is for.
func verdictText(r *result.Result) string {
	text := string(r.Verdict.Status)
	var checks []string
	for _, check := range r.Verdict.Checks {
		checks = append(checks, check.Name)
	}
	if len(checks) > 0 {
		text += " (" + strings.Join(checks, ", ") + ")"
	}
	return text
}
