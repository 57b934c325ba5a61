package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/finding"
	files "github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/result"
)

// Compares every word of the verdicts on the stored runs.
func TestStoredRunsAreJudgedAlike(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	runs := storedRuns(t)
	for _, path := range slices.Sorted(maps.Keys(runs)) {
		v := Again(runs[path])
		fmt.Fprintf(&b, "%s: %s\n", path, v.Verdict.Status)
		for _, c := range v.Verdict.Checks {
			fmt.Fprintf(&b, "  %s %s %q\n", c.Name, c.Status, c.With)
			for _, text := range []string{c.Value, c.Limit, c.Why} {
				if text != "" {
					fmt.Fprintf(&b, "    %s\n", text)
				}
			}
		}
		for _, s := range v.Verdict.SLO {
			fmt.Fprintf(&b, "  %s: %s %s\n", s.Expr, s.Status, s.Why)
		}
	}
	files.File(t, "testdata/verdicts.txt", b.String())
}

// whyOf are the codes of why a check finds what it finds.
func whyOf(c check) string {
	codes, _ := finding.Data(c.why...)
	return strings.Join(codes, " ")
}

// statusOrFound is the status of a check that may have found something that decides nothing about the run: suspect.
func statusOrFound(c result.Check) result.Status {
	if c.Status == result.Valid && c.Why != "" && !Full(c) && c.Name != CheckSamples {
		return result.Suspect
	}
	return c.Status
}
