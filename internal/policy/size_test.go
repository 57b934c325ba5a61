package policy

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// mostPackages is how many packages go run ./cmd/weir may compile, which determines how long a
// newcomer waits. docs/writing-a-driver.md says where a driver with too many dependencies belongs. make size
// prints the number.
const mostPackages = 780

// TestWeirCompilesFewPackages also forbids C code, which takes as long as many packages.
func TestWeirCompilesFewPackages(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{if not .Standard}}{{len .CgoFiles}}{{else}}0{{end}}", "./cmd/weir")
	list.Dir = "../.."
	out := must.Get(list.Output())(t)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) > mostPackages {
		t.Errorf("cmd/weir compiles %d packages, at most %d: which import brought them, and is it for drivers/all?", len(lines), mostPackages)
	}
	for _, l := range lines {
		if name, files, _ := strings.Cut(l, " "); files != "0" {
			t.Errorf("cmd/weir compiles %s, which is C code", name)
		}
	}
}
