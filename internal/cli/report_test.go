package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

func TestHTMLIsNotWrittenToTerminal(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(dir, "r"), os.DirFS("../../result/testdata/v1/jetstream")))
	w := World{Dir: dir, StdoutTerminal: true}
	code, stdout, stderr := do(t, w, "report", "--html", "r")
	if code != int(Usage) || stdout.String() != "" || !strings.Contains(stderr.String(), "HTML needs a file or a pipe: add -o FILE.html") {
		t.Errorf("exit code %d\n%s\n%.200s", code, stderr, stdout)
	}
	if code, _, stderr = do(t, w, "report", "--html", "-o", "x.html", "r"); code != int(OK) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	w.StdoutTerminal = false
	code, stdout, stderr = do(t, w, "report", "--format", "HTML", "r")
	if b, err := os.ReadFile(filepath.Join(dir, "x.html")); code != int(OK) || err != nil || string(b) != stdout.String() {
		t.Errorf("on a pipe and in a file: exit code %d, %v\n%s", code, err, stderr)
	}
}

// The HTML page reads the logs, unlike the table.
func TestHTMLReportRejectsBrokenLogs(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(dir, "r"), os.DirFS("../../result/testdata/v1/jetstream")))
	log := filepath.Join(dir, "r", result.FileIntervals)
	b := must.Get(os.ReadFile(log))(t)
	then := time.Now().Add(-24 * time.Hour) // what a test's weir writes is held against docs/formats, and this is not weir's
	must.Do(t, errors.Join(os.WriteFile(log, b[:len(b)-5], 0o644), os.Chtimes(filepath.Join(dir, "r", result.FileResult), then, then)))
	code, stdout, stderr := do(t, World{Dir: dir}, "report", "--html", "r")
	if code != int(Usage) || stdout.String() != "" || !strings.Contains(stderr.String(), "cut short: the last line is not whole (the folder as the run left it)") {
		t.Errorf("exit code %d\n%s\n%.200s", code, stderr, stdout)
	}
	if code, _, stderr = do(t, World{Dir: dir}, "report", "r"); code != int(OK) {
		t.Errorf("the table: exit code %d\n%s", code, stderr)
	}
}

// Nothing on stdout, and no folder.
func TestEmptySessionIsRejected(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"run", "--driver", "noop", "--session", "0", "--out", "x"},
		{"report", "--session", "0", "r"},
	} {
		code, stdout, stderr := do(t, World{Dir: dir, Drivers: all.Definitions()}, args...)
		if code != int(Usage) || stdout.String() != "" || !strings.Contains(stderr.String(), "--session: is 0 messages (1 or more, or leave it out)") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
