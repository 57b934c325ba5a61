package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// storedRuns reads the results of all real runs that are kept, by path: those of this
// version in testdata/runs, one of each mode and end of a run, and older ones.
func storedRuns(t *testing.T) map[string]*result.Result {
	t.Helper()
	all := map[string]*result.Result{}
	for _, pattern := range []string{"testdata/runs/*.json", "../../result/testdata/v1/*/result.json", "../view/testdata/runs/*/result.json"} {
		paths, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v: there is none", pattern, err)
		}
		for _, path := range paths {
			b := must.Get(os.ReadFile(path))(t)
			if all[filepath.ToSlash(path)], err = result.Unmarshal(b); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
	return all
}

// The status of each check and the outcome of each objective. If an older version stored too little, no
// check may improve.
func TestStoredVerdictsAreReproduced(t *testing.T) {
	t.Parallel()
	words := cmpopts.IgnoreFields(result.Figure{}, "Why") // its code decides, its words may change
	for path, r := range storedRuns(t) {
		before := r.Verdict
		v := Again(r)
		if before.Figures != nil && (v.Verdict.Status != before.Status || len(v.Changes) > 0 || !cmp.Equal(v.Verdict.Figures, before.Figures, words)) {
			t.Errorf("%s: %s, stored %s: %+v", path, v.Verdict.Status, before.Status, v.Changes)
		}
		bare := r.Evidence == nil
		older := bare || r.Run.Loop == result.LoopClosed && r.Host.Hiccups.HeldNS == nil
		if bare == strings.HasPrefix(path, "testdata") || older != (len(v.Kept) > 0) || !older && len(v.Lacking) > 0 {
			t.Errorf("%s: not judged again: %q, not at all: %q", path, v.Kept, v.Lacking)
		}
		for _, c := range v.Verdict.Checks {
			stored := find(before.Checks, c.Name)
			if r.Evidence == nil && stored != nil && rankOf(c.Status) < rankOf(stored.Status) {
				t.Errorf("%s: %s was %s, and is %s without evidence", path, c.Name, stored.Status, c.Status)
			}
		}
	}
}

// A result that is written and read again has exactly the same verdict, and its own verdict is ignored.
func TestVerdictDependsOnlyOnStoredResult(t *testing.T) {
	t.Parallel()
	for path, r := range storedRuns(t) {
		var objectives []Objective
		for _, s := range r.Verdict.SLO {
			o := must.Get(ParseObjective(s.Expr))(t)
			objectives = append(objectives, o)
		}
		want := Verdict(r, objectives)
		r.Verdict = result.Verdict{}
		b := must.Get(result.Marshal(r))(t)
		read := must.Get(result.Unmarshal(b))(t)
		if diff := cmp.Diff(want, Verdict(read, objectives), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
}

// Without the evidence of a golden run no check that needs it is valid, and a stored finding stands.
func TestWithoutEvidenceNothingPasses(t *testing.T) {
	t.Parallel()
	r := storedRuns(t)["testdata/runs/stream.json"]
	r.Evidence = nil
	for _, c := range Verdict(r, nil).Checks {
		switch c.Name {
		case CheckRun, CheckAccounting, CheckFailed, CheckRate, CheckLedger, CheckSteady, CheckHeadroom, CheckRecording, CheckGC, CheckBlocked, CheckFigures:
			if c.Status != result.NotRun || !says(c, "not.stored") {
				t.Errorf("%+v; want it not run", c)
			}
		}
	}
	if v := Again(r); v.Verdict.Status != v.Stored || len(v.Kept) != 11 || len(v.Changes) != 0 {
		t.Errorf("%s, stored %s, kept %q, changed %+v", v.Verdict.Status, v.Stored, v.Kept, v.Changes)
	}
	r.Verdict = result.Verdict{}
	if v := Again(r); len(v.Lacking) != 11 || len(v.Kept) != 0 {
		t.Errorf("without a stored verdict: lacking %q, kept %q", v.Lacking, v.Kept)
	}
}
