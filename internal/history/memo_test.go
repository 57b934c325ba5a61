package history

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func TestMemoKeepsAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "changes.json")
	runs := nightly(1, 40, 25, 1.05)
	o := options()
	want := must.Get(Of(runs, o))(t)
	for _, turn := range []string{"first", "with the file"} {
		o.Memo = OpenMemo(file, "1")
		got := must.Get(Of(runs, o))(t)
		golden.Equal(t, want, got, "%s", turn)
		if news := o.Memo.news; news != (turn == "first") {
			t.Errorf("%s: searches that are new: %t", turn, news)
		}
		must.Do(t, o.Memo.Save())
	}
	// Another version may find something else.
	o.Memo = OpenMemo(file, "2")
	if _, err := Of(runs, o); err != nil || !o.Memo.news {
		t.Errorf("another version used what was kept, %v", err)
	}
}

// What a search depends on is in its key.
func TestMemoTellsSearchesApart(t *testing.T) {
	m := OpenMemo("", "1")
	x := []float64{1, 2, 3}
	keys := []string{m.key(x, 0.05, 1), m.key(x, 0.01, 1), m.key(x, 0.05, 2), m.key(x[:2], 0.05, 1), m.key([]float64{1, 2, 4}, 0.05, 1)}
	slices.Sort(keys)
	if n := len(slices.Compact(keys)); n != 5 {
		t.Errorf("5 searches have %d keys", n)
	}
}

func TestMemoIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "changes.json")
	m := OpenMemo(file, "1")
	for i := range mostKept + 3 {
		m.changePoints([]float64{float64(i)}, 0.05, 1)
	}
	if err := m.Save(); err != nil || len(m.found) > mostKept {
		t.Errorf("%d searches are kept, %v", len(m.found), err)
	}
	again := OpenMemo(file, "1")
	if diff := cmp.Diff(m.found, again.old, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the file (-written +read):\n%s", diff)
	}
	// A broken file is as good as none.
	must.Do(t, os.WriteFile(file, []byte(`{"schema":"weir.changes/v1","found":{"a":[{`), 0o600))
	if m := OpenMemo(file, "1"); len(m.old) != 0 {
		t.Errorf("a broken file gave %v", m.old)
	}
	if got := (*Memo)(nil).changePoints(step(), 0.05, 1); len(got) != 1 {
		t.Errorf("without a memo a step is found as %v", got)
	}
}

// step is 20 values with a step.
func step() []float64 {
	x := make([]float64, 20)
	for i := range x {
		x[i] = float64(i / 10)
	}
	return x
}
