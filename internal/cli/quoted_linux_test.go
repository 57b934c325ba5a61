package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirmq/weir/internal/disturb"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/selftest"
)

// TestQuotableFiguresAreTrue runs weir against simulated systems on a host that is disturbed on purpose. It
// logs what it finds: weir calibrate --runs 200 shows whether 95 % hold.
func TestQuotableFiguresAreTrue(t *testing.T) {
	needs.Time(t)
	needs.NoRace(t)
	binary := must.Get(os.Executable())(t)
	self := filepath.Join(t.TempDir(), "weir") // by its name this binary is weir: see TestMain
	must.Do(t, os.Symlink(binary, self))
	all := must.Get(selftest.Quote(t.Context(), selftest.Options{Self: self, Runs: disturbedRuns}))(t)
	if len(all) != len(disturb.Kinds()) {
		t.Errorf("%d disturbances; want %d", len(all), len(disturb.Kinds()))
	}
	for _, q := range all {
		text := must.Get(json.Marshal(q))(t)
		t.Logf("%s", text)
		if q.NotRun == "" && (q.Runs != disturbedRuns || len(q.Rows) == 0) {
			t.Errorf("%s: %d runs, %d figures", q.Disturbance, q.Runs, len(q.Rows))
		}
		// Whether any figure of an undisturbed run can be quoted depends on the host: weir calibrate says that.
		if q.NotRun == "" && q.Right < q.Runs-1 {
			t.Errorf("%s: quotable figures are true in %d of %d runs", q.Disturbance, q.Right, q.Runs)
		}
	}
}
