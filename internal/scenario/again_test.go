package scenario

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/schedule"
)

func sameRun(t testing.TB) map[string]Inputs {
	return map[string]Inputs{
		"default":      inputs(t, ""),
		"everything":   inputs(t, full),
		"closed loop":  inputs(t, "", flags("system.driver=sink", "load.rate=max", "load.batch=1..10", "message.keys={round_robin: 5}", "messages=5000")...),
		"messages":     inputs(t, "", flags("messages=100", "load.rate=3000/h", "load.arrival=constant")...),
		"trace":        inputs(t, "", flags("load.arrival={trace: trace.txt}")...),
		"names":        inputs(t, "", flags("mode=consume", "topology.names=[a, 'b: c']", "system.options.address=h:1")...),
		"from time":    inputs(t, "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from={time: 2026-01-31T13:00:00.5+01:00}")...),
		"from offset":  inputs(t, "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from={offset: 1526919030474-0}", "consume.durable=a:b")...),
		"from latest":  inputs(t, "", flags("mode=consume", "topology.names=[a]", "system.options.address=h:1", "consume.from=latest", "consume.durable=mine")...),
		"poisson":      inputs(t, "", flags("load.arrival=poisson", "message.keys={uniform: 7}", "load.rate=0.5/s")...),
		"gamma":        inputs(t, "", flags("load.arrival={gamma: {cv: 0.3333333333333333}}", "load.rate=77/s", "topology.producers=7", "topology.destinations=3")...),
		"profile":      inputs(t, "", flags("load.profile=[{ramp: 9/s..1/m, for: 1m}, {burst: 5, every: 1s, for: 1500ms}, {rate: 1000/h, for: 1h}]", "load.arrival=poisson")...),
		"secret file":  inputs(t, "", flags("system.options.password={file: secret.txt}")...),
		"auto settled": inputs(t, "", flags("system.driver=near", "load.batch=4")...),
		"own server":   inputs(t, "", flags("system.options.server.sync=true", "system.nodes=3", "topology.replication=3")...),
		"plain":        inputs(t, "", flags("system.driver=plain", "topology.destinations=3", "topology.consumers=3")...),
		"matrix":       inputs(t, "weir: 1\nload: {arrival: {gamma: {cv: 2}}}\nmatrix: {load.rate: [50/s, 7/m], message.size: [1KB, [{size: 64B, weight: 3}, {size: 99B, weight: 1}]], system.options.storage: [file, memory], seed: [1, 2]}\n"),
		"scenarios":    inputs(t, "weir: 1\nscenarios:\n- {mode: request, load: {rate: max}}\n- {mode: backlog, messages: 7, repeat: 3, consume: {work: 2ms}}\n- {slo: ['e2e.p99.9 <= 10ms', 'ratio(lost, confirmed) <= 0.01%']}\n"),
		"a file":       inputs(t, "", flags("message.payload={file: one.json}")...),
		"a folder":     inputs(t, "", flags("message.payload={dir: docs}", "load.rate=33/s")...),
		"cut to size":  inputs(t, "", flags("message.payload={dir: docs}", "message.size=100B")...),
		"paired":       inputs(t, "", flags("placement=paired")...),
		"placed":       inputs(t, "", flags("placement={producers: [a, -b, 'zone=x,disk=ssd'], consumers: [K8s.io=1]}")...),
		"compressible": inputs(t, "", flags("message.payload={compressible: 0.35}")...),
	}
}

// walk summarizes what a schedule sends: the due instant, producer, size, key and destination of its
// first messages.
func walk(t testing.TB, s *Scenario) string {
	plan := must.Get(schedule.New(s.Plan()))(t)
	sum := fnv.New64a()
	n := uint64(0)
	message := func(i uint64, due int64) {
		producer := plan.Producer(i)
		key, keyed := plan.Key(i)
		fmt.Fprintln(sum, i, due, producer, plan.Size(i), key, keyed, plan.Destination(producer, n), plan.BatchSize(producer, n))
		n++
	}
	for i, due := range plan.Due(schedule.Part{Index: 0, Count: 1}) {
		if message(i, due); n == 20_000 {
			break
		}
	}
	for i := n; i < 1000; i++ {
		message(i, -1) // a closed loop: only what depends on the index
	}
	return fmt.Sprintf("%d messages to %d: %x", n, plan.End(), sum.Sum64())
}

// again resolves text and then what s renders, and returns every difference.
func again(t testing.TB, s *Scenario, text []byte) string {
	t.Helper()
	twice, err := only(inputs(t, string(text)))
	if err != nil {
		return fmt.Sprintf("resolving it again: %v\n%s", err, text)
	}
	var out strings.Builder
	differ := func(what, diff string) {
		if diff != "" {
			fmt.Fprintf(&out, "%s (-first +second):\n%s\n", what, diff)
		}
	}
	differ("resolved again", cmp.Diff(string(s.YAML()), string(twice.YAML())))
	differ("scenario", cmp.Diff(s, twice,
		cmpopts.IgnoreFields(System{}, "Definition", "Config", "Options"), // the second time, defaults are given
		cmpopts.IgnoreUnexported(Scenario{}), cmp.Comparer(func(a, b judge.Objective) bool { return a == b })))
	differ("options", cmp.Diff(driver.Options(s.System.Config), driver.Options(twice.System.Config)))
	differ("schedule", cmp.Diff(walk(t, s), walk(t, twice)))
	if strings.Contains(string(text), "canary") {
		fmt.Fprintf(&out, "the resolved file holds a secret:\n%s", text)
	}
	return out.String()
}

func TestAResolvedFileGivesTheSameRun(t *testing.T) {
	t.Parallel()
	for name, in := range sameRun(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := must.Get(Resolve(in))(t)
			for _, s := range runs {
				if diff := again(t, s, s.YAML()) + again(t, s, s.Explain()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestAnyResolvedFileGivesTheSameRun does the same with random combinations of keys; invalid
// combinations may be rejected.
func TestAnyResolvedFileGivesTheSameRun(t *testing.T) {
	t.Parallel()
	values := map[string][]string{
		"name":                   {"a", "null", "true", "1", "1e3", "a.b-c_d"},
		"system.driver":          {"jetstream", "plain", "sink", "near"},
		"system.guarantee":       {"buffered", "received"},
		"system.options.address": {"h:1", "nats://one:4222,two:4222", "[a:1, 'ws://b:2/x y']"},
		"system.options.storage": {"file", "memory"},
		"system.options.timeout": {"0", "1h1m1.000000001s", "1ns"},
		"system.options.user":    {"~", "a: b", "# no", "'", "\"", "\\", "a\tb", "- x", "${x}", "{file: secret.txt}", "${env:ME}", "ünïcode 你", "%", "@x", "`x", "!x", "&x", "*x", "|", ">", "?", "null", "", " ", "0x1f", "a\nb", "=", "<<"},
		"topology.destinations":  {"1", "3"},
		"topology.producers":     {"1", "2", "7", "100"},
		"topology.consumers":     {"1", "2"},
		"load.rate":              {"max", "0.001/s", "1/h", "7/m", "999999/s", "1000000000/s", "12.345/s", "0.000001/h"},
		"load.arrival":           {"constant", "poisson", "{gamma: {cv: 0.1}}", "{gamma: {cv: 9.99999999999}}"},
		"load.batch":             {"1", "5", "2..9"},
		"load.in_flight":         {"1", "10", "1000"},
		"load.when_full":         {"wait", "drop", "fail"},
		"message.size":           {"32", "33B", "1KiB", "1000", "1024000", "[{size: 99B, weight: 2}, {size: 32, weight: 1}]"},
		"message.payload":        {"random", "zeros", "{compressible: 0.1}", "{compressible: 1e-7}", "{file: one.json}", "{dir: docs}"},
		"message.keys":           {"none", "{uniform: 3}", "{zipf: {n: 100, s: 1.0000001}}", "{round_robin: 1099511627776}"},
		"consume.settle":         {"each", "batch", "auto"},
		"consume.batch":          {"1", "10"},
		"consume.prefetch":       {"0", "7"},
		"consume.work":           {"0s", "1ns", "1.5ms"},
		"consume.fail":           {"1%", "0.5"},
		"consume.dead_letter":    {"3", "1"},
		"consume.churn":          {"1s", "1500ms"},
		"consume.pause":          {"at 1s for 2s", "at 0s until 5k", "{at: 1s, for: 1.5s}", "{at: 1s, until: 7}"},
		"mode":                   {"stream", "produce", "request", "backlog"},
		"warmup":                 {"0s", "1ns", "1m0.5s"},
		"measure":                {"1ms", "1h", "77h"},
		"messages":               {"1", "1000"},
		"drain":                  {"0", "1h"},
		"repeat":                 {"1", "100"},
		"slo":                    {"lost == 0", "[e2e.p99 <= 1ms, 'send.service.max < 1s']"},
		"placement":              {"paired", "split", "{producers: [a, 1, zone=b]}", "{consumers: [null, 'a=b,c=d']}", "{producers: [--, 1e3], consumers: [0x1f, true]}"},
		"limits.memory":          {"1MiB", "3GB", "1073741825"},
		"limits.failed":          {"0", "1%", "0.25", "0.07%", "1"},
		"seed":                   {"0", "18446744073709551615"},
	}
	paths := slices.Sorted(maps.Keys(values))
	rapid.Check(t, func(r *rapid.T) {
		var os []Override
		for _, path := range paths {
			if rapid.IntRange(0, 5).Draw(r, path+"?") == 0 {
				os = append(os, Override{Flag: "--" + path, Path: path, Value: rapid.SampledFrom(values[path]).Draw(r, path)})
			}
		}
		runs, err := Resolve(inputs(t, "", os...))
		if err != nil {
			r.Skip(err) // rapid draws another: every check has a good one
		}
		if diff := again(t, runs[0], runs[0].YAML()) + again(t, runs[0], runs[0].Explain()); diff != "" {
			r.Fatal(diff)
		}
	})
}
