package cli

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/weirmq/weir/internal/golden"
)

// expected compares what was got with a file of testdata.
func expected(t *testing.T, name, got string) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", "golden", name), got)
}

// unpainted takes the colours away.
func unpainted(s string) string {
	return regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(s, "")
}
