package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
)

// recordTested records in the file that the environment names, if any, that the whole suite has
// passed. Such suites must run one after another: the file is read, changed and written.
func (s *suite) recordTested(t *testing.T) {
	t.Helper()
	path := os.Getenv(tested.VariablePath)
	if path == "" || t.Failed() || !s.hasPassed() {
		return
	}
	if err := s.noteIn(path, t.Name()); err != nil {
		t.Errorf("recording that the suite has passed: %v", err)
	}
}

// hasPassed reports whether every check was reached and none failed.
func (s *suite) hasPassed() bool {
	for _, c := range checks() {
		if v, reached := s.seen[c.name]; !reached || v == failed {
			return false
		}
	}
	return true
}

// noteIn adds an entry to the file.
func (s *suite) noteIn(path, test string) error {
	e := tested.Entry{
		Driver: s.def.Name, Test: test, Recipe: os.Getenv(tested.VariableRecipe),
		Date: time.Now().UTC().Format(time.DateOnly),
	}
	for _, c := range checks() { // in their order
		switch s.seen[c.name] {
		case passed:
			e.Passed++
		case waived:
			e.Waived = append(e.Waived, c.name)
		}
	}
	facts, err := s.facts()
	if err != nil {
		return err
	}
	// Drivers say "unknown" if a system does not report its version: there is nothing to record.
	if facts.Version == "" || strings.HasPrefix(facts.Version, "unknown") {
		return nil
	}
	e.Server, e.Version, e.Nodes = facts.Name, facts.Version, facts.Nodes
	if e.Client, err = clientVersion(s.def); err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, err := tested.Parse(b)
	if err != nil {
		return err
	}
	if b, err = tested.Format(tested.Put(before, e)); err != nil {
		return err
	}
	return replaceFile(path, b)
}

// facts reconnects and reads the system's facts.
func (s *suite) facts() (f driver.Facts, err error) {
	cfg, err := s.config(nil)
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := driver.Open(ctx, s.def, cfg, newRun())
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return conn.Facts(ctx)
}

// clientVersion asks Go which version of the client library a test is built with: the test binary
// does not say.
func clientVersion(def driver.Definition) (string, error) {
	if def.Client == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", def.Client).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", def.Client, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// replaceFile replaces a file atomically.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tested-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
