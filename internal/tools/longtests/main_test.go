package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// TestLongTestsAreFound has a test for each way to need time, and some that do not.
func TestLongTestsAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module m\n\ngo 1.26\n",
		"needs/needs.go":    "package needs\n\nfunc Time() {}\n\nfunc Less() bool { return Host() }\n\nfunc Host() bool { return true }\n",
		"browser/start.go":  "package browser\n\nimport \"m/needs\"\n\nfunc Start() { needs.Time() }\n",
		"short/a_test.go":   "package short\n\nimport \"m/needs\"\n\nfunc TestQuick() { needs.Host() }\n",
		"a/a.go":            "package a\n",
		"a/other_test.go":   "//go:build other\n\npackage a\n\nimport \"m/needs\"\n\nfunc TestElsewhere() { needs.Time() }\n",
		"a/outside_test.go": "package a_test\n\nimport b \"m/browser\"\n\nfunc TestBrowser() { b.Start() }\n",
		"a/a_test.go": `package a

import "m/needs"

type hosts struct{ slow int }

func (hosts) start() { needs.Time() }

func slow() { needs.Time() }

func TestMain()        { slow() }
func TestItself()      { needs.Time() }
func TestOften()       { for needs.Less() {} }
func TestByHelper()    { slow() }
func TestByMethod()    { new(hosts).start() }
func TestByValue()     { func(f func()) { f() }(slow) }
func TestShort()       { needs.Host() }
func TestField()       { _ = hosts{slow: 1} }
func TestLocal()       { slow := 1; _ = slow }
`,
	} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for pattern, want := range map[string]string{
		"./...":   "-run ^(TestBrowser|TestByHelper|TestByMethod|TestByValue|TestItself|TestOften)$ m/a\n",
		"./short": "",
	} {
		var stdout, stderr strings.Builder
		if code := run(dir, []string{pattern}, &stdout, &stderr); stdout.String() != want || (code == 0) != (want != "") {
			t.Errorf("%s: exit code %d, %q; want %q\n%s", pattern, code, &stdout, want, &stderr)
		}
	}
}
