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

// What a file is read as, and where something in it is wrong.
type (
	// A Position is where a value was written.
	Position = tree.Position
	// A Fault is one thing wrong with a scenario.
	Fault = tree.Fault
	// Faults is everything wrong with one, as Resolve returns it.
	Faults = tree.Faults
)

// MaxFile is the longest that a scenario file may be, in bytes.
const MaxFile = tree.MaxFile

// Inputs is all that a scenario is made from.
type Inputs struct {
	File      string     // name of the file, for messages and for paths relative to it; "" for none
	Text      []byte     // the file's bytes; not read without File
	Tree      *tree.Node // what a file of another format was converted to, instead of Text; nil: Text is read
	Environ   []Override // variables, as Variables returns them; they win over the file
	Overrides []Override // flags; they win over variables. Those of slo add up, any other path twice is a fault
	Drivers   *driver.Registry

	Env      func(name string) (string, bool)         // looks up ${env:NAME}
	ReadFile func(path string) ([]byte, error)        // reads traces and payloads; bounded by the caller
	Stat     func(path string) (fs.FileInfo, error)   // as os.Stat
	ReadDir  func(path string) ([]fs.DirEntry, error) // as os.ReadDir
	Dir      string                                   // working folder, absolute; for paths given by flags

	ReadOption func(path string) ([]byte, error) // reads {file: PATH} of an option; nil: ReadFile
	Permit     func(Need) error                  // says whether an option may have this of this host; nil: it may
	Elsewhere  bool                              // the driver runs on other hosts: secrets are looked up there, and here they stay unknown

	memory *memory // of Resolve
}

// An Override sets one key from outside the file.
type Override struct {
	Flag  string // as the user wrote it, "--rate"; stands in messages for the position
	Path  string // "load.rate"; a driver's option is "system.options.NAME"
	Value string // plain, or a list or mapping in YAML's flow style
}

// path makes the path of a file that is named at a place absolute: in a scenario
// it is relative to the scenario's folder, in a flag to the working folder.
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

// later returns the place of that path which was given last: a flag rather
// than the file.
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

// plan makes the schedule when nothing else is wrong: it refuses what is left.
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
