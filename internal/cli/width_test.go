package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// Every screen that needs no run has at most 80 columns in a pipe, but for what is to be copied.
func TestScreensFit80Columns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs, err := filepath.Abs("../view/testdata/runs")
	must.Do(t, errors.Join(err, os.Symlink(runs, filepath.Join(dir, "runs")), makeSeries(filepath.Join(dir, "base"), 6, made{seed: 1}), makeSeries(filepath.Join(dir, "slow"), 6, made{seed: 2, slow: 2})))
	screens := [][]string{
		{"report", "runs"},
		{"report", "runs", "--full"},
		{"report", "base"},
		{"report", "base", "--full"},
		{"compare", "base", "slow"},
		{"compare", "base", "slow", "--full"},
		{"compare", "runs/nats-500", "runs/chan-closed"},
		{"history", "base"},
		{"history", "."},
		{"drivers"},
		{"drivers", "--full"},
		{"doctor"},
		{"network"},
		{"glossary"},
		{"version"},
		{"suite", "list"},
		{"--help"},
		{"run", "--help=all"},
		{"broker", "status"},
	}
	for _, s := range []string{"chan-closed", "jetstream-500", "jetstream-synced", "nats-500", "noop-1000"} {
		screens = append(screens, []string{"report", "runs/" + s}, []string{"report", "runs/" + s, "--full"}, []string{"report", "runs/" + s, "--judge"})
	}
	for _, d := range all.Definitions() {
		screens = append(screens, []string{"drivers", d.Name})
	}
	for _, s := range []string{"commit-log", "dissecting", "in-process", "matching", "mq-latency", "mqperf", "omission"} {
		screens = append(screens, []string{"suite", "show", s})
	}
	for _, v := range []string{
		"run", "capacity", "calibrate", "drivers", "broker", "broker up", "broker down", "broker status", "broker logs", "broker install", "agent", "fleet", "fleet status", "fleet token",
		"compare", "history", "suite", "suite list", "suite show", "suite run", "convert", "report", "serve", "network", "doctor", "glossary", "completion", "version",
	} {
		screens = append(screens, append(strings.Fields(v), "--help"))
	}
	for _, args := range screens {
		_, stdout, stderr := do(t, World{Dir: dir, Drivers: all.Definitions()}, args...)
		if stdout.String() == "" && stderr.String() == "" {
			t.Errorf("weir %s: no screen", strings.Join(args, " "))
		}
		for _, line := range golden.Wide(stdout.String(), 80) {
			t.Errorf("weir %s: %q", strings.Join(args, " "), line)
		}
	}
}
