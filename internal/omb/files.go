package omb

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/userfile"
)

// Files are the benchmark files that a user named.
type Files struct {
	Path             func(name string) string // path of a file from the name that the user gave
	Workload, Driver *tree.Node               // nil: there is none
}

// Read reads the files, and classifies them by their keys.
func (f *Files) Read(names []string) error {
	const allowed = "a workload, a driver file, or one of each"
	for _, name := range names {
		b, err := userfile.Read(f.Path(name), tree.MaxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: there is no such file (%s)", name, allowed)
		case err != nil:
			return fmt.Errorf("reading %s: %w", name, err)
		}
		n, faults := tree.Parse(name, b)
		if err := faults.Done(); err != nil {
			return err
		}
		switch {
		case n.Field("weir") != nil:
			return fmt.Errorf("%s: is a scenario already (%s)", name, allowed)
		case IsWorkload(n) && f.Workload == nil:
			f.Workload = n
		case IsDriver(n) && f.Driver == nil:
			f.Driver = n
		case IsWorkload(n), IsDriver(n):
			return fmt.Errorf("%s: is a second file of its kind (%s)", name, allowed)
		default:
			return fmt.Errorf("%s: is not a file of the OpenMessaging Benchmark: it has neither topics and messageSize nor driverClass (%s)", name, allowed)
		}
	}
	return nil
}

// Recognize returns a user's scenario file if its keys are those of a workload, and nil if they are
// not or it cannot be read. It rejects a driver file, which says nothing about the load.
func Recognize(name string, text []byte) (*tree.Node, error) {
	if len(text) > tree.MaxFile || !bytes.Contains(text, []byte("topics")) && !bytes.Contains(text, []byte("driverClass")) {
		return nil, nil
	}
	n, faults := tree.Parse(name, text)
	switch {
	case n == nil, len(faults) > 0: // reported when the scenario is resolved
		return nil, nil
	case IsWorkload(n):
		return n, nil
	case IsDriver(n):
		return nil, fmt.Errorf("%s: is a driver file of the OpenMessaging Benchmark, which says nothing of the load (weir convert WORKLOAD.yaml %[1]s)", name)
	}
	return nil, nil
}

// Convert converts the files to a scenario that will be stored in folder.
func (f *Files) Convert(folder string) (Converted, error) {
	return Convert(f.Workload, f.Driver, func(payload string) (string, bool) { return f.payload(payload, folder) })
}

// payload looks for the workload's payload file: in the working folder, as the benchmark does, next to
// the workload, and above it. The returned name is relative to folder.
func (f *Files) payload(payload, folder string) (string, bool) {
	beside := filepath.Dir(f.Workload.At.Source)
	for _, dir := range []string{".", beside, filepath.Join(beside, "..")} {
		at := filepath.Join(dir, payload)
		if filepath.IsAbs(payload) {
			at = payload
		}
		at, err := filepath.Abs(f.Path(at))
		if err != nil {
			return "", false
		}
		if st, err := os.Stat(at); err != nil || !st.Mode().IsRegular() {
			continue
		}
		if from, err := filepath.Abs(f.Path(folder)); err == nil {
			if near, err := filepath.Rel(from, at); err == nil {
				return filepath.ToSlash(near), true
			}
		}
		return at, true
	}
	return "", false
}

// File formats a scenario as a file: comments on its source and what it lacks, and then the scenario.
func (c *Converted) File(from []string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by weir convert from %s.\n", strings.Join(from, " and "))
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "# %s\n", strings.Map(visible, n.Error()))
	}
	text, err := YAML(c.Scenario)
	b.Write(text)
	return b.Bytes(), err
}

// visible replaces characters that would break a comment out of its line.
func visible(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
		return '?'
	}
	return r
}
