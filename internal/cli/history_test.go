package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// remembered makes a folder of runs in which the tail grows by a millisecond from the 13th
// on, when the system began to keep messages elsewhere, and looks for that.
func remembered(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, errors.Join(
		makeSeries(filepath.Join(dir, "nights", "a"), 12, made{seed: 1, hour: 3}),
		makeSeries(filepath.Join(dir, "nights", "b"), 9, made{seed: 2, hour: 4, tail: 1_000_000, storage: "memory", invalid: 1}),
	))
	code, stdout, stderr := do(t, World{Dir: dir}, append([]string{"history", "nights"}, args...)...)
	if code != int(Missed) || stderr.String() != "" {
		t.Fatalf("exit code %d, want %d: %s", code, Missed, stderr)
	}
	return stdout.String()
}

func TestTheHistoryAsText(t *testing.T) { expected(t, "history.txt", remembered(t)) }
func TestTheHistoryAsMarkdown(t *testing.T) {
	expected(t, "history.md", remembered(t, "--markdown"))
}

func TestHistoryHTMLChartsChangedFigures(t *testing.T) {
	page := remembered(t, "--html")
	if n := strings.Count(page, `<svg class="chart"`); n != 1 {
		t.Errorf("%d charts, want one: of e2e p99", n)
	}
	answer := strings.Index(page, "yes</span>: ")
	if answer < 0 || answer > strings.Index(page, "<svg") || answer != strings.LastIndex(page, "yes</span>: ") {
		t.Error("the page does not begin with its answer, or says it twice")
	}
	if strings.Count(page, "<script") != 2 || !strings.Contains(page, "; script-src &#39;sha256-") || strings.Contains(page, "http://") {
		t.Error("the page holds another script than weir's own and its data, or asks for something")
	}
}
