package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/needs"
)

// TestBinaryKnowsItsBuildInfo asks the real program: a test's binary
// does not record its modules.
func TestBinaryKnowsItsBuildInfo(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", weir, "../../cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), weir, "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var v buildinfo.Versions
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if v.Go != runtime.Version() || v.OS != runtime.GOOS || v.Arch != runtime.GOARCH || v.Weir == "" {
		t.Errorf("built by %s for %s/%s, says %+v", runtime.Version(), runtime.GOOS, runtime.GOARCH, v)
	}
	if len(v.Clients) == 0 || len(v.Servers) == 0 {
		t.Fatalf("no modules: %s", out)
	}
	modules := append(v.Clients, v.Servers...)
	list := []string{"list", "-m", "-f", "{{.Version}}"}
	for _, m := range modules {
		list = append(list, m.Path)
	}
	out, err = exec.CommandContext(t.Context(), "go", list...).Output()
	want := strings.Fields(string(out))
	if err != nil || len(want) != len(modules) {
		t.Fatalf("%d versions of %d modules, %v", len(want), len(modules), err)
	}
	for i, m := range modules {
		if m.Version != want[i] || len(m.Drivers) == 0 {
			t.Errorf("%s is %s; want %s", m.Path, m.Version, want[i])
		}
	}
}
