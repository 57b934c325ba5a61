// Package golden compares what tests find with what they want: with values, and with golden files, which
// the flag -update rewrites. Only tests import it.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
)

// A flag must be defined before a test binary parses its own.
var update = flag.Bool("update", false, "write what is generated, and the golden files")

// Updating reports whether to write files rather than compare.
func Updating() bool { return *update }

// File compares a test's result with a file, which it writes first with -update.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what it should be (-file +got; -update writes it):\n%s", path, diff)
	}
}

// Equal compares two values, and reports how they differ; what, a format, names them.
func Equal(t testing.TB, want, got any, what string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s:\n%s", strings.TrimSpace(fmt.Sprintf(what, args...)+" (-want +got)"), diff)
	}
}
