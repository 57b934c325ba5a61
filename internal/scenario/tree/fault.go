package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Position is where a value was written: in a file (Line and Column count
// from 1, columns in characters) or as a flag, with Line 0.
type Position struct {
	Source       string // the file's name, or the flag with its dashes; "" for a default
	Line, Column int
}

// String returns "file:line:column", "file", "--flag" or "".
func (p Position) String() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d:%d", p.Source, p.Line, p.Column)
}

// A Fault is one fault of a scenario.
type Fault struct {
	At      Position
	Path    string // of the key, "load.rate"; "" for the file as a whole
	Message string // what is wrong, and in parentheses what is allowed
}

// Error returns the position, the path and the message.
func (f Fault) Error() string {
	parts := make([]string, 0, 3)
	if at := f.At.String(); at != "" {
		parts = append(parts, at)
	}
	if f.Path != "" {
		parts = append(parts, shownPath(f.Path))
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// shownPath returns a path up to the end of the intended key: "password hunter2", without its colon,
// is a key in YAML.
func shownPath(path string) string {
	if i := strings.IndexAny(path, " \t\n:="); i >= 0 {
		return path[:i] + "..."
	}
	return path
}

// Faults are all faults of a scenario: those of the file in order, then those of flags, then those
// without a position.
type Faults []Fault

// Add adds a fault with a message formatted like fmt.Sprintf.
func (fs *Faults) Add(at Position, path, format string, args ...any) {
	*fs = append(*fs, Fault{at, path, fmt.Sprintf(format, args...)})
}

// Error returns one line per fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Done sorts the faults and returns them as an error; nil if there are none.
func (fs Faults) Done() error {
	if len(fs) == 0 {
		return nil
	}
	fs.sort()
	return fs.firstOf()
}

func (fs Faults) sort() {
	class := func(p Position) int {
		switch {
		case p.Line > 0:
			return 0
		case p.Source != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(fs, func(a, b Fault) int { // a flag has neither line nor column
		return cmp.Or(cmp.Compare(class(a.At), class(b.At)), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
}

// firstOf keeps the first of several faults with the same position and path: later ones follow from
// it, or are from another run of the file.
func (fs Faults) firstOf() Faults {
	seen := make(map[Fault]bool, len(fs))
	kept := fs[:0]
	for _, f := range fs {
		k := f
		if f.Path != "" {
			k.Message = ""
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		kept = append(kept, f)
	}
	return kept
}
