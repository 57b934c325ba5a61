package scenario

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/schedule"
)

// Inputs is all that a scenario is made from.
type Inputs struct {
	File      string     // name of the file, for messages and for paths relative to it; "" for none
	Text      []byte     // the file's bytes; not read without File
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
	defaultDriver  = "jetstream"
	defaultWarmUp  = 2 * time.Second
	defaultMeasure = 10 * time.Second
	defaultDrain   = 30 * time.Second
	defaultMemory  = 1 << 30
	maxNodes       = 9
	maxRepeat      = 100
	maxPrefetch    = 1_000_000
)

// scenario reads the tree.
func (d *decoder) scenario(in Inputs) *Scenario {
	s := &Scenario{}
	d.system(s, in)
	d.checkKeys(d.root, "")
	if v, n, ok := d.scalar("weir", "1"); ok && v != "1" {
		d.fault(n.at, "weir", "format %q is not known to this build (1)", v)
	} else if in.File != "" && !d.has("weir") {
		d.fault(Position{Source: in.File}, "weir", "is missing (1, the format's version)")
	}
	s.Repeat = d.count("repeat", 1, 1, maxRepeat)
	s.Mode = engine.Mode(slices.Index(modes, d.word("mode", modes[d.defaultMode(s)], modes)))
	d.topology(s)
	d.load(s, in)
	s.Message.Sizes = d.sizes()
	d.payload(s, in)
	s.Message.Keys = d.messageKeys()
	d.consume(s)
	d.times(s)
	d.objectives(s)
	d.untilDecided(s)
	s.Placement = d.placement()
	s.Seed = d.unsigned("seed", 1, 0)
	s.Memory = defaultMemory
	if n := d.find("limits.memory"); n != nil {
		if b, ok := d.bytes(n, "limits.memory", 1<<20, 1<<44); ok {
			s.Memory = b
		}
	}
	s.Failed = d.share("limits.failed")
	if s.Mode == engine.Consume {
		// Nothing is sent, and the window is from the first delivery to the last.
		s.WarmUp, s.Measure, s.Messages = 0, 0, 0
		s.Load.InFlight = 1
	} else {
		d.inFlight(s)
	}
	d.combine(s)
	d.plan(s)
	return s
}

func (d *decoder) known(s *Scenario) bool { return s.System.Definition.New != nil }

func (d *decoder) defaultMode(s *Scenario) engine.Mode {
	if d.known(s) && !s.System.Definition.Capabilities.Consume {
		return engine.Produce
	}
	return engine.Stream
}

func (d *decoder) topology(s *Scenario) {
	t := &s.Topology
	t.Names = d.names()
	t.Destinations = d.count("topology.destinations", max(1, len(t.Names)), 1, maxCount)
	t.Partitions = d.count("topology.partitions", 1, 1, maxCount)
	t.Replication = d.count("topology.replication", 1, 1, 100)
	t.Producers = d.count("topology.producers", 1, 1, maxCount)
	t.Subscriptions = d.count("topology.subscriptions", 1, 1, maxCount)
	t.Consumers = d.count("topology.consumers", 1, 1, maxCount)
}

func (d *decoder) load(s *Scenario, in Inputs) {
	l := &s.Load
	l.Arrival, l.TraceFile = d.arrival(in)
	l.Profile = d.profile()
	l.BatchMin, l.BatchMax = d.batch()
	l.WhenFull = engine.WhenFull(slices.Index(whenFulls, d.word("load.when_full", "wait", whenFulls)))
	n := d.find("load.rate")
	switch {
	case n != nil && n.shape == text && strings.TrimSpace(n.text) == "max":
		l.Closed = true
	case n != nil:
		l.Rate, _ = d.rate(n, "load.rate")
	case !d.has("load.profile") && l.Arrival.Kind != schedule.Trace:
		l.Rate = schedule.PerSecond(1000)
	}
}

func (d *decoder) consume(s *Scenario) {
	caps := s.System.Definition.Capabilities
	s.Consume.Settle = driver.SettleNone
	if len(caps.Settle) > 0 {
		s.Consume.Settle = caps.Settle[0]
	}
	s.Consume.Prefetch = d.count("consume.prefetch", 0, 0, maxPrefetch)
	s.Consume.Work = d.span("consume.work", 0, 0)
	s.Consume.From = d.position()
	s.Consume.Durable = d.durable()
	w, n, ok := d.scalar("consume.settle", strings.Join(settles, ", "))
	if !ok {
		return
	}
	w = d.oneOf(n, "consume.settle", w, "", settles, nil)
	settle, err := driver.ParseSettle(w)
	if err != nil {
		return
	}
	if d.known(s) && caps.Consume && !slices.Contains(caps.Settle, settle) {
		var can []string
		for _, c := range caps.Settle {
			can = append(can, c.String())
		}
		if len(can) == 0 {
			can = []string{"leave it out"}
		}
		d.fault(n.at, "consume.settle", "driver %s does not settle by %s (%s)", s.System.Definition.Name, w, strings.Join(can, ", "))
		return
	}
	s.Consume.Settle = settle
}

func (d *decoder) times(s *Scenario) {
	s.WarmUp = d.span("warmup", defaultWarmUp, 0)
	s.Drain = d.span("drain", defaultDrain, 0)
	s.AfterDrain = d.span("after_drain", 0, 0)
	if s.Mode == engine.Consume || s.Mode == engine.Produce {
		d.excluded("mode "+modes[s.Mode]+" receives nothing that it sent", "after_drain")
	}
	s.Messages = d.unsigned("messages", 0, 1)
	switch {
	case d.has("messages") && d.has("measure"):
		d.fault(d.later("messages", "measure"), "messages", "excludes measure: both set the length (give one of them)")
	case d.has("messages") || d.has("load.profile") || s.Load.Arrival.Kind == schedule.Trace:
	default:
		s.Measure = defaultMeasure
	}
	if d.has("measure") {
		s.Measure = d.span("measure", defaultMeasure, time.Millisecond)
	}
	if s.WarmUp+s.Measure > MaxDuration {
		d.fault(d.later("measure", "warmup"), "measure", "and warmup are longer than a run may be together (up to %v)", MaxDuration)
	}
}

// later returns the place of that path which was given last: a flag rather
// than the file.
func (d *decoder) later(paths ...string) Position {
	var at Position
	for _, p := range paths {
		n := d.find(p)
		if n == nil {
			continue
		}
		if at.Source == "" || n.at.Line == 0 && at.Line > 0 || at.Line > 0 && n.at.Line > at.Line {
			at = n.at
		}
	}
	return at
}

func (d *decoder) inFlight(s *Scenario) {
	const path = "load.in_flight"
	want := d.count(path, 0, 1, 10_000_000)
	if s.Message.Largest() == 0 {
		return // the size is at fault
	}
	n, err := engine.InFlight(want, s.Topology.Producers, s.Message.Largest(), s.Load.BatchMax, s.Memory)
	if err != nil {
		d.fault(d.later(path, "topology.producers", "message.size", "load.batch", "limits.memory"), path, "%v", err)
		return
	}
	s.Load.InFlight = n
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
