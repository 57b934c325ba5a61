package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// placed is a folder with runs a/1, a/2 and b, and one that has a comma in its name.
func placed(t *testing.T) Place {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a/1", "a/2", "b", "c,d"} {
		must.Do(t, os.CopyFS(filepath.Join(dir, name), os.DirFS("../../result/testdata/v1/jetstream")))
	}
	return Place(dir)
}

func TestRunsKeepUserGivenNames(t *testing.T) {
	at := placed(t)
	for given, want := range map[string]string{
		"a": "a/1 a/2", "b/": "b", "a/1,b": "a/1 b", "a/*": "a/1 a/2", "c,d": "c,d", string(at) + "/b": string(at) + "/b",
	} {
		side, err := at.Side(given, result.Loading{})
		var got []string
		for _, r := range side.Runs {
			got = append(got, r.Dir)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", given, err, diff)
		}
	}
	for given, says := range map[string]string{
		"a,,b": `"a,,b": the name of a folder is empty (`, "nats://u:hush@h": "an argument is a URL, not a folder (",
		"x*": "x*: there is no such file or folder (", "[": "[: is not a pattern (", "x": "there is no such folder (",
	} {
		if _, err := at.Side(given, result.Loading{}); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v; want %q", given, err, says)
		}
	}
}

func TestReadOnceReportsAllErrors(t *testing.T) {
	at := placed(t)
	must.Do(t, os.Remove(at.Path("b/events.jsonl")))
	entries, lacks, bad := at.Read([]string{"b", "a", "a/1", "", "x", "nats://u:hush@h"}, Loading{})
	var names, wrong []string
	for _, e := range entries {
		names = append(names, e.Dir)
	}
	for _, x := range bad {
		wrong = append(wrong, x.Err.Error())
	}
	if diff := cmp.Diff([]string{"b", "a/1", "a/2"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b lacks events.jsonl; shown is what result.json holds"}, lacks); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(wrong) != 3 || strings.Contains(strings.Join(wrong, ""), "hush") {
		t.Errorf("%q", wrong)
	}
}
