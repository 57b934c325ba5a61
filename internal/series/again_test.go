package series

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// Executes runs of random scenarios. The verdict of each, judged again from its folder, must equal the
// run's verdict before anything was written.
func TestVerdictFollowsFromStoredResult(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) string { return of[dice.IntN(len(of))] }
	text := &strings.Builder{}
	text.WriteString("weir: 1\nsystem: {driver: noop}\nmode: produce\ndrain: 1s\nscenarios:\n")
	for i := range 6 {
		load := one("{rate: 1000/s}", "{rate: 20000/s, when_full: drop, in_flight: 1}", "{rate: 3/s}", "{rate: max}") + ", measure: " + one("100ms", "300ms")
		if dice.IntN(5) == 0 {
			load = "{profile: [{rate: 10/s, for: 100ms}, {rate: 2000/s, for: 200ms}]}"
		}
		fmt.Fprintf(text, "- {name: s%d, load: %s, warmup: %s, topology: {producers: %s}, slo: [%s], limits: {failed: %s}}\n", i,
			load, one("0s", "50ms"), one("1", "3"),
			one("", "'send.service.p50 <= 1s'", "'failed <= 1%', 'sent.rate >= 1/s'", "'send.service.mean < 1ns', 'send.service.p99.9 <= 1h'"), one("0%", "5%"))
	}
	dir := t.TempDir()
	s, err := New(Options{Dir: dir}, Repeat("", resolved(t, text.String())...))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer func() { _ = s.Close() }()
	for o := range s.All(t.Context(), nil) {
		if o.Result == nil || o.Err != nil || o.Written != nil {
			t.Fatalf("%s: %v, %v", o.Dir, o.Err, o.Written)
		}
		saved := must.Get(result.Read(filepath.Join(dir, o.Dir)))(t)
		again := judge.Again(saved.Result)
		if diff := cmp.Diff(o.Result.Verdict, again.Verdict, cmpopts.EquateEmpty()); diff != "" || len(again.Kept)+len(again.Lacking)+len(again.Changes) > 0 {
			t.Errorf("%s: the verdict of the run (-) and of its folder (+), %+v:\n%s", o.Dir, again, diff)
		}
	}
}
