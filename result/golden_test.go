package result_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/result/resulttest"
)

// stored returns the folders kept for each schema version: real runs, without their host's name.
// Each version adds a folder, which never changes: this reader and all later ones must read it.
func stored(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, version := range []string{"v1"} {
		d := must.Get(filepath.Glob(filepath.Join("testdata", version, "*", result.FileResult)))(t)
		if len(d) == 0 {
			t.Errorf("no result of %s is kept", version)
		}
		for _, path := range d {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return dirs
}

// figures prints what a reader makes of a folder.
func figures(t *testing.T, dir string) string {
	t.Helper()
	saved := must.Get(result.Read(dir))(t)
	var b strings.Builder
	r := saved.Result
	fmt.Fprintf(&b, "files %s\n", strings.Join(saved.Files, " "))
	fmt.Fprintf(&b, "run %s, %v s, seed %d, loop %s, interrupted %v\n", r.Run.Name, r.Run.MeasureS, r.Run.Seed, r.Run.Loop, r.Run.Interrupted)
	fmt.Fprintf(&b, "epoch %s, %d\n", r.Run.Epoch.Wall, r.Run.Epoch.MonotonicNS)
	// Field by field: later versions have more.
	fmt.Fprintf(&b, "system %s, client %s, server %s %s on %d nodes, confirms %s, copies %s, stable %s\n", r.System.Driver, r.System.Client,
		r.System.Server.Name, r.System.Server.Version, r.System.Server.Nodes, r.System.Guarantee, r.System.Copies, r.System.Stable)
	fmt.Fprintf(&b, "verdict %s, %d checks\n", r.Verdict.Status, len(r.Verdict.Checks))
	for _, s := range r.Verdict.SLO {
		fmt.Fprintf(&b, "slo %s: pass %v, value %v\n", s.Expr, s.Pass, s.Value)
	}
	for _, m := range []result.Messages{r.Messages, r.MessagesAll} {
		fmt.Fprintf(&b, "messages %d %d %d %d, %d %d %d, %d %d, %d %d, %d %d %d %d %d %d %d\n", m.Scheduled, m.Sent, m.Dropped, m.Unsent,
			m.Confirmed, m.Failed, m.Unconfirmed, m.FailedDelivered, m.UnconfirmedDelivered,
			m.Delivered, m.Settled, m.Pending, m.Lost, m.Duplicated, m.Redelivered, m.Reordered, m.Corrupted, m.Foreign)
	}
	fmt.Fprintf(&b, "throughput %v %v %v %v per s, %v %v bytes per s\n", r.Throughput.OfferedPerS, r.Throughput.SentPerS,
		r.Throughput.ConfirmedPerS, *r.Throughput.ReceivedPerS, r.Throughput.SentBytesPerS, *r.Throughput.ReceivedBytesPerS)
	for _, d := range []struct {
		name string
		dist *result.Dist
	}{
		{"send.response", r.Latency.Send.Response},
		{"send.service", r.Latency.Send.Service},
		{"send.lateness", r.Latency.Send.Lateness},
		{"send.blocked", r.Latency.Send.Blocked},
		{"e2e.response", r.Latency.E2E.Response},
		{"e2e.service", r.Latency.E2E.Service},
	} {
		fmt.Fprintf(&b, "%s: %d samples, %d censored, %d to %d ns, mean %.3f, deviation %.3f\n",
			d.name, d.dist.Count, d.dist.Censored, *d.dist.MinNS, *d.dist.MaxNS, *d.dist.MeanNS, *d.dist.StdDevNS)
		for _, p := range d.dist.Percentiles {
			hi := "none"
			if p.HiNS != nil {
				hi = fmt.Sprint(*p.HiNS)
			}
			fmt.Fprintf(&b, "  p%v %d ns, %d to %s, supported %v, at least %v\n", p.P, p.NS, *p.LoNS, hi, p.Supported, p.AtLeast)
		}
	}
	for _, i := range r.Intervals {
		fmt.Fprintf(&b, "interval %v s %s: sent %d, confirmed %d, received %d, backlog %d\n", i.TS, i.Phase, i.Sent, i.Confirmed, i.Received, i.Backlog)
	}
	fmt.Fprintf(&b, "host %d pacers, backlog %d, margin %d ns\n", r.Host.Pacers, r.Host.BacklogMax, r.Host.Calibration.Margin)
	e := must.Get(saved.Environment())(t)
	fmt.Fprintf(&b, "environment weir %s on %s, %d cores, %d settings, epoch error %d ns\n", e.Weir.Version, e.Weir.OS, e.Hosts[0].Cores, len(e.System.Settings), *e.Clock.EpochErrorNS)
	for ev, err := range saved.Events() {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "event %s at %d ns: %s\n", ev.Kind, ev.TNS, ev.Text)
	}
	return b.String()
}

func TestStoredResultStillReadsTheSame(t *testing.T) {
	for _, dir := range stored(t) {
		got := figures(t, dir)
		path := dir + ".txt"
		if golden.Updating() {
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) { // only once: it must never change
				must.Do(t, os.WriteFile(path, []byte(got), 0o644))
			}
		}
		want := must.Get(os.ReadFile(path))(t)
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s was read as (-) and now is (+):\n%s", dir, d)
		}
	}
}

// Includes the log's sums.
func TestAStoredResultAgreesWithItself(t *testing.T) {
	for _, dir := range stored(t) {
		if err := resulttest.Check(dir); err != nil {
			t.Error(err)
		}
	}
}
