package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/stamp"
)

// A Key is one key of a scenario that holds a value.
type Key struct {
	Path    string   // "load.rate"
	Short   string   // its flag's short form without dashes, "" where the path is the only one
	Help    string   // one sentence; says what is allowed
	Default string   // in words, what holds where it is not given; "" for the keys that make several runs
	Words   []string // the words that it may be, where it may be words; for system.driver they are the drivers' names
	// FileOnly says that the key stands in a file and is not a flag.
	FileOnly bool
	// Repeats says that its flag may be given several times, and adds up.
	Repeats bool
	later   bool   // of the design, and refused by name in this build
	form    form   // of its value
	lo, hi  uint64 // of a whole number or a size
}

// form is what a value is written as.
type form uint8

const (
	formText     form = iota
	formWord          // one of Words
	formWhole         // a whole number of lo to hi
	formDuration      // lo: the shortest
	formSize
	formRate    // or max
	formSpecial // of its own shape
)

// Keys returns the keys that this build implements, in the order of a file.
// Each but those that are FileOnly is also a flag and a variable.
func Keys() []Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k.later })
}

// Later returns the keys of the design that this build refuses by name, as it
// does the flags of their names.
func Later() []string {
	var out []string
	for _, k := range keys {
		if k.later {
			out = append(out, k.Path)
		}
	}
	return out
}

// Words of scenarios, those of modes and whenFulls in the order of the engine's
// constants.
var (
	modes     = []string{"stream", "produce", "consume", "request", "backlog"}
	whenFulls = []string{"wait", "drop", "fail"}
	starts    = []string{"none", "embedded", "process"}
	settles   = []string{"each", "batch", "auto", "none"}
	yesNo     = []string{"no", "yes"}
	levels    = []string{"buffered", "written", "received", "replicated", "persisted"}
)

var keys = []Key{
	{Path: "weir", FileOnly: true, Help: "version of the file's format (1)", Default: "none; a file needs it", form: formWhole, lo: 1, hi: 1},
	{Path: "name", Short: "name", Help: "name of the run (letters, digits, - _ .)", Default: "DRIVER-SIZE-RATE"},
	{Path: "system.driver", Short: "driver", Help: "driver of the system to measure", Default: "jetstream", form: formWord},
	{Path: "system.start", Short: "start", Help: "how weir starts the system (none, embedded, process)", Default: "embedded where the driver has it and no address is given, else none", form: formWord, Words: starts},
	{Path: "system.recipe", Short: "recipe", Help: "which of the driver's recipes start: process starts (a name that weir broker status lists)", Default: "none where no servers are started, else the driver's first"},
	{Path: "system.nodes", Short: "nodes", Help: "servers that weir starts (1 to 9)", Default: "1", form: formWhole, lo: 1, hi: maxNodes},
	{Path: "system.guarantee", Short: "guarantee", Help: "weakest confirmation to accept (buffered, written, received, replicated, persisted)", Default: "any", form: formWord, Words: levels},
	{Path: "system.options", FileOnly: true, Help: "the driver's own options, a mapping", Default: "the driver's", form: formSpecial},
	{Path: "topology.destinations", Short: "destinations", Help: "queues, topics or subjects to send to (1 or more)", Default: "1", form: formWhole, lo: 1, hi: maxCount},
	{Path: "topology.partitions", Short: "partitions", Help: "partitions of each destination (1 or more)", Default: "1", form: formWhole, lo: 1, hi: maxCount},
	{Path: "topology.replication", Short: "replication", Help: "replicas of each destination (1 or more)", Default: "1", form: formWhole, lo: 1, hi: 100},
	{Path: "topology.producers", Short: "producers", Help: "connections that send (1 or more)", Default: "1", form: formWhole, lo: 1, hi: maxCount},
	{Path: "topology.subscriptions", Short: "subscriptions", Help: "groups of consumers that each get every message (1 or more)", Default: "1", form: formWhole, lo: 1, hi: maxCount},
	{Path: "topology.consumers", Short: "consumers", Help: "connections that receive, per subscription (1 or more)", Default: "1", form: formWhole, lo: 1, hi: maxCount},
	{Path: "topology.names", Help: "existing destinations, which weir neither creates nor deletes; modes produce and consume (a list)", Default: "none; the run makes its own", form: formSpecial},
	{Path: "load.rate", Short: "rate", Help: "messages in all per time, or max for a closed loop (such as 20000/s, 100/m, max)", Default: "1000/s", form: formRate},
	{Path: "load.arrival", Short: "arrival", Help: "how arrivals are spaced (constant, poisson, {gamma: {cv: 3}}, {trace: FILE})", Default: "constant", form: formSpecial, Words: []string{"constant", "poisson"}},
	{Path: "load.profile", Help: "steps, ramps and bursts instead of rate and measure (a list)", Default: "none", form: formSpecial},
	{Path: "load.batch", Short: "batch", Help: "messages handed over at once (1, or a range such as 1..10)", Default: "1", form: formSpecial},
	{Path: "load.in_flight", Short: "in-flight", Help: "most unconfirmed messages of each producer (1 or more)", Default: "as many as fit in 256 MiB over all producers, at most 10000", form: formWhole, lo: 1, hi: 10_000_000},
	{Path: "load.when_full", Short: "when-full", Help: "what weir does with a message that is due while the producer has no free slot (wait, drop, fail)", Default: "wait", form: formWord, Words: whenFulls},
	{Path: "message.size", Short: "size", Help: "bytes of a message, or a list of sizes with weights (such as 1KiB)", Default: "1KiB, or the sizes of the payload's contents", form: formSpecial, lo: stamp.Size, hi: maxSize},
	{Path: "message.payload", Short: "payload", Help: "content of messages (random, zeros, {compressible: 0.5}, {file: FILE}, {dir: FOLDER})", Default: "random", form: formSpecial, Words: []string{"random", "zeros"}},
	{Path: "message.keys", Short: "keys", Help: "keys of messages (none, {uniform: N}, {zipf: {n: N, s: S}}, {round_robin: N})", Default: "none", form: formSpecial, Words: []string{"none"}},
	{Path: "consume.settle", Short: "settle", Help: "how consumers acknowledge (each, batch, auto, none)", Default: "each where the driver settles at all", form: formWord, Words: settles},
	{Path: "consume.prefetch", Short: "prefetch", Help: "most messages delivered and not settled, 0 for the driver's own", Default: "0", form: formWhole, hi: maxPrefetch},
	{Path: "consume.work", Short: "work", Help: "processing time that each delivery simulates (such as 2ms)", Default: "0s", form: formDuration},
	{Path: "consume.from", Short: "from", Help: "where a new subscription begins; mode consume (earliest, latest, {offset: N}, {time: T})", Default: "none; the driver's page says where it begins", form: formSpecial, Words: []string{"earliest", "latest"}},
	{Path: "consume.durable", Short: "durable", Help: "durable subscription to create or to continue, which outlives the run; mode consume (a name)", Default: "none; the run has one of its own", form: formSpecial},
	{Path: "mode", Short: "mode", Help: "what the run does (stream, produce, consume, request, backlog)", Default: "stream, or produce where the driver has no consumers", form: formWord, Words: modes},
	{Path: "warmup", Short: "warmup", Help: "time before the measured window (such as 2s)", Default: "2s", form: formDuration},
	{Path: "measure", Short: "measure", Help: "length of the measured window (such as 30s)", Default: "10s", form: formDuration, lo: 1},
	{Path: "messages", Short: "messages", Help: "messages to measure, instead of measure (1 or more)", Default: "none; measure counts", form: formWhole, lo: 1, hi: math.MaxUint64},
	{Path: "drain", Short: "drain", Help: "longest wait at the end for messages in flight (such as 30s)", Default: "30s", form: formDuration},
	{Path: "after_drain", Short: "after-drain", Help: "how long consumers listen on after the drain, for redeliveries and late messages (such as 35s)", Default: "none", form: formDuration},
	{Path: "repeat", Short: "repeat", Help: "runs of the same scenario (1 to 100)", Default: "1", form: formWhole, lo: 1, hi: maxRepeat},
	{Path: "slo", Short: "slo", Help: "what the run must achieve (a list of objectives such as \"e2e.p99.9 <= 10ms\")", Default: "none", Repeats: true, form: formSpecial},
	{Path: "until_decided", Short: "until-decided", Help: "ends the run once every objective about a percentile is decided (yes, no)", Default: "none; the run is as long as measure says", form: formWord, Words: yesNo},
	{Path: "placement", Short: "placement", Help: "which agents have producers and which have consumers (paired, split, {producers: [a, zone=b], consumers: [c]})", Default: "none; both are dealt over all agents", form: formSpecial, Words: placements},
	{Path: "limits.memory", Help: "most memory for messages in flight (such as 1GiB)", Default: "1GiB", form: formSize, lo: 1 << 20, hi: 1 << 44},
	{Path: "limits.failed", Help: "share of the sent messages that may fail or stay unconfirmed before the run is suspect and exits with 7 (such as 1%, or 0.01)", Default: "0, or what an objective about failed or unconfirmed allows", form: formSpecial},
	{Path: "seed", Short: "seed", Help: "seed of everything random (a whole number)", Default: "1", form: formWhole, hi: math.MaxUint64},
	{Path: "scenarios", FileOnly: true, Help: "several scenarios; each overrides the rest of the file (a list)", form: formSpecial},
	{Path: "matrix", FileOnly: true, Help: "keys with their values, one run for each combination (a mapping of keys such as load.rate to lists)", form: formSpecial},
	{Path: "faults", later: true},
	{Path: "network", later: true},
}

// checkKeys reports every key of n that no scenario has, and every one that
// this build does not implement.
func (d *decoder) checkKeys(n *node, path string) {
	for _, f := range n.fields {
		full := join(path, f.key)
		if full == "system.options" {
			continue
		}
		if strings.Contains(f.key, ".") {
			d.fault(f.at, full, "unknown key; keys stand in their sections (%s)", indented(f.key))
			continue
		}
		if i := slices.IndexFunc(keys, func(k Key) bool { return k.Path == full }); i >= 0 {
			if keys[i].later {
				d.fault(f.at, full, "is not in this build yet (leave it out)")
			}
			continue
		}
		if isSection(full) {
			switch f.value.shape {
			case mapping:
				d.checkKeys(f.value, full)
			default:
				d.fault(f.at, full, "must be a mapping, is %s (%s)", f.value.shape, strings.Join(members(full), ", "))
			}
			continue
		}
		d.fault(f.at, full, "unknown key%s", d.suggest(path, f.key))
	}
}

// indented writes a key with dots as a file has it.
func indented(key string) string {
	parts := strings.Split(key, ".")
	return strings.Join(parts, ": {") + ": ..." + strings.Repeat("}", len(parts)-1)
}

// suggest names what may have been meant by an unknown key of the section
// path, and what is allowed there.
func (d *decoder) suggest(path, key string) string {
	allowed := members(path)
	if near := driver.Nearest(key, allowed); near != "" {
		return fmt.Sprintf(", did you mean %q? (%s)", near, strings.Join(allowed, ", "))
	}
	for _, k := range keys {
		if strings.HasSuffix(k.Path, "."+key) {
			return fmt.Sprintf(" here, did you mean %q? (%s)", k.Path, strings.Join(allowed, ", "))
		}
	}
	if path == "system" && slices.Contains(d.optionNames, key) {
		return fmt.Sprintf(" here, did you mean \"system.options.%s\"? (%s)", key, strings.Join(allowed, ", "))
	}
	return fmt.Sprintf(" (%s)", strings.Join(allowed, ", "))
}

func isSection(path string) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return strings.HasPrefix(k.Path, path+".") })
}

// members returns the keys directly under path that this build implements.
func members(path string) []string {
	var out []string
	for _, k := range keys {
		rest := k.Path
		if path != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(k.Path, path+"."); !ok {
				continue
			}
		}
		first, _, _ := strings.Cut(rest, ".")
		if !k.later && !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}
