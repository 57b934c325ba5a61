package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/schedule"
)

// A Key is a scenario key that holds a value: a row of the single table from which decoding,
// rendering, schema, flags, variables, help, completion and the format's page are derived.
type Key struct {
	Path    string   // "load.rate"
	Short   string   // short form of its flag without dashes; "" if only the path works
	Help    string   // one sentence that says what is allowed
	Default string   // description of the default; "" for keys that make several runs
	Words   []string // possible words, if any; for system.driver the drivers' names
	// FileOnly means that the key can be set in a file but not by a flag.
	FileOnly bool
	// Repeats means that its flag may be given several times, and the values add up.
	Repeats bool

	preset   string // its default in a file's syntax if Default is not; "": set by code, or zero
	ofDriver bool   // the driver supplies the default
	side     side

	value  kind[Scenario]       // accesses its field in a Scenario; without read, dedicated code reads it
	sparse bool                 // rendered only if not zero
	needs  func(*Scenario) bool // whether to render it; nil: always
	first  bool                 // rendered at the head of its section
}

// side is the aspect of a run that a key concerns. A mode without that aspect rejects the key.
type side uint8

const (
	both side = iota
	sending
	receiving
	beginning // of a subscription relative to earlier messages
)

// paths returns the paths of a side's keys, in the order of a file.
func (of side) paths() []string {
	var out []string
	for i := range keys {
		if keys[i].side == of {
			out = append(out, keys[i].Path)
		}
	}
	return out
}

// Keys returns all keys, in the order of a file. All except FileOnly ones are also flags and
// variables.
func Keys() []Key { return slices.Clone(keys) }

// key returns the key at path, or nil if there is none.
func key(path string) *Key {
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Path == path }); i >= 0 {
		return &keys[i]
	}
	return nil
}

// Words of scenarios; those of modes are in the order of the engine's constants, those of starts in
// the order of Start's.
var (
	modes  = []string{"stream", "produce", "consume", "request", "backlog"}
	starts = []string{"none", "embedded", "process"}
)

// start is how weir obtains the system.
var start = word(starts, StartNone, StartEmbedded, StartProcess)

// keys are all keys, in the order of a file. To add a key, add its row here, its incompatibilities to
// combine.go, and the keys it replaces to layers.go.
var keys = table([]Key{
	{Path: "weir", FileOnly: true, Help: "version of the file's format (1)", Default: "none; a file needs it", value: version},
	{
		Path: "name", Short: "name", Help: "name of the run (letters, digits, - _ .)", Default: "DRIVER-SIZE-RATE",
		value: kind[Scenario]{schema: texts(namePattern), text: func(s *Scenario) string { return quote(s.Name) }},
	},

	{
		Path: "system.driver", Short: "driver", Help: "driver of the system to measure", Default: defaultDriver,
		value: kind[Scenario]{text: func(s *Scenario) string { return s.System.Definition.Name }},
	},
	{
		Path: "system.start", Short: "start", Help: "how weir starts the system: embedded is a server that is part of weir, process is a real one that weir installs (none, embedded, process)", Default: "embedded where the driver has it and no address is given, else none", ofDriver: true,
		value: kind[Scenario]{words: start.words, schema: start.schema, text: func(s *Scenario) string { return s.System.Start.String() }},
	},
	{
		Path: "system.recipe", Short: "recipe", Help: "which of the driver's recipes to use with start: process (a name that weir broker status lists)", Default: "none where no servers are started, else the driver's first recipe for that many nodes",
		needs: func(s *Scenario) bool { return s.System.Start == StartProcess },
		value: kind[Scenario]{schema: texts(namePattern), text: func(s *Scenario) string { return s.System.Recipe.Name }},
	},
	{
		Path: "system.version", Short: "server-version", Help: "version of the servers, with start: process (one that weir drivers NAME lists)", Default: "none where no servers are started, else the recipe's own",
		needs: func(s *Scenario) bool {
			return s.System.Start == StartProcess && (s.System.Recipe.Other() || s.sources["system.version"] != "")
		},
		value: kind[Scenario]{schema: texts(versionPattern), text: func(s *Scenario) string { return quote(s.System.Recipe.Version) }},
	},
	{
		Path: "system.nodes", Short: "nodes", Help: "servers that weir starts (1 to 9)", preset: "1",
		needs: func(s *Scenario) bool { return s.System.Start != StartNone },
		value: placed(whole[int](1, maxNodes), func(s *Scenario) *int { return &s.System.Nodes }),
	},
	{
		Path: "system.guarantee", Short: "guarantee", Help: "weakest confirmation to accept (buffered, written, received, replicated, persisted)", Default: "any", sparse: true,
		value: placed(word([]string{"buffered", "written", "received", "replicated", "persisted"}, driver.Buffered, driver.Written, driver.Received, driver.Replicated, driver.Persisted),
			func(s *Scenario) *driver.Guarantee { return &s.System.Guarantee }),
	},
	{
		Path: "system.options", FileOnly: true, Help: "the driver's own options, a mapping", Default: "the driver's",
		value: kind[Scenario]{schema: object{"type": "object"}},
	}, // its content depends on the driver

	{
		Path: "topology.destinations", Short: "destinations", Help: "queues, topics or subjects to send to (1 or more)", preset: "1", needs: (*Scenario).declares,
		value: placed(count, func(s *Scenario) *int { return &s.Topology.Destinations }),
	},
	{
		Path: "topology.partitions", Short: "partitions", Help: "partitions of each destination (1 or more)", preset: "1", needs: (*Scenario).declares,
		value: placed(count, func(s *Scenario) *int { return &s.Topology.Partitions }),
	},
	{
		Path: "topology.replication", Short: "replication", Help: "replicas of each destination (1 or more)", preset: "1", needs: (*Scenario).declares,
		value: placed(whole[int](1, 100), func(s *Scenario) *int { return &s.Topology.Replication }),
	},
	{
		Path: "topology.producers", Short: "producers", Help: "connections that send (1 or more)", preset: "1", side: sending, needs: (*Scenario).producersDealt,
		value: placed(count, func(s *Scenario) *int { return &s.Topology.Producers }),
	},
	{
		Path: "topology.subscriptions", Short: "subscriptions", Help: "groups of consumers that each get every message (1 or more)", preset: "1", side: receiving,
		value: placed(count, func(s *Scenario) *int { return &s.Topology.Subscriptions }),
	},
	{
		Path: "topology.consumers", Short: "consumers", Help: "connections that receive, per subscription (1 or more)", preset: "1", side: receiving, needs: (*Scenario).consumersDealt,
		value: placed(count, func(s *Scenario) *int { return &s.Topology.Consumers }),
	},
	{
		Path: "topology.names", Help: "existing destinations, which weir neither creates nor deletes; modes produce and consume (a list)", Default: "none; the run makes its own", sparse: true, first: true,
		value: placed(names, func(s *Scenario) *[]string { return &s.Topology.Names }),
	},

	{
		Path: "load.rate", Short: "rate", Help: "total messages per unit of time, or max for a closed loop (such as 20000/s, 100/m, max)", preset: "1000/s", side: sending,
		value: placed(pace, load),
	},
	{
		Path: "load.arrival", Short: "arrival", Help: "how arrivals are spaced (constant, poisson, {gamma: {cv: 3}}, {trace: FILE})", preset: "constant", side: sending, needs: (*Scenario).scheduled,
		value: placed(arrival, load),
	},
	{
		Path: "load.profile", Help: "steps, ramps and bursts instead of rate and measure (a list)", Default: "none", side: sending, sparse: true, first: true,
		value: placed(profile, func(s *Scenario) *[]schedule.Phase { return &s.Load.Profile }),
	},
	{
		Path: "load.batch", Short: "batch", Help: "messages of a batch; they go out in one call of the client, or one by one where it has none (1, or a range such as 1..10)", preset: "1", side: sending,
		value: placed(batch, func(s *Scenario) *Batch { return &s.Load.Batch }),
	},
	{
		Path: "load.in_flight", Short: "in-flight", Help: "most unconfirmed messages of each producer (1 or more)", Default: "1 where load.in_flight_until is received, one batch in a closed loop with batches, else as many as fit in 256 MiB over all producers and in what the system takes in, at most 10000", side: sending,
		value: placed(whole[int](1, 10_000_000), func(s *Scenario) *int { return &s.Load.InFlight }),
	},
	{
		Path: "load.in_flight_until", Short: "in-flight-until", Help: "when a message is no longer in flight: when it is confirmed, or when it is received as well; received needs one process and one subscription (confirmed, received)", Default: "none; until it is confirmed", side: sending,
		needs: func(s *Scenario) bool { return s.Load.Received },
		value: placed(word([]string{"confirmed", "received"}, false, true), func(s *Scenario) *bool { return &s.Load.Received }),
	},
	{
		Path: "load.when_full", Short: "when-full", Help: "what weir does with a message that is due while the producer has no free slot (wait, drop, fail)", preset: "wait", side: sending, needs: (*Scenario).scheduled,
		value: placed(word([]string{"wait", "drop", "fail"}, engine.Wait, engine.Drop, engine.Fail), func(s *Scenario) *engine.WhenFull { return &s.Load.WhenFull }),
	},

	{
		Path: "message.size", Short: "size", Help: "bytes of a message, or a list of sizes with weights (such as 1KiB)", preset: "1KiB", Default: "1KiB, or the sizes of the payload's contents", side: sending,
		needs: func(s *Scenario) bool { return !s.Message.Fitted },
		value: placed(sizes, func(s *Scenario) *[]schedule.WeightedSize { return &s.Message.Sizes }),
	},
	{
		Path: "message.payload", Short: "payload", Help: "content of messages (random, zeros, {compressible: 0.5}, {file: FILE}, {dir: FOLDER}); files longer than --size are cut into consecutive pieces", preset: "random", side: sending,
		value: placed(payload, func(s *Scenario) *Message { return &s.Message }),
	},
	{
		Path: "message.keys", Short: "keys", Help: "keys of messages (none, {uniform: N}, {zipf: {n: N, s: S}}, {round_robin: N})", preset: "none", side: sending,
		value: placed(messageKeys, func(s *Scenario) *schedule.Keys { return &s.Message.Keys }),
	},

	{
		Path: "consume.batch", Help: "most messages that a consumer takes and acknowledges together, or one by one where the driver cannot; it sets consume.settle and consume.prefetch (1 or more)", Default: "none; consume.settle and consume.prefetch apply", side: receiving, sparse: true,
		value: placed(whole[int](1, maxPrefetch), func(s *Scenario) *int { return &s.Consume.Batch }),
	},
	{
		Path: "consume.settle", Short: "settle", Help: "how consumers acknowledge (each, batch, auto, none)", Default: "each where the driver settles at all", side: receiving, ofDriver: true,
		needs: func(s *Scenario) bool { return len(s.System.Definition.Capabilities.Settle) > 0 },
		value: placed(word([]string{"each", "batch", "auto", "none"}, driver.SettleEach, driver.SettleBatch, driver.SettleAuto, driver.SettleNone),
			func(s *Scenario) *driver.Settle { return &s.Consume.Settle }),
	},
	{
		Path: "consume.prefetch", Short: "prefetch", Help: "most messages delivered and not settled, 0 for the driver's own", preset: "0", side: receiving, ofDriver: true,
		value: placed(whole[int](0, maxPrefetch), func(s *Scenario) *int { return &s.Consume.Prefetch }),
	},
	{
		Path: "consume.work", Short: "work", Help: "processing time that each delivery simulates (such as 2ms)", preset: "0s", side: receiving,
		value: placed(span(0), func(s *Scenario) *time.Duration { return &s.Consume.Work }),
	},
	{
		Path: "consume.fail", Help: "share of deliveries that consumers refuse, so that the system delivers them again; for drivers with nack (such as 1%)", Default: "none", side: receiving, sparse: true,
		value: placed(share, func(s *Scenario) *float64 { return &s.Consume.Fail }),
	},
	{
		Path: "consume.dead_letter", Help: "refusals of a message after which the system moves it to dead letters, which weir receives and counts; with consume.fail, for drivers with dead letters (such as 3)", Default: "none; it is delivered again until a consumer accepts it", side: receiving, sparse: true,
		value: placed(whole[int](1, 100), func(s *Scenario) *int { return &s.Consume.DeadLetter }),
	},
	{
		Path: "consume.churn", Short: "churn", Help: "how often one consumer closes and another opens in its place, in turn (such as 5s)", Default: "none; consumers stay", side: receiving, sparse: true,
		value: placed(span(0), func(s *Scenario) *time.Duration { return &s.Consume.Churn }),
	},
	{
		Path: "consume.pause", Short: "pause", Help: "when all consumers take nothing for a time while load continues; they stay connected (such as \"at 10s for 5s\", or \"at 10s until 50000\" messages wait)", Default: "none", side: receiving, sparse: true,
		value: placed(pause, func(s *Scenario) *engine.Pause { return &s.Consume.Pause }),
	},
	{
		Path: "consume.from", Short: "from", Help: "where a new subscription begins; mode consume (earliest, latest, {offset: N}, {time: T})", Default: "none; the driver's page says where it begins", side: beginning, sparse: true,
		value: placed(position, func(s *Scenario) *driver.Position { return &s.Consume.From }),
	},
	{
		Path: "consume.durable", Short: "durable", Help: "durable subscription to create or to continue, which outlives the run; mode consume (a name)", Default: "none; the run has one of its own", side: beginning, sparse: true,
		value: placed(durable, func(s *Scenario) *string { return &s.Consume.Durable }),
	},
	{
		Path: "consume.of", Short: "of", Help: "result folder of a run in mode produce, whose messages this run receives: it says which of them were lost; mode consume (a folder)", Default: "none; loss is not known", side: beginning, sparse: true,
		value: earlier,
	},

	{
		Path: "mode", Short: "mode", Help: "what the run does (stream, produce, consume, request, backlog)", Default: "stream, or produce where the driver has no consumers", ofDriver: true,
		value: placed(word(modes, engine.Stream, engine.Produce, engine.Consume, engine.Request, engine.Backlog), func(s *Scenario) *engine.Mode { return &s.Mode }),
	},
	{
		Path: "warmup", Short: "warmup", Help: "time before the measured window (such as 2s)", preset: "2s", side: sending,
		value: placed(span(0), func(s *Scenario) *time.Duration { return &s.WarmUp }),
	},
	{
		Path: "measure", Short: "measure", Help: "length of the measured window (such as 30s)", preset: "10s", side: sending, sparse: true,
		value: placed(span(time.Millisecond), func(s *Scenario) *time.Duration { return &s.Measure }),
	},
	{
		Path: "messages", Short: "messages", Help: "how many messages to measure, in place of a time (1 or more)", Default: "none; the time counts", side: sending, sparse: true,
		value: placed(whole[uint64](1, math.MaxUint64), func(s *Scenario) *uint64 { return &s.Messages }),
	},
	{
		Path: "drain", Short: "drain", Help: "longest wait at the end for messages in flight (such as 30s)", preset: "30s",
		value: placed(span(0), func(s *Scenario) *time.Duration { return &s.Drain }),
	},
	{
		Path: "after_drain", Short: "after-drain", Help: "how long consumers listen on after the drain, for redeliveries and late messages (such as 35s)", Default: "none", sparse: true,
		value: placed(span(0), func(s *Scenario) *time.Duration { return &s.AfterDrain }),
	},
	{
		Path: "repeat", Short: "repeat", Help: "runs of the same scenario (1 to 100)", preset: "1",
		value: placed(whole[int](1, maxRepeat), func(s *Scenario) *int { return &s.Repeat }),
	},
	{
		Path: "slo", Short: "slo", Help: "objectives that the run must meet (a list such as \"e2e.p99.9 <= 10ms\")", Default: "none", Repeats: true, sparse: true,
		value: objectives,
	},
	{
		Path: "until_decided", Short: "until-decided", Help: "ends the run once every objective about a percentile is decided (yes, no)", Default: "none; the run is as long as measure says", sparse: true,
		value: placed(word([]string{"no", "yes"}, false, true), func(s *Scenario) *bool { return &s.Until }),
	},
	{
		Path: "faults", Short: "fault", Help: "what weir does to servers that it started, and when after the warm-up (a list such as [\"kill leader at 10s for 5s\"]; " + strings.Join(fault.Verbs(), ", ") + "; all, leader, follower, a node, a process, or the clocks of agents)", Default: "none", Repeats: true, sparse: true,
		value: faults,
	},
	{
		Path: "network.profile", Short: "network", Help: "network between the clients and the servers that weir starts, by name (" + strings.Join(network.ProfileNames(), ", ") + ")", Default: "none", sparse: true,
		value: placed(profiled, func(s *Scenario) *string { return &s.Network.Profile }),
	},
	{Path: "network.latency", Short: "latency", Help: "time that each packet takes, in each direction (such as 20ms)", Default: "none, or the profile's", sparse: true, value: condition("latency")},
	{Path: "network.jitter", Help: "how much latency varies, in each direction (such as 5ms)", Default: "none, or the profile's", sparse: true, value: condition("jitter")},
	{Path: "network.distribution", Help: "how jitter varies (uniform, normal, exponential, pareto)", Default: "none without jitter, else uniform", sparse: true, value: condition("distribution")},
	{Path: "network.loss", Short: "packet-loss", Help: "share of packets that are lost, in each direction (such as 1%)", Default: "none, or the profile's", sparse: true, value: condition("loss")},
	{Path: "network.duplicate", Help: "share of packets that arrive twice, in each direction (such as 1%)", Default: "none", sparse: true, value: condition("duplicate")},
	{Path: "network.reorder", Help: "share of packets that leave out the latency and overtake others, in each direction (such as 1%)", Default: "none", sparse: true, value: condition("reorder")},
	{Path: "network.corrupt", Help: "share of packets in which one bit is changed, in each direction (such as 0.1%)", Default: "none", sparse: true, value: condition("corrupt")},
	{Path: "network.bandwidth", Short: "target-bw", Help: "bits that pass per second, in each direction (such as 100Mbit)", Default: "none, or the profile's", sparse: true, value: condition("bandwidth")},
	{
		Path: "network.to_system", Help: "what is different from clients to servers (a mapping such as {latency: 20ms, loss: 1%})", Default: "none", sparse: true,
		value: direction(func(s *Scenario) *Conditions { return &s.Network.To }),
	},
	{
		Path: "network.from_system", Help: "what is different from servers to clients (a mapping such as {latency: 20ms, loss: 1%})", Default: "none", sparse: true,
		value: direction(func(s *Scenario) *Conditions { return &s.Network.From }),
	},
	{
		Path: "network.partition", Short: "partition", Help: "times after the warm-up in which nothing arrives (a list such as [\"both at 10s for 5s\"]; both, to-system, from-system)", Default: "none", Repeats: true, sparse: true,
		value: partitions,
	},
	{
		Path: "watch_pid", Short: "watch-pid", Help: "servers on this host that weir did not start: it reads what they and their children use (a list of process numbers, such as 4711,4712)", Default: "none", sparse: true,
		value: placed(processes, func(s *Scenario) *[]int { return &s.Watch }),
	},
	{
		Path: "price_per_hour", Short: "price-per-hour", Help: "what an hour of the servers costs, in a currency of your choice; the report says what a million messages cost (such as 0.96)", Default: "none", sparse: true,
		value: placed(number(0, 100_000), func(s *Scenario) *float64 { return &s.Price }),
	},
	{
		Path: "placement", Short: "placement", Help: "which agents have producers and which have consumers (paired, split, {producers: [a, zone=b], consumers: [c]})", Default: "none; both are dealt over all agents", sparse: true,
		value: placed(placementKind, func(s *Scenario) *placement.Spec { return &s.Placement }),
	},
	{
		Path: "fleet.agents", Help: "agents that do the run, of those that joined; it needs --fleet (1 to 512)", Default: "none; all that --fleet waits for", sparse: true,
		value: placed(whole[int](1, 512), func(s *Scenario) *int { return &s.Fleet.Agents }),
	},
	{
		Path: "fleet.producers", Help: "producers of each agent, instead of topology.producers; it needs fleet.agents (1 or more)", Default: "none; topology.producers are dealt over the agents", side: sending, sparse: true,
		value: placed(count, func(s *Scenario) *int { return &s.Fleet.Producers }),
	},
	{
		Path: "fleet.consumers", Help: "consumers of each agent and subscription, instead of topology.consumers; it needs fleet.agents (1 or more)", Default: "none; topology.consumers are dealt over the agents", side: receiving, sparse: true,
		value: placed(count, func(s *Scenario) *int { return &s.Fleet.Consumers }),
	},
	{
		Path: "limits.memory", Help: "most memory for messages in flight (such as 1GiB)", preset: "1GiB",
		value: placed(sized[int64](1<<20, 1<<44, ""), func(s *Scenario) *int64 { return &s.Memory }),
	},
	{
		Path: "limits.failed", Help: "share of the sent messages that may fail or stay unconfirmed before the run is suspect and exits with 7 (such as 1%, or 0.01)", Default: "0, or what an objective about failed or unconfirmed allows",
		value: placed(share, func(s *Scenario) *float64 { return &s.Failed }),
	},
	{
		Path: "limits.processors", Short: "processors", Help: "processors that run weir's code at a time, in-process systems included, as GOMAXPROCS of Go (1 to 1024)", Default: "none; one for each core, and one for each pacing thread", sparse: true,
		value: placed(whole[int](1, 1024), func(s *Scenario) *int { return &s.Processors }),
	},
	{
		Path: "seed", Short: "seed", Help: "seed of everything random (a whole number)", preset: "1",
		value: placed(whole[uint64](0, math.MaxUint64), func(s *Scenario) *uint64 { return &s.Seed }),
	},

	{
		Path: "search.most", FileOnly: true, Help: "highest rate that weir capacity probes (such as 100k/s)", Default: "none; the search continues until a rate does not pass", sparse: true,
		value: placed(rate, func(s *Scenario) *schedule.Rate { return &s.Search.Most }),
	},
	{
		Path: "search.precision", FileOnly: true, Help: "how narrow the interval must be, relative to its lower end (1% to 100%)", Default: "10%", sparse: true,
		value: placed(narrow, func(s *Scenario) *float64 { return &s.Search.Precision }),
	},
	{
		Path: "search.retests", FileOnly: true, Help: "how often each end of the interval is probed again (0 to 10)", Default: "2", sparse: true,
		value: placed(optional(whole[int](0, 10)), func(s *Scenario) **int { return &s.Search.Retests }),
	},
	{
		Path: "search.probes", FileOnly: true, Help: "maximum number of probes (1 to 200)", Default: "40", sparse: true,
		value: placed(whole[int](1, 200), func(s *Scenario) *int { return &s.Search.Probes }),
	},
	{
		Path: "search.longest", FileOnly: true, Help: "maximum length of a probe, which ends when its objectives are decided (such as 2m)", Default: "twelve times measure where measure is 10s or more, else measure", sparse: true,
		value: placed(span(time.Millisecond), func(s *Scenario) *time.Duration { return &s.Search.Longest }),
	},
	{
		Path: "search.curve", FileOnly: true, Help: "points of the curve of latency against rate, at equal steps up to the capacity (0 to 20)", Default: "0", sparse: true,
		value: placed(whole[int](0, 20), func(s *Scenario) *int { return &s.Search.Curve }),
	},
	{
		Path: "search.over", FileOnly: true, Help: "a search for each of several numbers of producers, consumers, partitions, destinations or nodes (such as {consumers: [1, 2, 4, 8]})", Default: "none; one search", sparse: true,
		value: placed(over, func(s *Scenario) *Over { return &s.Search.Over }),
	},
	{
		Path: "search.target", FileOnly: true, Help: "rate that you need; weir capacity prints how many of search.over it takes (such as 1M/s)", Default: "none", sparse: true,
		value: placed(rate, func(s *Scenario) *schedule.Rate { return &s.Search.Target }),
	},

	{Path: "scenarios", FileOnly: true, Help: "several scenarios; each overrides the rest of the file (a list)"},
	{Path: "matrix", FileOnly: true, Help: "keys with their values, one run for each combination (a mapping of keys such as load.rate to lists; zip holds keys that vary together)"},
})

// table fills in what rows have in common.
func table(rows []Key) []Key {
	for i := range rows {
		k := &rows[i]
		k.Default = cmp.Or(k.Default, k.preset)
		k.Words = k.value.words
	}
	return rows
}

func load(s *Scenario) *Load { return &s.Load }

// declares reports whether the run creates its destinations.
func (s *Scenario) declares() bool { return len(s.Topology.Names) == 0 }

// scheduled reports whether messages have due instants.
func (s *Scenario) scheduled() bool { return !s.Load.Closed }

// decode reads the key into s, over its default.
func (k *Key) decode(d *decoder, s *Scenario) {
	if k.value.read == nil {
		return
	}
	if k.preset != "" {
		k.value.read(d, &tree.Node{Shape: tree.Text, Text: k.preset}, k.Path, s)
	}
	if n := d.find(k.Path); n != nil && !k.value.read(d, n, k.Path, s) {
		d.refused = append(d.refused, k.Path)
	}
}

// render returns the key's value in s in a file's syntax; "" if the run does not use it.
func (k *Key) render(s *Scenario) string {
	switch {
	case k.value.text == nil, k.needs != nil && !k.needs(s), k.sparse && k.value.zero(s):
		return ""
	case k.side == sending && s.Mode == engine.Consume, k.side >= receiving && s.Mode == engine.Produce:
		return ""
	}
	return k.value.text(s)
}

// checkKeys reports every unknown key of n.
func (d *decoder) checkKeys(n *tree.Node, path string) {
	for _, f := range n.Fields {
		full := tree.Join(path, f.Key)
		if full == "system.options" {
			continue
		}
		if strings.Contains(f.Key, ".") {
			d.fault(f.At, full, "unknown key; keys stand in their sections (%s)", indented(f.Key))
			continue
		}
		if key(full) != nil {
			continue
		}
		if isSection(full) {
			switch f.Value.Shape {
			case tree.Mapping:
				d.checkKeys(f.Value, full)
			default:
				d.fault(f.At, full, "must be a mapping, is %s (%s)", f.Value.Shape, strings.Join(members(full), ", "))
			}
			continue
		}
		if section := sectionFor(full); f.Value.Shape == tree.Mapping && section != "" {
			d.fault(f.At, full, "unknown key%s", section)
			continue
		}
		d.fault(f.At, full, "unknown key%s", d.suggest(path, f.Key))
	}
}

// indented formats a dotted key as nested mappings.
func indented(key string) string {
	parts := strings.Split(key, ".")
	return strings.Join(parts, ": {") + ": ..." + strings.Repeat("}", len(parts)-1)
}

// suggest returns a suggestion for an unknown key of the section path, and what is allowed there.
func (d *decoder) suggest(path, key string) string {
	allowed := members(path)
	list := strings.Join(allowed, ", ")
	for _, k := range keys {
		if strings.HasSuffix(k.Path, "."+key) && !strings.HasPrefix(k.Path, path+".") {
			return fmt.Sprintf(" here, did you mean %q? (%s)", k.Path, list)
		}
	}
	if path == "system" && slices.Contains(d.optionNames, key) {
		return fmt.Sprintf(" here, did you mean \"system.options.%s\"? (%s)", key, list)
	}
	if other := foreign(key); other != "" && !slices.Contains(allowed, key) {
		return fmt.Sprintf("%s (%s)", other, list)
	}
	if near := driver.Nearest(key, allowed); near != "" {
		return fmt.Sprintf(", did you mean %q? (%s)", near, list)
	}
	if near := driver.Nearest(key, d.optionNames); near != "" {
		return fmt.Sprintf(", did you mean \"system.options.%s\"? (%s)", near, list)
	}
	return fmt.Sprintf(" (%s)", list)
}

func isSection(path string) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return strings.HasPrefix(k.Path, path+".") })
}

// members returns the keys directly under path.
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
		if !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}
