package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/schedule"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file string
		flags      []Override
		want       string
	}{
		{"an empty file", "\n \n", nil, "f.yaml: is empty (a scenario begins with weir: 1)"},
		{"only a comment", "# hello\n", nil, "f.yaml: is empty (a scenario begins with weir: 1)"},
		{"a list", "- a\n", nil, "f.yaml:1:1: must be a mapping of keys (a scenario begins with weir: 1), is a list"},
		{"not YAML", "weir: 1\nload: {rate: 5/s\n", nil, "f.yaml:2:7: is not valid YAML: could not find flow mapping end token '}'"},
		{"not UTF-8", "weir: 1\nname: a\xff\n", nil, "f.yaml:2:8: is not UTF-8 text"},
		{"several scenarios", "weir: 1\n---\nweir: 1\n", nil, "f.yaml:3:5: begins a second document (one, with `scenarios:` for several scenarios)"},
		{"no version", "name: a\n", nil, "f.yaml: the file lacks the line \"weir: 1\""},
		{"a later version", "weir: 2\n", nil, `f.yaml:1:7: weir: format "2" is not known to this build (1)`},
		{"a duplicate key", "weir: 1\nseed: 1\nseed: 2\n", nil, "f.yaml:3:1: seed: is given twice (once)"},
		{"an anchor", "weir: 1\nname: &a x\n", nil, "f.yaml:2:7: name: anchors and aliases are not allowed (write the value out)"},
		{"a file that is too long", "weir: 1\n" + strings.Repeat("#", 70_000), nil, "f.yaml: is longer than a scenario may be (64 KiB)"},
		{"a file of too many words", "weir: 1\nname: [" + strings.Repeat("a,", 10_000) + "]\n", nil, "f.yaml:2:16386: holds more than a scenario may (16384 words)"},
		{"deep nesting", "weir: 1\nname: " + strings.Repeat("[", 40) + "\n", nil, "f.yaml:2:23: is nested too deeply (at most 16 levels)"},
		{
			"an unknown key at the top, near to one",
			"weir: 1\nwarmpu: 5s\n", nil,
			`f.yaml:2:1: warmpu: unknown key, did you mean "warmup"? (weir, name, system, topology, load, message, consume, mode, warmup, measure, messages, drain, after_drain, repeat, slo, until_decided, faults, network, watch_pid, price_per_hour, placement, fleet, limits, seed, search, scenarios, matrix)`,
		},
		{
			"a key of another section",
			"weir: 1\nload:\n  in_flihgt: 5\n  partitions: 3\n", nil,
			"f.yaml:3:3: load.in_flihgt: unknown key, did you mean \"in_flight\"? (rate, arrival, profile, batch, in_flight, in_flight_until, when_full)\n" +
				"f.yaml:4:3: load.partitions: unknown key here, did you mean \"topology.partitions\"? (rate, arrival, profile, batch, in_flight, in_flight_until, when_full)",
		},
		{
			"an option outside options",
			"weir: 1\nsystem: {driver: jetstream, storage: file}\n", nil,
			`f.yaml:2:29: system.storage: unknown key here, did you mean "system.options.storage"? (driver, start, recipe, version, nodes, guarantee, options)`,
		},
		{"a section that is none", "weir: 1\nload: 5\n", nil, "f.yaml:2:1: load: must be a mapping, is a single value (rate, arrival, profile, batch, in_flight, in_flight_until, when_full)"},
		{
			"containers",
			"weir: 1\nsystem: {start: docker}\n", nil,
			"f.yaml:2:17: system.start: weir starts no containers: weir broker up jetstream --via docker writes a compose file, and --address says where it runs (none, embedded, process)",
		},
		{"a negative rate", "", flags("load.rate=-5/s"), `--load.rate: "-5/s": rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond)`},
		{"a zero rate", "", flags("load.rate=0/s"), `--load.rate: "0/s": rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond)`},
		{"a rate beyond nanoseconds", "weir: 1\nload: {rate: 2000000000/s}\n", nil, `f.yaml:2:14: load.rate: "2000000000/s": rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond)`},
		{"a rate without a unit", "", flags("load.rate=500/d"), `--load.rate: "500/d": a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h`},
		{"a size under the stamp", "", flags("message.size=16B"), "--message.size: 16B is less than the 32 bytes of the stamp that weir puts into each message (32B to 64MiB)"},
		{"a size above the driver's", "", flags("message.size=2MiB"), "--message.size: 2MiB is more than driver jetstream takes (up to 1MiB)"},
		{"no size", "", flags("message.size=big"), `--message.size: "big" is not a size (32B to 64MiB, such as 256B, 1KiB, 1MB)`},
		{
			"in_flight over the memory",
			"", flags("load.in_flight=10000", "topology.producers=200"),
			"--load.in_flight: 200 producers x 10000 in flight x 1KiB = 2048MB is over limits.memory (1GiB)",
		},
		{"a number where a duration belongs", "weir: 1\nwarmup: 5\n", nil, "f.yaml:2:9: warmup: 5 has no unit (a duration such as 250ms, 5s, 2m)"},
		{"a duration where a number belongs", "weir: 1\nseed: 5s\n", nil, `f.yaml:2:7: seed: "5s" is not a whole number (a whole number from 0 to 18446744073709551615)`},
		{"a negative duration", "", flags("measure=-1s"), "--measure: -1s is negative (a duration such as 250ms, 5s, 2m)"},
		{"a run that is too long", "", flags("measure=78h"), "--measure: is with warmup longer than a run may be (up to 78h together)"},
		{"both lengths", "weir: 1\nmessages: 5\nmeasure: 1s\n", nil, "f.yaml:3:10: messages: excludes measure: both set the length (give one of them)"},
		{"an unknown driver", "", flags("system.driver=jetsteam"), `--system.driver: unknown driver "jetsteam", did you mean "jetstream"? (jetstream, narrowed, near, plain, sink)`},
		{
			"an unknown driver and another fault",
			"", flags("system.driver=kafka", "warmup=x"),
			"--system.driver: unknown driver \"kafka\" (jetstream, narrowed, near, plain, sink)\n--warmup: \"x\" is not a duration (a duration such as 250ms, 5s, 2m)",
		},
		{
			"an option of another driver",
			"weir: 1\nsystem: {options: {acks: all, storge: file}}\n", nil,
			"f.yaml:2:26: system.options.acks: unknown option (address, password, server.sync, storage, timeout, tls.ca, user)\n" +
				"f.yaml:2:39: system.options.storge: unknown option, did you mean \"storage\"? (address, password, server.sync, storage, timeout, tls.ca, user)",
		},
		{"an option's wrong word", "", flags("system.options.storage=disk"), `--system.options.storage: "disk" is not known (file, memory)`},
		{"an option out of its range", "", flags("system.options.timeout=-1s"), "--system.options.timeout: is negative (0s and more)"},
		{
			"options that contradict one another",
			"weir: 1\nsystem:\n  options: {storage: memory, tls: {ca: odd}}\n", nil,
			"f.yaml:3:3: system.options: storage and tls do not go together",
		},
		{
			"a secret as a flag",
			"", flags("system.options.password=canary"),
			"--system.options.password: is a secret, and others can read files and command lines: give a reference to it (${env:NAME} or {file: PATH})",
		},
		{"a secret that is not set", "", flags("system.options.password=${env:NOBODY}"), "--system.options.password: the environment variable NOBODY is not set"},
		{"embedding what is not embedded", "", flags("system.driver=plain", "system.start=embedded"), "--system.start: weir does not embed plain (none)"},
		{
			"embedded with an address",
			"", flags("system.start=embedded", "system.options.address=nats://h:1"),
			"--system.start: embedded and an address exclude one another (one of them)",
		},
		{
			"options of a server that is not started",
			"weir: 1\nsystem: {start: none, options: {server: {sync: true}}}\n", nil,
			"f.yaml:2:48: system.options.server.sync: is for a server that weir starts, and here it starts none (leave it out)",
		},
		{"nodes of nothing", "", flags("system.nodes=3", "system.start=none"), "--system.nodes: is how many servers weir starts, and here it starts none (leave it out)"},
		{"more replicas than nodes", "", flags("topology.replication=3"), "--topology.replication: is 3 with 1 node(s) (at most system.nodes)"},
		{"a guarantee that no setting gives", "", flags("system.driver=plain", "system.guarantee=persisted"), "--system.guarantee: driver plain never confirms more than buffered (up to buffered)"},
		{"a closed loop with an arrival", "", flags("load.rate=max", "load.arrival=poisson"), "--load.arrival: a closed loop (rate: max) sends when a slot is free, and has no arrivals (leave it out)"},
		{
			"a closed loop with a profile",
			"weir: 1\nload: {rate: max, profile: [{rate: 5/s, for: 1s}], when_full: drop}\n", nil,
			"f.yaml:2:28: load.profile: a closed loop (rate: max) has no profile (leave it out)\n" +
				"f.yaml:2:63: load.when_full: a closed loop (rate: max) is never full (leave it out)",
		},
		{
			"a profile beside what it replaces",
			"weir: 1\nload: {rate: 5/s, profile: [{rate: 5/s, for: 1s}]}\nmeasure: 1s\n", nil,
			"f.yaml:2:14: load.rate: excludes load.profile, which already says how many messages come when (leave it out)\n" +
				"f.yaml:3:10: measure: excludes load.profile, which already says how many messages come when; give load.rate to replace it (leave it out)",
		},
		{
			"faults of a profile",
			"weir: 1\nload:\n  profile:\n  - {rate: 5/d, for: 1s}\n  - {ramp: 5/s, for: 1s}\n  - {burst: 5, for: 1s}\n  - {rate: 5/s, fro: 1s}\n  - fast\n", nil,
			"f.yaml:4:12: load.profile[0].rate: \"5/d\": a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h\n" +
				"f.yaml:5:12: load.profile[1].ramp: \"5/s\" is not a ramp (two rates such as 1000/s..9000/s)\n" +
				"f.yaml:6:6: load.profile[2].every: is missing (burst, every, for)\n" +
				"f.yaml:7:6: load.profile[3].for: is missing (rate, for)\n" +
				"f.yaml:7:17: load.profile[3].fro: unknown key, did you mean \"for\"? (rate, for)\n" +
				"f.yaml:8:5: load.profile[4]: is a single value ({rate: R, for: T}, {ramp: R..R, for: T} or {burst: N, every: T, for: T})",
		},
		{"an unknown arrival", "", flags("load.arrival=poison"), `--load.arrival: "poison" is not known, did you mean "poisson"? (constant, poisson, {gamma: {cv: 3}}, {trace: FILE})`},
		{"a gamma out of range", "", flags("load.arrival={gamma: {cv: 0}}"), `--load.arrival: load.arrival.gamma.cv: 0 is out of range (a number from 0.1 to 10)`},
		{
			"a trace out of order",
			"", flags("load.arrival={trace: back.txt}"),
			"--load.arrival: load.arrival.trace: back.txt, line 2: 4ms is before the line above (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)",
		},
		{
			"a trace that is missing",
			"", flags("load.arrival={trace: none.txt}"),
			"--load.arrival: load.arrival.trace: reading the trace: open /at/dir/none.txt: file does not exist (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)",
		},
		{"a reversed batch", "", flags("system.driver=sink", "load.batch=5..2"), `--load.batch: "5..2" is reversed (a whole number from 1 to 100000, or a range such as 1..10)`},
		{"partitions that the driver has not", "", flags("topology.partitions=8"), "--topology.partitions: driver jetstream has no partitions (1)"},
		{
			"everything that the driver has not",
			"", flags("system.driver=plain", "topology.replication=2", "topology.subscriptions=2", "topology.consumers=2", "message.keys={uniform: 5}", "consume.settle=each"),
			"--consume.settle: driver plain does not settle by each (leave it out)\n" +
				"--topology.replication: driver plain has no replicas (1)\n" +
				"--message.keys: driver plain has no keys (none)\n" +
				"--topology.subscriptions: driver plain has no second subscription (1)\n" +
				"--topology.consumers: driver plain does not let consumers share a destination (up to topology.destinations, 1)",
		},
		{
			"what the driver has with another option",
			"", flags("system.driver=narrowed", "topology.subscriptions=2", "topology.consumers=2"),
			"--topology.subscriptions: driver narrowed has no second subscription (1, or more with --option pattern=fanout)\n" +
				"--topology.consumers: driver narrowed does not let consumers share a destination (up to topology.destinations, 1)",
		},
		{
			"a consumer side that the driver has not",
			"", flags("system.driver=sink", "topology.consumers=1", "mode=stream"),
			"--topology.consumers: driver sink has no consumer side (leave it out)\n--mode: driver sink has no consumer side (produce)",
		},
		{"an unknown beginning", "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from=oldest"), `--consume.from: "oldest" is not known (earliest, latest, {offset: N}, {time: T})`},
		{"a beginning of another kind", "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from={ofset: 3}"), `--consume.from: "ofset" is not known, did you mean "offset"? (earliest, latest, {offset: N}, {time: T})`},
		{"a beginning at no instant", "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from={time: yesterday}"), `--consume.from: consume.from.time: "yesterday" is not an instant (an instant such as 2026-01-31T12:00:00Z)`},
		{"a beginning at no offset", "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from={offset: ''}"), `--consume.from: consume.from.offset: is 0 bytes long (an offset as the system writes it, 1 to 255 bytes)`},
		{"a beginning where nothing lies", "", flags("consume.from=earliest"), `--consume.from: mode stream makes its own destinations, in which nothing lies before the run (leave it out)`},
		{"a beginning that the system does not know", "", flags("mode=consume", "topology.names=[a]", "system.driver=plain", "consume.from=latest"), `--consume.from: driver plain has no subscription begin at latest (leave it out)`},
		{"a durable that the system does not know", "", flags("mode=consume", "topology.names=[a]", "system.driver=plain", "consume.durable=x"), `--consume.durable: driver plain has no subscriptions that outlive the run (leave it out)`},
		{"a durable of several subscriptions", "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.durable=x", "topology.subscriptions=2"), `--consume.durable: names one subscription, and topology.subscriptions is 2 (1)`},
		{"a durable with blanks", "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.durable=a b"), `--consume.durable: "a b" has blanks (the name of a subscription, without blanks)`},
		{"consuming nothing", "", flags("mode=consume"), "--mode: consume needs topology.names, the destinations that already hold messages (a list of names)"},
		{
			"flags given twice",
			"", flags("load.rate=5/s", "load.rate=6/s", "slo=lost == 0", "slo=[corrupted == 0]"),
			"--load.rate: is given twice (once)",
		},
		{"an empty value", "weir: 1\nwarmup:\n", nil, "f.yaml:2:9: warmup: is empty (a duration such as 250ms, 5s, 2m)"},
		{"a fractional count", "weir: 1\ntopology: {producers: 1.5}\n", nil, `f.yaml:2:23: topology.producers: "1.5" is not a whole number (a whole number from 1 to 100000)`},
		{"a huge count", "weir: 1\ntopology: {producers: 99999999999999999999}\n", nil, `f.yaml:2:23: topology.producers: 99999999999999999999 is out of range (a whole number from 1 to 100000)`},
		{"a bad name", "", flags("name=../x"), `--name: "../x" is not a name (1 to 100 letters, digits, - _ . beginning with a letter or digit)`},
		{
			"faulty sizes",
			"weir: 1\nmessage: {size: [{size: 8B, weight: 1}, {size: 1KiB}, {size: 1KiB, weight: 0}]}\n", nil,
			"f.yaml:2:25: message.size[0].size: 8B is less than the 32 bytes of the stamp that weir puts into each message (32B to 64MiB)\n" +
				"f.yaml:2:42: message.size[1].weight: is missing (size, weight)\n" +
				"f.yaml:2:76: message.size[2].weight: 0 is out of range (a whole number from 1 to 1000000)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(inputs(t, tt.file, tt.flags...))
			got := ""
			if err != nil {
				got = err.Error()
			}
			golden.Equal(t, tt.want, got, "faults")
		})
	}
}

// flags returns overrides from "path=value" texts.
func flags(settings ...string) []Override {
	out := make([]Override, len(settings))
	for i, s := range settings {
		path, value, _ := strings.Cut(s, "=")
		out[i] = Override{Flag: "--" + path, Path: path, Value: value}
	}
	return out
}

// only resolves inputs that define a single run.
func only(in Inputs) (*Scenario, error) {
	runs, err := Resolve(in)
	if err != nil {
		return nil, err
	}
	if len(runs) != 1 {
		return nil, fmt.Errorf("%d runs; want one", len(runs))
	}
	return runs[0], nil
}

func TestEmptyScenarioIsDefaultRun(t *testing.T) {
	t.Parallel()
	s := must.Get(only(inputs(t, "")))(t)
	const want = `weir: 1
name: jetstream-1kib-1k
system:
  driver: jetstream
  start: embedded
  nodes: 1
  options:
    server.sync: false
    storage: file
    timeout: 1s
topology:
  destinations: 1
  partitions: 1
  replication: 1
  producers: 1
  subscriptions: 1
  consumers: 1
load:
  rate: 1000/s
  arrival: constant
  batch: 1
  in_flight: 10000
  when_full: wait
message:
  size: 1KiB
  payload: random
  keys: none
consume:
  settle: each
  prefetch: 0
  work: 0s
mode: stream
warmup: 2s
measure: 10s
drain: 30s
repeat: 1
limits:
  memory: 1GiB
  failed: 0
seed: 1
`
	golden.Equal(t, want, string(s.YAML()), "resolved")
	if got := s.Length(); got != 12*time.Second {
		t.Errorf("Length() = %v; want 12s", got)
	}
	c := s.Config("id", 7)
	if c.RunID != "id" || c.Run != 7 || c.InFlight != 10_000 || c.Mode != engine.Stream || c.Measure != 0 {
		t.Errorf("Config = %+v", c)
	}
	want2 := []schedule.Phase{{From: schedule.PerSecond(1000), To: schedule.PerSecond(1000), For: 10 * time.Second}}
	golden.Equal(t, want2, c.Plan.Phases, "phases")
}

// With gamma arrivals and a count, creating a schedule draws every gap. Length is called once a second
// during a run, so it must not create one.
func TestAPlanIsMadeOnce(t *testing.T) { // alone: it counts allocations
	s := must.Get(only(inputs(t, "weir: 1\nmessages: 1000\nwarmup: 0s\nload: {rate: 1000/s, arrival: {gamma: {cv: 2}}}\n")))(t)
	want := time.Duration(s.Config("id", 7).Schedule.End())
	n := testing.AllocsPerRun(10, func() {
		if got := s.Length(); got != want {
			t.Fatalf("Length() = %v; want the end of the plan, %v", got, want)
		}
	})
	if n > 0 {
		t.Errorf("Length() allocates %v times: it makes the plan again", n)
	}
	if a, b := s.Config("id", 7).Schedule, s.Config("id", 8).Schedule; a != b {
		t.Error("two configurations of a scenario have a schedule each")
	}
}

// full is a file with every possible key.
const full = "\xef\xbb\xbfweir: 1\r\nname: everything\r\n" + `system:
  driver: jetstream
  start: none
  guarantee: received
  options:
    address: ["nats://one:4222", two:4222]
    storage: memory
    timeout: 3s
    password: ${env:PASSWORD}
    user: "${env:ME}"
    tls: {ca: "a b#c"}
topology: {destinations: 3, replication: 3, producers: 25, subscriptions: 2, consumers: 5}
load:
  profile: [{rate: 1000/s, for: 30s}, {ramp: 1000/s..9000/s, for: 1m}, {burst: 5000, every: 1s, for: 1m}]
  arrival: {gamma: {cv: 3}}
  in_flight: 100
  when_full: drop
message:
  size: [{size: 256B, weight: 3}, {size: 64KiB, weight: 1}]
  payload: zeros
  keys: {zipf: {n: 10000, s: 1.1}}
consume: {settle: batch, prefetch: 1000}
mode: stream
warmup: 5s
drain: 10s
limits: {memory: 2GiB}
seed: 18446744073709551615
`

func TestAnAddressNeedsNoQuotes(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"system: {options: {address: [one:4222, 127.0.0.1:1, nats://b:2]}}",
		"system: {options: {address: [one:4222, '127.0.0.1:1', \"nats://b:2\"]}}",
		"system:\n  options:\n    address:\n    - one:4222\n    - 127.0.0.1:1\n    - nats://b:2\n",
	} {
		s, err := only(inputs(t, "weir: 1\n"+file+"\n"))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		golden.Equal(t, "one:4222,127.0.0.1:1,nats://b:2", s.System.Settings()["address"], "%s", file)
	}
	if _, err := only(inputs(t, "weir: 1\nsystem: {options: {address: [one: 4222]}}\n")); err == nil {
		t.Error("a mapping in a list of addresses is taken")
	}
}

func TestSecretsKeepTheirReference(t *testing.T) {
	t.Parallel()
	s := must.Get(only(inputs(t, full)))(t)
	cfg := s.System.Config.(*fake)
	if got := cfg.Password.Reveal(); got != "canary" {
		t.Errorf("password = %q; want that of the environment", got)
	}
	if got := cfg.User; got != "somebody" {
		t.Errorf("user = %q; want that of the environment", got)
	}
	want := map[string]string{
		"address": "nats://one:4222,two:4222", "storage": "memory", "timeout": "3s",
		"password": "${env:PASSWORD}", "user": "${env:ME}", "tls.ca": "a b#c",
	}
	golden.Equal(t, want, s.System.Settings(), "Settings()")
}

func TestLiteralSecretsAreRejected(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   Inputs
		says string
	}{
		"a secret in the file":      {inputs(t, "weir: 1\nsystem: {options: {password: canary}}\n"), "f.yaml:2:30: system.options.password: is a secret"},
		"a secret in a flag":        {inputs(t, "", flags("system.options.password=canary")...), "give a reference to it (${env:NAME} or {file: PATH})"},
		"a user in an address":      {inputs(t, "", flags("system.options.address=nats://me:canary@one:4222")...), "holds a user or password"},
		"without a scheme":          {inputs(t, "weir: 1\nsystem: {options: {address: ['one:1', 'canary@two:2']}}\n"), "holds a user or password"},
		"a query in an address":     {inputs(t, "", flags("system.options.address=nats://one:4222?token=canary")...), "has a query"},
		"a port that cannot be":     {inputs(t, "", flags("system.options.address=one:65536")...), "port 65536 is out of range (1 to 65535)"},
		"a port with a path behind": {inputs(t, "", flags("system.options.address=ws://one:70000/x")...), "port 70000 is out of range"},
		"an empty address":          {inputs(t, "", flags("system.options.address=")...), "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v; want it to say %q and no secret", err, tt.says)
			}
		})
	}
}

func TestConsumerBatchSetsAckMode(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]driver.Settle{"jetstream": driver.SettleBatch, "near": driver.SettleAuto} {
		s := must.Get(only(inputs(t, "weir: 1\nsystem: {driver: "+name+"}\nconsume: {batch: 7}\n")))(t)
		if s.Consume.Settle != want || s.Consume.Prefetch != 7 {
			t.Errorf("%s settles by %s with a prefetch of %d; want %s and 7", name, s.Consume.Settle, s.Consume.Prefetch, want)
		}
	}
}

func TestFlagsOverrideConflictingFileKeys(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file, flags string
		want        []string // in the resolved file
		not         string
	}{
		"messages over measure":         {"measure: 5s", "messages=7", []string{"messages: 7"}, "measure:"},
		"measure over messages":         {"messages: 7", "measure=5s", []string{"measure: 5s"}, "messages:"},
		"a profile over rate and so on": {"load: {rate: 5/s}\nmeasure: 5s", "load.profile=[{rate: 9/s, for: 3s}]", []string{"{rate: 9/s, for: 3s}"}, "measure:"},
		"a rate over a profile":         {"load: {profile: [{rate: 9/s, for: 3s}]}", "load.rate=5/s", []string{"rate: 5/s", "measure: 10s"}, "profile:"},
		"rate and measure over it":      {"load: {profile: [{rate: 9/s, for: 3s}]}", "load.rate=5/s measure=4s", []string{"rate: 5/s", "measure: 4s"}, "profile:"},
		"a closed loop over arrivals":   {"load: {arrival: poisson, when_full: drop}", "load.rate=max", []string{"rate: max"}, "arrival:"},
		"a trace over a rate":           {"load: {rate: 5/s}\nmeasure: 5s", "load.arrival={trace: trace.txt}", []string{"trace: /at/dir/trace.txt"}, "rate:"},
		"produce over consumers":        {"topology: {consumers: 3}\nconsume: {settle: each}", "mode=produce", []string{"mode: produce"}, "consumers:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var os []Override
			for f := range strings.SplitSeq(tt.flags, " ") {
				if len(os) > 0 && !strings.Contains(f, "=") {
					os[len(os)-1].Value += " " + f
					continue
				}
				os = append(os, flags(f)...)
			}
			s := must.Get(only(inputs(t, "weir: 1\n"+tt.file+"\n", os...)))(t)
			text := string(s.YAML())
			for _, w := range tt.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is missing:\n%s", w, text)
				}
			}
			if strings.Contains(text, "\n"+tt.not) || strings.Contains(text, "\n  "+tt.not) {
				t.Errorf("%q is still there:\n%s", tt.not, text)
			}
		})
	}
}

func TestAllPathsAreAbsolute(t *testing.T) {
	t.Parallel()
	in := inputs(t, "weir: 1\nsystem: {options: {password: {file: ../dir/secret.txt}}}\n", flags("load.arrival={trace: trace.txt}")...)
	in.File = "sub/f.yaml" // /at/dir/sub
	s := must.Get(only(in))(t)
	text := string(s.YAML())
	for _, want := range []string{"{file: /at/dir/dir/secret.txt}", "{trace: /at/dir/trace.txt}"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}

func TestFlagsWinOverTheFile(t *testing.T) {
	t.Parallel()
	s := must.Get(only(inputs(t, "weir: 1\nload: {rate: 5/s}\nsystem: {options: {storage: memory, tls: {ca: x}}}\n",
		flags("load.rate=9/s", "system.options.storage=file", "system.options.tls.ca=y")...)))(t)
	if got := s.Load.Rate.String(); got != "9/s" {
		t.Errorf("rate = %s; want that of the flag, 9/s", got)
	}
	golden.Equal(t, map[string]string{"storage": "file", "tls.ca": "y"}, s.System.Settings(), "options")
}

func TestADriverWithoutConsumersProduces(t *testing.T) {
	t.Parallel()
	s := must.Get(only(inputs(t, "", flags("system.driver=sink")...)))(t)
	if s.Mode != engine.Produce || s.System.Start != StartNone || s.Consume.Settle != driver.SettleNone {
		t.Errorf("mode %v, start %v, settle %v; want produce, none, none", s.Mode, s.System.Start, s.Consume.Settle)
	}
}

func TestURLUserInfoIsRemoved(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nats://u:p@h:1":                "nats://h:1",
		"nats://u:p@h:1,nats://a:b@g:2": "nats://h:1,nats://g:2",
		"nats://u:p,q@h:1":              "nats://h:1",
		"amqp://u:p/q@h:1":              "amqp://h:1",
		"u:p@h:1":                       "h:1",
		"h:1":                           "h:1",
		"nats://tok@h:1/x?y=1":          "nats://h:1/x?y=1",
	} {
		if got := strip("address", in); got != want {
			t.Errorf("strip(%q) = %q; want %q", in, got, want)
		}
	}
}

// TestValuesParseAsTyped checks that each natural spelling is accepted, and what the canonical file
// says instead.
func TestValuesParseAsTyped(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"load.rate=2k/s": "rate: 2000/s", "load.rate=1,000/s": "rate: 1000/s", "load.rate=10_000/s": "rate: 10000/s",
		"load.rate=10000/sec": "rate: 10000/s", "load.rate=60/min": "rate: 1/s", "load.rate=1e4/s": "rate: 10000/s", "load.rate=10000": "rate: 10000/s",
		"load.rate=10000rps": "rate: 10000/s", "load.rate=MAX": "rate: max", "load.rate=unlimited": "rate: max",
		"message.size=1k": "size: 1KiB", "message.size=1kb": "size: 1KB", "message.size=1Kib": "size: 1KiB", "message.size=1.5KiB": "size: 1536B",
		"measure=1min": "measure: 1m", "measure=90sec": "measure: 1m30s", "measure=2d": "measure: 48h", "measure=8 min 20 s": "measure: 8m20s",
		"messages=1M": "messages: 1000000",
		"load.profile=[{ramp: 1k/s..9k/s, for: 1min}]": "ramp: 1000/s..9000/s",
	} {
		s, err := only(inputs(t, "weir: 1\n", flags(flag)...))
		if err != nil {
			t.Errorf("%s: %v", flag, err)
		} else if !strings.Contains(string(s.YAML()), want) {
			t.Errorf("%s: want %q in\n%s", flag, want, s.YAML())
		}
	}
}
