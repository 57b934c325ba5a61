package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// TestServersExceedingMemoryAreRejected compares the memory of all processes on all nodes, which
// depends on settings, with the host's.
func TestServersExceedingMemoryAreRejected(t *testing.T) {
	text := strings.Replace(goodRecipe, "settings:\n", "settings:\n  heap: {default: 256m, help: Heap.}\n", 1)
	text = strings.Replace(text, "  - name: server\n", "  - name: server\n    memory: '{{set \"heap\"}} + 44MiB'\n", 1)
	text = strings.Replace(text, "on: first,", "on: first, memory: 100MiB,", 1)
	r := must.Get(RecipeOf(driver.Definition{Name: "d", Page: driver.Page{Recipe: []byte(text)}}, ""))(t)
	for _, c := range []struct {
		nodes     int
		heap      string
		available uint64 // MiB
		want      string
	}{
		{1, "256m", 400, ""},
		{3, "256m", 1000, ""},
		{3, "256m", 0, ""}, // the host does not report it
		{1, "256m", 399, "good on 1 node(s) needs 400 MiB of memory, and this host has 399 MiB available (a host with more memory, or a lower heap)"},
		{3, "1g", 3000, "good on 3 node(s) needs 3304 MiB of memory, and this host has 3000 MiB available (a host with more memory, or fewer nodes, or a lower heap)"},
		{3, "4000000t", 3000, "good on 3 node(s) needs 8796093022207 MiB"},
		{1, "lots", 400, `processes[0].memory: "lots" is not a size`},
	} {
		s := Serving{Recipe: r, Nodes: c.nodes, Settings: map[string]string{"heap": c.heap}}
		switch err := s.fits(c.available << 20); {
		case c.want == "":
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		case !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%+v: %v", c, err)
		}
	}
}
