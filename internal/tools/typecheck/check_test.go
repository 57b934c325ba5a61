package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// TestErrorsOnOtherPlatformsAreFound uses modules that compile on this platform.
func TestErrorsOnOtherPlatformsAreFound(t *testing.T) {
	const head = "package p\n\nimport \"syscall\"\n\n"
	for _, tt := range []struct {
		name, on string
		files    map[string]string
		says     string // "": it compiles
	}{
		{"nothing", "darwin/arm64", map[string]string{"p.go": head + "var _ = syscall.Getpid\n"}, ""},
		{"what only Linux has", "darwin/arm64", map[string]string{"p.go": head + "var _ = syscall.CLONE_NEWNET\n"}, "p.go:5:17: undefined: syscall.CLONE_NEWNET"},
		{"the same, in a file for Linux", "darwin/arm64", map[string]string{"p.go": "package p\n", "p_linux.go": head + "var _ = syscall.CLONE_NEWNET\n"}, ""},
		{"in a function", "darwin/arm64", map[string]string{"p.go": head + "func f() { _ = syscall.CLONE_NEWNET }\n"}, "p.go:5:24: undefined: syscall.CLONE_NEWNET"},
		{"in a test", "darwin/arm64", map[string]string{"p.go": "package p\n", "p_test.go": head + "var _ = syscall.CLONE_NEWNET\n"}, "p_test.go:5:17: undefined: syscall.CLONE_NEWNET"},
		{"in a test from outside", "darwin/arm64", map[string]string{"p.go": "package p\n", "p_test.go": strings.Replace(head, "package p", "package p_test", 1) + "var _ = syscall.CLONE_NEWNET\n"}, "p_test.go:5:17: undefined: syscall.CLONE_NEWNET"},
		{"what another architecture's kernel has narrower", "linux/arm64", map[string]string{"p.go": head + "func f(s *syscall.Stat_t) uint64 { return s.Nlink }\n"}, "cannot use s.Nlink"},
		{"a number that takes 64 bits", "linux/386", map[string]string{"p.go": "package p\n\nvar _ = int(1 << 40)\n"}, "overflows int"},
		{"an import that is not used", "darwin/arm64", map[string]string{"p.go": "package p\n", "p_darwin.go": head}, `"syscall" imported and not used`},
		{"no file for it", "darwin/arm64", map[string]string{"p_linux.go": "package p\n", "q/q.go": "package q\n\nimport _ \"m\"\n"}, "build constraints exclude all Go files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.files["go.mod"] = "module m\n\ngo 1.26\n"
			for name, text := range tt.files {
				path := filepath.Join(dir, name)
				must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must.Do(t, os.WriteFile(path, []byte(text), 0o600))
			}
			var stdout, stderr strings.Builder
			code := run(t.Context(), dir, []string{tt.on, "./..."}, &stdout, &stderr)
			if want := 1; tt.says == "" && (code != 0 || stdout.String() != "") || tt.says != "" && (code != want || !strings.Contains(stdout.String(), tt.says)) {
				t.Errorf("exit code %d, and it says %q; want %q\n%s", code, stdout.String(), tt.says, stderr.String())
			}
		})
	}
}

func TestUncheckablePackageIsAnError(t *testing.T) {
	for _, args := range [][]string{nil, {"darwin/arm64"}, {"darwin", "./..."}} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), t.TempDir(), args, &stdout, &stderr); code != 2 || stderr.String() == "" {
			t.Errorf("%q: exit code %d, and it says %q", args, code, stderr.String())
		}
	}
}
