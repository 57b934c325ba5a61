//go:build systems

package all

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

// TestEverySystemRan runs last in make systems. It compares the systems that ran with those that
// the drivers' recipes can start, with one node and with the maximum: a recipe that no test starts
// fails. With CI set, so does a recipe that could not be started because the host lacks something.
func TestEverySystemRan(t *testing.T) {
	path := os.Getenv(served.VariableLog)
	if path == "" {
		t.Fatalf("%s names no log of systems: run make systems", served.VariableLog)
	}
	lines := must.Get(served.ReadLog(path))(t)
	name := func(recipe string, nodes int) string { return fmt.Sprintf("%s of %d", recipe, nodes) }
	ran, lacks := map[string]string{}, map[string]string{}
	for _, l := range lines {
		if n := name(l.Recipe, l.Nodes); l.Lacks == "" {
			ran[n] = l.Version
		} else {
			lacks[n] = l.Lacks
		}
	}
	registry := must.Get(driver.NewRegistry(Definitions()...))(t)
	entries := must.Get(broker.Catalog(registry))(t)
	ci, _ := strconv.ParseBool(os.Getenv("CI"))
	var said []string
	want := 0
	for _, e := range entries {
		if e.Recipe.Install == nil {
			continue // only available as a container
		}
		for _, nodes := range slices.Compact([]int{e.Recipe.Nodes[0], slices.Max(e.Recipe.Nodes)}) {
			want++
			n := name(e.Recipe.Name, nodes)
			switch version, why := ran[n], lacks[n]; {
			case version != "":
				said = append(said, "ran:     "+n+" ("+version+")")
			case why != "" && !ci:
				said = append(said, "did not: "+n+": "+why)
			case why != "":
				t.Errorf("%s did not run: %s; with CI set every system must", n, why)
			default:
				t.Errorf("%s: no test started it (a driver's conformance must)", n)
			}
		}
	}
	t.Logf("%d distinct systems ran; %d are asked for:\n%s", len(ran), want, strings.Join(said, "\n"))
}
