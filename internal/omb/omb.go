// Package omb converts files of the OpenMessaging Benchmark: a workload and a driver become the tree
// of a scenario, in which each value keeps its position in their files. Whatever a scenario lacks or
// does differently is noted with its position.
//
// The package knows the files, but not how a scenario is checked.
package omb

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/stamp"
)

// IsWorkload reports whether a file's keys are those of a benchmark workload.
func IsWorkload(n *tree.Node) bool {
	return n.Field("weir") == nil && n.Field("topics") != nil && (n.Field("messageSize") != nil || n.Field("partitionsPerTopic") != nil || n.Field("producerRate") != nil)
}

// IsDriver reports whether a file's keys are those of a benchmark driver.
func IsDriver(n *tree.Node) bool { return n.Field("weir") == nil && n.Field("driverClass") != nil }

// A Converted is the result of converting a workload, a driver or both.
type Converted struct {
	Scenario *tree.Node  // with positions in the original files; weir's own values have none
	Notes    tree.Faults // what a scenario lacks or does differently, in file order
	Search   *tree.Node  // producerRate 0: search for the highest sustainable rate; otherwise nil
}

// Convert converts a workload and a driver, one of which may be nil. find returns the path under which
// the scenario refers to the workload's payload, and whether the file exists. The error is
// tree.Faults: invalid values.
func Convert(workload, driver *tree.Node, find func(payload string) (named string, ok bool)) (Converted, error) {
	c := &conversion{find: find}
	c.out.Scenario = &tree.Node{Shape: tree.Mapping}
	file := or(workload, driver)
	c.set("weir", &tree.Node{Shape: tree.Text, Text: "1", At: tree.Position{Source: file.At.Source}})
	if workload != nil {
		c.workload(workload)
	}
	notes := c.out.Notes
	c.out.Notes = nil
	if driver != nil {
		c.driver(driver)
	}
	slices.SortStableFunc(notes, byPlace)
	slices.SortStableFunc(c.out.Notes, byPlace)
	c.out.Notes = append(notes, c.out.Notes...)
	slices.SortStableFunc(c.out.Scenario.Fields, func(a, b tree.Field) int { return slices.Index(sections, a.Key) - slices.Index(sections, b.Key) })
	return c.out, c.faults.Done()
}

// sections are the top-level keys of a scenario, in the order of files.
var sections = []string{"weir", "name", "system", "topology", "load", "message", "consume", "mode", "warmup", "measure", "messages", "drain"}

func byPlace(a, b tree.Fault) int { return a.At.Line - b.At.Line }

// A conversion is the state of converting to one scenario.
type conversion struct {
	out    Converted
	faults tree.Faults
	find   func(string) (string, bool)
}

// set stores a value in the scenario. A driver option has one name, even if it contains dots.
func (c *conversion) set(key string, value *tree.Node) {
	parts := strings.Split(key, ".")
	if option, ok := strings.CutPrefix(key, options); ok {
		parts = []string{"system", "options", option}
	}
	c.out.Scenario = c.out.Scenario.With(parts, value)
}

const options = "system.options."

// text returns a value with the position of n.
func text(n *tree.Node, format string, args ...any) *tree.Node {
	return &tree.Node{Shape: tree.Text, Text: fmt.Sprintf(format, args...), At: n.At}
}

func (c *conversion) note(at tree.Position, key, format string, args ...any) {
	c.out.Notes.Add(at, key, format, args...)
}

// Limits of a workload. No real benchmark exceeds them.
const (
	mostWhole   = 1<<31 - 1
	unreachable = 10_000_000 // messages/s: the rate in workloads that mean "as fast as possible"
	mostConns   = 1000       // producers and consumers, above which a connection for each matters

	mostOfWeir = 100_000 // destinations, partitions, producers, consumers
)

// whole reads a whole number, with otherwise as the default.
func (c *conversion) whole(w *tree.Node, key string, otherwise int64) (int64, *tree.Node) {
	n := w.Field(key)
	if n == nil {
		return otherwise, &tree.Node{Shape: tree.Text}
	}
	v, err := strconv.ParseInt(strings.TrimSpace(n.Text), 10, 64)
	if n.Shape != tree.Text || err != nil || v < 0 || v > mostWhole {
		c.faults.Add(n.At, key, "is not a whole number (0 or more)")
		return otherwise, n
	}
	return v, n
}

// known are the keys of a workload.
var known = []string{
	"name", "topics", "partitionsPerTopic", "keyDistributor", "messageSize", "useRandomizedPayloads", "randomBytesRatio", "randomizedPayloadPoolSize",
	"payloadFile", "subscriptionsPerTopic", "consumerPerSubscription", "producersPerTopic", "producerRate", "consumerBacklogSizeGB", "backlogDrainRatio",
	"testDurationMinutes", "warmupDurationMinutes",
}

func (c *conversion) workload(w *tree.Node) {
	for _, f := range w.Fields {
		if !slices.Contains(known, f.Key) {
			c.note(f.At, f.Key, "is not carried over: it is not a key of a workload")
		}
	}
	if n := w.Field("name"); n != nil && n.Shape == tree.Text {
		if name := Name(n.Text); name != "" {
			c.set("name", text(n, "%s", name))
			if name != strings.TrimSpace(n.Text) {
				c.note(n.At, "name", "becomes %s: names have letters, digits, - _ .", name)
			}
		}
	}
	topics, at := c.counted(w, "topics", "topology.destinations")
	c.counted(w, "partitionsPerTopic", "topology.partitions")
	c.connections(w, topics, at)
	c.rate(w)
	size := c.size(w)
	c.payload(w, size)
	c.keys(w)
	c.times(w, size)
}

// counted copies a count.
func (c *conversion) counted(w *tree.Node, key, to string) (int64, *tree.Node) {
	v, n := c.whole(w, key, 1)
	if w.Field(key) == nil {
		return v, n
	}
	if v < 1 {
		c.faults.Add(n.At, key, "is %d (1 or more)", v)
	}
	c.beyond(n, key, v)
	c.set(to, text(n, "%d", v))
	return v, n
}

// beyond notes what exceeds weir's limits.
func (c *conversion) beyond(n *tree.Node, key string, v int64) {
	if v > mostOfWeir {
		c.note(n.At, key, "is carried over as %d, which weir run refuses: it has up to %d", v, mostOfWeir)
	}
}

// connections converts numbers per topic to those of the run.
func (c *conversion) connections(w *tree.Node, topics int64, at *tree.Node) {
	subscriptions, s := c.whole(w, "subscriptionsPerTopic", 1)
	consumers, k := c.whole(w, "consumerPerSubscription", 1)
	producers, p := c.whole(w, "producersPerTopic", 1)
	if producers < 1 {
		c.faults.Add(p.At, "producersPerTopic", "is %d (1 or more)", producers)
		return
	}
	if topics > mostWhole/max(producers, consumers, 1) {
		c.faults.Add(at.At, "topics", "times producers or consumers is too much (fewer)")
		return
	}
	if p.At.Line == 0 {
		p = at
	}
	c.beyond(p, "producersPerTopic", topics*producers)
	c.set("topology.producers", text(p, "%d", topics*producers))
	all := topics * producers
	if subscriptions*consumers == 0 {
		c.set("mode", text(w, "produce"))
	} else {
		c.set("topology.subscriptions", text(s, "%d", subscriptions))
		if k.At.Line == 0 {
			k = at
		}
		c.beyond(k, "consumerPerSubscription", topics*consumers*subscriptions)
		c.set("topology.consumers", text(k, "%d", topics*consumers))
		if topics > 1 {
			at := s.At
			if w.Field("subscriptionsPerTopic") == nil {
				at = w.Field("topics").At
			}
			c.note(at, "subscriptionsPerTopic", "differs: the benchmark has %d subscriptions, each of one topic and with %d consumers; a subscription of weir takes all topics, so there are %d, each with %d consumers",
				topics*subscriptions, consumers, subscriptions, topics*consumers)
		}
		all += topics * consumers * subscriptions
	}
	if all > mostConns {
		c.note(p.At, "producersPerTopic", "differs: in weir each of the %d producers and consumers has a connection, and most drivers of the benchmark share some; "+
			"--producers and --consumers take fewer, and each then serves several destinations", all)
	}
}

func (c *conversion) rate(w *tree.Node) {
	v, n := c.whole(w, "producerRate", 0)
	switch {
	case w.Field("producerRate") == nil:
		c.out.Search = w
		c.note(w.At, "producerRate", "is missing, which is 0: the highest rate that is sustained (weir capacity)")
		c.set("load.rate", text(w, "10000/s"))
	case v == 0:
		c.out.Search = n
		c.note(n.At, "producerRate", "is carried over as 10000/s, where the benchmark begins: 0 asks for the highest rate that is sustained, which is what weir capacity finds")
		c.set("load.rate", text(n, "10000/s"))
	case v >= unreachable:
		c.note(n.At, "producerRate", "becomes rate: max, as fast as confirmations come; no client sends %d messages/s, and with max there is no lateness to report", v)
		c.set("load.rate", text(n, "max"))
	default:
		c.set("load.rate", text(n, "%d/s", v))
	}
}

func (c *conversion) size(w *tree.Node) int64 {
	v, n := c.whole(w, "messageSize", 1024)
	if w.Field("messageSize") == nil {
		return v
	}
	if v < stamp.Size {
		c.note(n.At, "messageSize", "becomes %dB: each message of weir carries a stamp of %d bytes", stamp.Size, stamp.Size)
		v = stamp.Size
	}
	c.set("message.size", text(n, "%dB", v))
	return v
}

// payload is random bytes and zeros, or a file.
func (c *conversion) payload(w *tree.Node, size int64) {
	const key = "message.payload"
	random := w.Field("useRandomizedPayloads")
	file := w.Field("payloadFile")
	if random == nil || !random.Is("true") {
		for _, of := range []string{"randomBytesRatio", "randomizedPayloadPoolSize"} {
			if n := w.Field(of); n != nil {
				c.note(n.At, of, "is not carried over: useRandomizedPayloads is not true")
			}
		}
		if file == nil || strings.TrimSpace(file.Text) == "" {
			return
		}
		name := strings.TrimSpace(file.Text)
		if named, ok := c.find(name); ok {
			c.set(key, &tree.Node{Shape: tree.Mapping, At: file.At, Fields: []tree.Field{{Key: "file", At: file.At, Value: text(file, "%s", named)}}})
			c.note(file.At, "payloadFile", "becomes %s: the first %d bytes of each message are the stamp of weir, and the content fills the rest of the %d", named, stamp.Size, size)
			return
		}
		c.note(file.At, "payloadFile", "is not carried over: there is no file %s beside the workload, above it or in the working folder; messages have random bytes", path.Clean(name))
		return
	}
	if file != nil {
		c.note(file.At, "payloadFile", "is not carried over: useRandomizedPayloads is true")
	}
	ratio := 0.0
	if n := w.Field("randomBytesRatio"); n != nil {
		var err error
		if ratio, err = strconv.ParseFloat(strings.TrimSpace(n.Text), 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			c.faults.Add(n.At, "randomBytesRatio", "is not a share (0 to 1)")
			return
		}
		random = n
	}
	switch ratio {
	case 0:
		c.set(key, text(random, "zeros"))
	case 1:
		c.set(key, text(random, "random"))
	default:
		share := text(random, "%s", strconv.FormatFloat(1-ratio, 'g', 6, 64))
		c.set(key, &tree.Node{Shape: tree.Mapping, At: random.At, Fields: []tree.Field{{Key: "compressible", At: random.At, Value: share}}})
	}
	if n := w.Field("randomizedPayloadPoolSize"); n != nil {
		c.note(n.At, "randomizedPayloadPoolSize", "is not carried over: weir chooses how many contents it draws messages from")
	}
}

// keysOfOMB is how many keys the benchmark uses, whatever the workload.
const keysOfOMB = 10_000

func (c *conversion) keys(w *tree.Node) {
	n := w.Field("keyDistributor")
	switch {
	case n == nil:
	case n.Is("KEY_ROUND_ROBIN"):
		c.set("message.keys", keysAs(n, "round_robin"))
	case n.Is("RANDOM_NANO"):
		c.set("message.keys", keysAs(n, "uniform"))
		c.note(n.At, "keyDistributor", "becomes keys drawn uniformly; the benchmark takes them by the time of the send")
	case !n.Is("NO_KEY"):
		c.note(n.At, "keyDistributor", "is taken as NO_KEY, as the benchmark does with a word that it does not know")
	}
}

func keysAs(n *tree.Node, form string) *tree.Node {
	return &tree.Node{Shape: tree.Mapping, At: n.At, Fields: []tree.Field{{Key: form, At: n.At, Value: text(n, "%d", keysOfOMB)}}}
}

// times converts the lengths of the phases, or with a backlog its size.
func (c *conversion) times(w *tree.Node, size int64) {
	warmup, n := c.whole(w, "warmupDurationMinutes", 1)
	if w.Field("warmupDurationMinutes") == nil {
		c.set("warmup", &tree.Node{Shape: tree.Text, Text: "1m", At: tree.Position{Source: w.At.Source}})
	} else {
		c.set("warmup", text(n, "%dm", warmup))
	}
	minutes, m := c.whole(w, "testDurationMinutes", 0)
	gb, b := c.whole(w, "consumerBacklogSizeGB", 0)
	if n := w.Field("backlogDrainRatio"); n != nil {
		c.note(n.At, "backlogDrainRatio", "is not carried over: weir drains a backlog whole, within the time of drain")
	}
	if gb > 0 {
		subscriptions, _ := c.whole(w, "subscriptionsPerTopic", 1)
		messages := max(1, gb<<30/max(1, size)/max(1, subscriptions))
		c.set("mode", text(b, "backlog"))
		c.set("messages", text(b, "%d", messages))
		c.set("drain", text(b, "2h"))
		c.note(b.At, "consumerBacklogSizeGB", "becomes a backlog of %d messages, drained within 2h; producers rest while weir drains it, and keep sending in the benchmark", messages)
		if w.Field("testDurationMinutes") != nil {
			c.note(m.At, "testDurationMinutes", "is not carried over: the run ends when the backlog is drained")
		}
		return
	}
	switch {
	case w.Field("testDurationMinutes") == nil || minutes == 0:
		c.note(or(w.Field("testDurationMinutes"), w).At, "testDurationMinutes", "is not carried over: 0 runs without end; measure has its default")
	default:
		c.set("measure", text(m, "%dm", minutes))
	}
}

func or(n, otherwise *tree.Node) *tree.Node {
	if n == nil {
		return otherwise
	}
	return n
}

// Name turns any text into a scenario name; "" if none of it is allowed in one.
func Name(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	return strings.Trim(name[:min(len(name), 100)], "-")
}

// YAML formats a scenario as a file.
func YAML(n *tree.Node) ([]byte, error) {
	b, err := yaml.Marshal(plain(n))
	if err != nil {
		return nil, fmt.Errorf("writing the scenario: %w", err)
	}
	return b, nil
}

// plain converts n for the YAML library, with fields in order.
func plain(n *tree.Node) any {
	switch n.Shape {
	case tree.Mapping:
		var m yaml.MapSlice
		for _, f := range n.Fields {
			m = append(m, yaml.MapItem{Key: f.Key, Value: plain(f.Value)})
		}
		return m
	case tree.List:
		items := []any{}
		for _, i := range n.Items {
			items = append(items, plain(i))
		}
		return items
	}
	if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseFloat(n.Text, 64); err == nil {
		return v
	}
	return n.Text
}
