package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
)

// TestTheCommandsInDocumentsRun runs every weir command of the documents'
// code blocks, shortened: a document whose command fails is wrong.
func TestTheCommandsInDocumentsRun(t *testing.T) {
	documents, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`\s+#.*$`)
	ran := 0
	for _, d := range documents {
		b, err := os.ReadFile(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range quoted(string(b)) {
			args := strings.Fields(comment.ReplaceAllString(line, ""))
			name := filepath.Base(d) + ": " + strings.Join(args, " ")
			ran++
			t.Run(name, func(t *testing.T) {
				args := rooted(t, args)
				switch args[0] {
				case "run":
					args = append(without(args, "--out"), "--warmup", "100ms", "--measure", "300ms", "--rate", "200/s", "--out", filepath.Join(t.TempDir(), "r"))
				case "calibrate":
					args = []string{"calibrate", "--help"} // it has tests of its own, and takes half a minute
				}
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				code, stdout, stderr := do(t, World{Self: self, Drivers: all.Definitions()}, args...)
				if code != int(OK) && code != int(Invalid) { // on a busy host so short a run may well be invalid
					t.Errorf("weir %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
				}
			})
		}
	}
	if ran < 4 {
		t.Errorf("found %d commands: the documents have lost theirs, or this test its eyes", ran)
	}
}

// quoted returns the arguments of each line in a code block that calls weir.
func quoted(doc string) []string {
	var found []string
	for i, block := range strings.Split(doc, "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			for _, name := range []string{"weir ", "go run ./cmd/weir "} {
				if args, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
					found = append(found, args)
				}
			}
		}
	}
	return found
}

// rooted makes the module's own files findable from here.
func rooted(t *testing.T, args []string) []string {
	t.Helper()
	args = slices.Clone(args)
	for i, a := range args {
		if strings.HasPrefix(a, "docs/") {
			path, err := filepath.Abs("../../" + a)
			if err != nil {
				t.Fatal(err)
			}
			args[i] = path
		}
	}
	return args
}

func without(args []string, flag string) []string {
	for i, a := range args {
		if a == flag {
			return append(args[:i:i], args[i+2:]...)
		}
	}
	return args
}
