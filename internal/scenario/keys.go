package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// A Key is one key of a scenario that holds a value.
type Key struct {
	Path  string // "load.rate"
	Short string // its flag's short form without dashes, "" where the path is the only one
	Help  string // one sentence; says what is allowed
	// FileOnly says that the key stands in a file and is no flag.
	FileOnly bool
	later    bool // of the design, and refused by name in this build
}

// Keys returns the keys that this build implements, in the order of a file.
// Each but those that are FileOnly is also a flag.
func Keys() []Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k.later })
}

var keys = []Key{
	{Path: "weir", FileOnly: true, Help: "format of the file (1)"},
	{Path: "name", Short: "name", Help: "name of the run (letters, digits, - _ .)"},
	{Path: "system.driver", Short: "driver", Help: "driver of the system to measure"},
	{Path: "system.start", Short: "start", Help: "how weir starts the system (none, embedded)"},
	{Path: "system.nodes", Short: "nodes", Help: "servers that weir starts (1 to 9)"},
	{Path: "system.guarantee", Short: "guarantee", Help: "least that a confirmation must mean (buffered, written, received, replicated, persisted)"},
	{Path: "system.options", FileOnly: true, Help: "the driver's own options, a mapping"},
	{Path: "topology.destinations", Short: "destinations", Help: "queues, topics or subjects to send to (1 or more)"},
	{Path: "topology.partitions", Short: "partitions", Help: "partitions of each destination (1 or more)"},
	{Path: "topology.replication", Short: "replication", Help: "replicas of each destination (1 or more)"},
	{Path: "topology.producers", Short: "producers", Help: "connections that send (1 or more)"},
	{Path: "topology.subscriptions", Short: "subscriptions", Help: "groups of consumers that each get every message (1 or more)"},
	{Path: "topology.consumers", Short: "consumers", Help: "connections that receive, per subscription (1 or more)"},
	{Path: "topology.names", Help: "existing destinations, neither created nor deleted; modes produce and consume (a list)"},
	{Path: "load.rate", Short: "rate", Help: "messages in all per time, or max for a closed loop (such as 20000/s, 100/m, max)"},
	{Path: "load.arrival", Short: "arrival", Help: "how arrivals are spaced (constant, poisson, {gamma: {cv: 3}}, {trace: FILE})"},
	{Path: "load.profile", Help: "steps, ramps and bursts instead of rate and measure (a list)"},
	{Path: "load.batch", Short: "batch", Help: "messages handed over at once (1, or a range such as 1..10)"},
	{Path: "load.in_flight", Short: "in-flight", Help: "most unconfirmed messages of each producer (1 or more)"},
	{Path: "load.when_full", Short: "when-full", Help: "what happens to a message due while in_flight are unconfirmed (wait, drop, fail)"},
	{Path: "message.size", Short: "size", Help: "bytes of a message, or a list of sizes with weights (such as 1KiB)"},
	{Path: "message.payload", Short: "payload", Help: "what the bytes are (random, zeros, {compressible: 0.5}, {file: FILE}, {dir: FOLDER})"},
	{Path: "message.keys", Short: "keys", Help: "keys of messages (none, {uniform: N}, {zipf: {n: N, s: S}}, {round_robin: N})"},
	{Path: "consume.settle", Short: "settle", Help: "how consumers acknowledge (each, batch, auto, none)"},
	{Path: "consume.prefetch", Short: "prefetch", Help: "most messages delivered and not settled, 0 for the driver's own"},
	{Path: "consume.work", Short: "work", Help: "processing time that each delivery simulates (such as 2ms)"},
	{Path: "mode", Short: "mode", Help: "what is done (stream, produce, consume, request, backlog)"},
	{Path: "warmup", Short: "warmup", Help: "time before the measured window (such as 2s)"},
	{Path: "measure", Short: "measure", Help: "length of the measured window (such as 30s)"},
	{Path: "messages", Short: "messages", Help: "messages to measure, instead of measure (1 or more)"},
	{Path: "drain", Short: "drain", Help: "longest wait for what is under way at the end (such as 30s)"},
	{Path: "repeat", Short: "repeat", Help: "runs of the same scenario (1 to 100)"},
	{Path: "slo", Short: "slo", Help: "what the run must keep (a list of objectives such as \"e2e.p99.9 <= 10ms\")"},
	{Path: "limits.memory", Help: "most memory for messages in flight (such as 1GiB)"},
	{Path: "seed", Short: "seed", Help: "seed of everything random (a whole number)"},
	{Path: "faults", later: true},
	{Path: "network", later: true},
	{Path: "placement", later: true},
	{Path: "scenarios", FileOnly: true, Help: "several scenarios, each laid over the rest of the file (a list)"},
	{Path: "matrix", FileOnly: true, Help: "keys with the values that they take, one run for each combination (a mapping of keys such as load.rate to lists)"},
}

// checkKeys reports every key of n that no scenario has, and every one that
// this build does not implement.
func (d *decoder) checkKeys(n *node, path string) {
	for _, f := range n.fields {
		full := join(path, f.key)
		if full == "system.options" {
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
