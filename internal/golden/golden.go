// Package golden lets tests compare what they got with a file that holds what is
// right, and write such files anew when the flag -update says so. Only tests import
// it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A flag has to be there before a test binary reads its own.
var update = flag.Bool("update", false, "write what is generated, and the golden files")

// Updating reports whether files are to be written rather than compared.
func Updating() bool { return *update }

// File compares what a test got with a file, which it writes first where -update
// says so.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what it should be (-file +got; -update writes it):\n%s", path, diff)
	}
}
