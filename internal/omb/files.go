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

// Files are those of the benchmark that a user named.
type Files struct {
	Path             func(name string) string // of a file as its user names it
	Workload, Driver *tree.Node               // nil: there is none
}

// Read reads the files, and tells by their keys what they are.
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

// Recognize returns what a user gave as a scenario where it is a workload, by its keys, and
// nil where it is not, or cannot be read. A driver file is refused: it says nothing of the load.
func Recognize(name string, text []byte) (*tree.Node, error) {
	if len(text) > tree.MaxFile || !bytes.Contains(text, []byte("topics")) && !bytes.Contains(text, []byte("driverClass")) {
		return nil, nil
	}
	n, faults := tree.Parse(name, text)
	switch {
	case n == nil, len(faults) > 0: // told where it is resolved
		return nil, nil
	case IsWorkload(n):
		return n, nil
	case IsDriver(n):
		return nil, fmt.Errorf("%s: is a driver file of the OpenMessaging Benchmark, which says nothing of the load (weir convert WORKLOAD.yaml %[1]s)", name)
	}
	return nil, nil
}

// Convert makes a scenario of the files, which is to be kept in a folder.
func (f *Files) Convert(folder string) (Converted, error) {
	return Convert(f.Workload, f.Driver, func(payload string) (string, bool) { return f.payload(payload, folder) })
}

// payload looks for the payload that the workload names: in the working folder, as the
// benchmark does, beside the workload, and above it. The name that it returns is relative
// to folder.
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

// File is a scenario as a file: what it was made from, what it lacks, and then itself.
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

// visible keeps a comment on its line.
func visible(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
		return '?'
	}
	return r
}
