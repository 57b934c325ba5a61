package scenario

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/schedule"
)

// Aliases of package tree's positions and faults.
type (
	// A Position is where a value was written.
	Position = tree.Position
	// A Fault is one fault of a scenario.
	Fault = tree.Fault
	// Faults are all faults of a scenario, as returned by Resolve.
	Faults = tree.Faults
)

// MaxFile is the largest size of a scenario file, in bytes.
const MaxFile = tree.MaxFile

// Inputs is everything that a scenario is made from.
type Inputs struct {
	File      string     // name of the file, for messages and relative paths; "" for none
	Text      []byte     // content of the file; ignored without File
	Tree      *tree.Node // replaces Text for a file converted from another format; nil: Text is parsed
	Environ   []Override // variables, as returned by Variables; they override the file
	Overrides []Override // flags; they override variables. Those of slo add up, any other duplicate is a fault
	Drivers   *driver.Registry

	Env      func(name string) (string, bool)         // looks up ${env:NAME}
	ReadFile func(path string) ([]byte, error)        // reads traces and payloads; the caller limits the size
	Stat     func(path string) (fs.FileInfo, error)   // like os.Stat
	ReadDir  func(path string) ([]fs.DirEntry, error) // like os.ReadDir
	Dir      string                                   // absolute working folder, for paths in flags

	ReadOption func(path string) ([]byte, error) // reads {file: PATH} of an option; nil: ReadFile
	Permit     func(Need) error                  // whether an option may use this; nil permits everything
	Elsewhere  bool                              // the driver runs on other hosts, where secrets are looked up

	memory *memory // set by Resolve
}

// An Override sets one key from outside of the file.
type Override struct {
	Flag  string // as the user wrote it, "--rate"; used in messages in place of a position
	Path  string // "load.rate"; for a driver option "system.options.NAME"
	Value string // plain text, or a list or mapping in YAML's flow style
}

// path makes a file's path absolute: in a scenario it is relative to the scenario's folder, in a flag
// to the working folder.
func (in Inputs) path(p string, at Position) string {
	if filepath.IsAbs(p) {
		return p
	}
	if at.Line == 0 {
		return filepath.Join(in.Dir, p)
	}
	if in.File != "" && !filepath.IsAbs(in.File) {
		return filepath.Join(in.Dir, filepath.Dir(in.File), p)
	}
	if in.File != "" {
		return filepath.Join(filepath.Dir(in.File), p)
	}
	return filepath.Join(in.Dir, p)
}

const (
	defaultDriver = "jetstream"
	maxNodes      = 9
	maxRepeat     = 100
	maxPrefetch   = 1_000_000
)

// scenario reads the tree.
func (d *decoder) scenario() *Scenario {
	s := &Scenario{}
	d.system(s)
	d.checkKeys(d.root, "")
	if d.in.File != "" && !d.has("weir") {
		d.fault(Position{Source: d.in.File}, "", "the file lacks the line \"weir: 1\"")
	}
	s.Consume.Settle = driver.SettleNone
	if can := s.System.Definition.Capabilities; len(can.Settle) > 0 {
		s.Consume.Settle = can.Settle[0]
	}
	if d.known(s) && !s.System.Definition.Capabilities.Consume {
		s.Mode = engine.Produce
	}
	for i := range keys {
		keys[i].decode(d, s)
	}
	d.combine(s)
	d.plan(s)
	d.combineFaults(s)
	d.combinePause(s)
	d.combineFail(s)
	d.combineDeadLetter(s)
	d.combineChurn(s)
	d.combineNetwork(s)
	return s
}

func (d *decoder) known(s *Scenario) bool { return s.System.Definition.New != nil }

// later returns the position of the path that was given last: a flag rather than the file.
func (d *decoder) later(paths ...string) Position {
	var at Position
	for _, p := range paths {
		n := d.find(p)
		if n == nil {
			continue
		}
		if at.Source == "" || n.At.Line == 0 && at.Line > 0 || at.Line > 0 && n.At.Line > at.Line {
			at = n.At
		}
	}
	return at
}

// plan creates the schedule if there are no other faults, and reports its faults.
func (d *decoder) plan(s *Scenario) {
	if len(d.faults) > 0 {
		return
	}
	var err error
	if s.schedule, err = schedule.New(s.Plan()); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.fault(d.later("load", "load.profile", "load.arrival", "messages", "warmup"), "load", "%s", line)
		}
	}
}
