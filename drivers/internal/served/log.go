//go:build unix

package served

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/broker"
)

// VariableLog names the environment variable with the path of a file to which Up appends a line for
// each system: that it ran, or why not.
const VariableLog = "WEIR_SYSTEMS_LOG"

// A Line is one system that a test requested.
type Line struct {
	Recipe  string
	Nodes   int
	Version string // of the running system
	Lacks   string // what the host lacks for it; "" if it ran
}

// note appends a line to the log, if there is one.
func note(t testing.TB, l Line) {
	t.Helper()
	path := os.Getenv(VariableLog)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	version := l.Version
	if version == "" {
		version = "?"
	}
	// A single write, which others cannot interleave with.
	if _, err := fmt.Fprintln(f, l.Recipe, l.Nodes, version, oneLine(l.Lacks)); err != nil {
		t.Fatal(err)
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// version returns a system's version: from its installation, or the recipe.
func version(r *broker.Recipe, running *broker.Running) string {
	if running.Version != "" {
		return running.Version
	}
	return r.Version
}

func ReadLog(path string) ([]Line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []Line
	for s := bufio.NewScanner(f); s.Scan(); {
		var l Line
		if n, err := fmt.Sscan(s.Text(), &l.Recipe, &l.Nodes, &l.Version); n < 3 {
			return nil, fmt.Errorf("%s: %q: %w", path, s.Text(), err)
		}
		if f := strings.SplitN(s.Text(), " ", 4); len(f) == 4 {
			l.Lacks = strings.TrimSpace(f[3])
		}
		all = append(all, l)
	}
	return all, nil
}
