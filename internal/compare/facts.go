package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/result"
)

// A Difference is a fact that differs between runs.
type Difference struct {
	Name        string     `json:"name"`        // a key of the scenario, or guarantee, server, host and so on
	Meaningless bool       `json:"meaningless"` // figures of such runs are not comparable
	Sides       [][]string `json:"sides"`       // values of each side; empty: its runs do not record it
}

// meaningless reports whether a difference in a fact makes runs incomparable: what a confirmation
// guarantees, what was sent, how often, and between how many.
func meaningless(name string) bool {
	return strings.HasPrefix(name, "topology.") && name != "topology.names" ||
		slices.Contains([]string{"guarantee", "mode", "loop", "message.size", "load.rate", "load.arrival", "load.profile", "load.batch", "system.nodes"}, name)
}

// facts are what runs may differ in: the system as found, then the scenario, then the environment.
type facts []Fact

// add sets a fact. An existing one keeps its position.
func (f *facts) add(name, value string) {
	value = Short(cmp.Or(value, "none"), longestFact)
	if i := slices.IndexFunc(*f, func(x Fact) bool { return x.Name == name }); i >= 0 {
		(*f)[i].Value = value
		return
	}
	*f = append(*f, Fact{name, value})
}

// immaterial reports whether a scenario key does not affect what was measured, or is covered by the result.
func immaterial(path string) bool {
	return slices.Contains([]string{"weir", "name", "repeat", "slo", "system.driver", "system.guarantee"}, path)
}

func factsOf(r Run) facts {
	var f facts
	s := r.Result.System
	f.add("driver", s.Driver)
	f.add("guarantee", s.Guarantee)
	f.add("copies", s.Copies)
	f.add("stable", s.Stable)
	f.add("server", strings.TrimSpace(s.Server.Name+" "+s.Server.Version))
	f.add("client", s.Client)
	if s.ClientPath != "" {
		f.add(factClientPath, s.ClientPath)
	}
	if s.Batch != "" {
		f.add(factBatch, s.Batch)
	}
	if s.ConsumeBatch != "" {
		f.add(factConsumed, s.ConsumeBatch)
	}
	f.add("loop", r.Result.Run.Loop)
	if r.Result.Run.Mode != "" {
		f.add("mode", r.Result.Run.Mode)
	}
	for _, x := range Settings(r.Scenario, oneLine) {
		if !immaterial(x.Name) {
			f.add(x.Name, x.Value)
		}
	}
	if s.Server.Nodes > 0 { // as found: the scenario has only the request
		f.add("system.nodes", strconv.Itoa(s.Server.Nodes))
	}
	f.add(factAgents, Agents(r.Result))
	if p := r.Result.Precedence(); p != "" {
		f.add(factPrecedence, p)
	}
	weir := r.Result.Run.Weir
	if e := r.Environment; e != nil {
		f.system(&e.System)
		f.hosts(e.Hosts)
		weir = cmp.Or(e.Weir.Version, weir)
	}
	f.add("weir", weir)
	return f
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// settingOf is the prefix of settings read from a running system.
const settingOf = "setting "

// system adds the running system's settings, and what weir had installed of it.
func (f *facts) system(s *result.EnvironmentSystem) {
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		f.add(settingOf+name, s.Settings[name])
	}
	if x := s.Started; x != nil && x.Recipe != "" {
		f.add(factInstalled, oneLine(x.Recipe+" "+x.Source+" "+x.Version))
	}
}

// The names of facts of the environment.
const (
	factInstalled   = "installed"
	factAgents      = "agents"
	factPrecedence  = "precedence"
	factClientPath  = "client path"    // not recorded by older versions
	factBatch       = "batch"          // how batches were published
	factConsumed    = "batch consumed" // and acknowledged
	factHost        = "host"
	factCPU         = "cpu"
	factGovernor    = "cpu governor"
	factQuota       = "cpu quota"
	factMemory      = "memory"
	factMemoryLimit = "memory limit"
	factKernel      = "kernel"
	factOS          = "os"
	factClock       = "clock source"
	factHugePages   = "huge pages"
	factGOMAXPROCS  = "gomaxprocs"
	factGo          = "go"
)

// hostFacts are the facts of hosts, in display order. Memory is in whole GiB, since kernels of one machine
// reserve different amounts.
func hostFacts() []hostFact {
	return []hostFact{
		{factHost, func(h *host.Facts) string { return h.Hostname }},
		{factCPU, func(h *host.Facts) string { return fmt.Sprintf("%d x %s", h.Cores, cmp.Or(h.CPUModel, h.Arch)) }},
		{factGovernor, func(h *host.Facts) string { return h.CPUGovernor }},
		{factQuota, func(h *host.Facts) string {
			if h.CgroupCores == nil {
				return ""
			}
			return fmt.Sprintf("%v cores", *h.CgroupCores)
		}},
		{factMemory, func(h *host.Facts) string { return gibibytes(h.MemoryBytes) }},
		{factMemoryLimit, func(h *host.Facts) string {
			if h.CgroupMemoryBytes == nil {
				return ""
			}
			return fmt.Sprintf("%d MiB", *h.CgroupMemoryBytes>>20)
		}},
		{factKernel, func(h *host.Facts) string { return h.Kernel }},
		{factOS, func(h *host.Facts) string { return cmp.Or(h.Distribution, h.OS) }},
		{factClock, func(h *host.Facts) string { return h.ClockSource }},
		{factHugePages, func(h *host.Facts) string { return h.TransparentHugePages }},
		{factGOMAXPROCS, func(h *host.Facts) string {
			if h.GOMAXPROCS == 0 {
				return ""
			}
			return strconv.Itoa(h.GOMAXPROCS)
		}},
		{factGo, func(h *host.Facts) string { return h.GoVersion }},
	}
}

// A hostFact is one property of a host; "" if unknown.
type hostFact struct {
	name string
	of   func(*host.Facts) string
}

func gibibytes(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f GiB", math.Round(float64(n)/(1<<30)))
}

// Agents says how many agents on how many hosts executed a run; "" for one process.
func Agents(r *result.Result) string {
	var hosts []string
	for _, a := range r.Agents {
		hosts = with(hosts, a.Hostname)
	}
	if len(r.Agents) == 0 {
		return ""
	}
	return quantity.Plural(len(r.Agents), "agent") + " on " + quantity.Plural(len(hosts), "host")
}

func (f *facts) hosts(all []host.Facts) {
	for _, x := range hostFacts() {
		var values []string
		for i := range all {
			values = with(values, x.of(&all[i])) // agents on one host, and identical hosts, count once
		}
		if len(values) > 0 {
			f.add(x.name, strings.Join(values, " + "))
		}
	}
}

// records reports whether a run records such facts.
func (rec *Record) records(name string) bool {
	switch name {
	case factInstalled:
		return rec.HasEnv
	case factClientPath, factPrecedence:
		return rec.Fact(name) != "none"
	case "mode":
		return rec.HasScenario || rec.Fact(name) != "none"
	case "driver", "guarantee", "copies", "stable", "server", "client", "loop", factBatch, factConsumed, factAgents, "weir":
		return true
	}
	switch {
	case strings.HasPrefix(name, settingOf):
		return rec.HasEnv
	case slices.ContainsFunc(hostFacts(), func(x hostFact) bool { return x.name == name }):
		return rec.HasHosts
	}
	return rec.HasScenario
}

// hosts is how many hosts a run records.
func (r Run) hosts() int {
	if r.Environment == nil {
		return 0
	}
	return len(r.Environment.Hosts)
}

// differences returns what differs between the runs.
func differences(used [][]Run) []Difference {
	sides := make([][]RunFacts, len(used))
	for i, runs := range used {
		for _, r := range runs {
			sides[i] = append(sides[i], r.Record.facts())
		}
	}
	out := []Difference{}
	for _, x := range Differ(sides) {
		out = append(out, Difference{Name: x.Name, Meaningless: meaningless(x.Name), Sides: x.Sides})
	}
	return out
}

// Incomparable returns the differences between the sides that make a comparison of them meaningless.
func Incomparable(sides []Side) []Difference {
	var used [][]Run
	for _, s := range sides {
		_, runs := usable("", Side{Runs: Recorded(s.Runs)})
		used = append(used, runs)
	}
	return slices.DeleteFunc(differences(used), func(d Difference) bool { return !d.Meaningless })
}

// refused returns an error for differences that rule out a comparison.
func refused(all []Difference) error {
	var parts []string
	for _, d := range all {
		if d.Meaningless {
			parts = append(parts, d.Name+" ("+d.bySide()+")")
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("the runs differ in %s: %w", strings.Join(parts, ", "), ErrDifferent)
}

// bySide formats the values: "A 1KiB; B 4KiB, 16KiB".
func (d Difference) bySide() string {
	var parts []string
	for i, values := range d.Sides {
		text := strings.Join(values, ", ")
		if text == "" {
			text = "not told"
		}
		parts = append(parts, letter(i)+" "+text)
	}
	return strings.Join(parts, "; ")
}

// doubts explains how the other differences affect the figures.
func doubts(all []Difference, used [][]Run) []string {
	var out, bad, settings []string
	differ := map[string]bool{}
	for _, d := range all {
		differ[d.Name] = true
		if name, is := strings.CutPrefix(d.Name, settingOf); is {
			settings = append(settings, name)
		}
		if d.Meaningless {
			bad = append(bad, d.Name)
		}
		for i, values := range d.Sides {
			if len(values) > 1 {
				out = append(out, fmt.Sprintf("the runs of %s differ among themselves in %s: their figures mix different things", letter(i), d.Name))
			}
		}
	}
	if len(bad) > 0 {
		out = append(out, fmt.Sprintf("the runs differ in %s, so their figures do not mean the same", strings.Join(bad, ", ")))
	}
	if len(settings) > 0 {
		out = append(out, fmt.Sprintf("settings of the servers differ (%s): they do different work to keep and deliver a message, whatever a confirmation means", strings.Join(settings, ", ")))
	}
	for _, w := range []struct {
		facts []string
		says  string
	}{
		{[]string{"copies", "stable"}, "confirmations mean different things: a weaker one comes sooner"},
		{[]string{factHost, factCPU, factGovernor, factQuota, factMemory, factMemoryLimit, factKernel, factOS, factClock, factHugePages}, "hosts differ: the sides compare hosts as much as systems"},
		{[]string{factAgents, "placement", "placement.producers", "placement.consumers"}, "agents or their placement differ: the generator adds different times, and messages cross different networks"},
		{[]string{factPrecedence}, "precedence differs (--fifo): pacers with precedence add less to the figures"},
		{[]string{factGOMAXPROCS, factGo}, "the generator's runtime differs, and so does its own part of the figures"},
		{[]string{"weir"}, "versions of weir differ: the instrument itself has changed"},
		{[]string{"client", factClientPath}, "clients differ: the figures include their work as much as that of the servers"},
		{[]string{factBatch, factConsumed}, "batches differ: one call for several messages costs less than one call for each"},
		{[]string{"measure", "messages"}, "windows differ in length: a longer one has larger counts and maxima"},
	} {
		if slices.ContainsFunc(w.facts, func(name string) bool { return differ[name] }) {
			out = append(out, w.says)
		}
	}
	immaterial := 0
	for _, runs := range used {
		for _, r := range runs {
			if !r.Record.HasScenario || !r.Record.HasHosts {
				immaterial++
			}
		}
	}
	if immaterial > 0 {
		out = append(out, fmt.Sprintf("the scenario or host of %s is not known: the runs may differ in more than this", quantity.Plural(immaterial, "run")))
	}
	return out
}
