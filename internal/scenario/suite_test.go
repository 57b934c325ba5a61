package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// tell returns a line for each run: its name and what distinguishes it from the others.
func tell(runs []*Scenario) []string {
	out := make([]string, len(runs))
	for i, s := range runs {
		rate := s.Load.Rate.String()
		if s.Load.Closed {
			rate = "max"
		}
		out[i] = fmt.Sprintf("%s: %s %s %s x%d %s", s.Name, s.System.Definition.Name, rate, sizes.text(&s.Message.Sizes), s.Topology.Producers, s.System.Settings()["storage"])
	}
	return out
}

func TestAFileHoldsSeveralRuns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file  string
		flags []Override
		want  []string
	}{
		"scenarios are laid over the rest": {
			"weir: 1\nload: {rate: 5/s, batch: 1}\nsystem: {options: {storage: file}}\nscenarios:\n- {name: one}\n- {name: two, load: {rate: 7/s}}\n- {name: three, system: {options: {storage: memory}}}\n", nil,
			[]string{"one: jetstream 5/s 1KiB x1 file", "two: jetstream 7/s 1KiB x1 file", "three: jetstream 5/s 1KiB x1 memory"},
		},
		"a matrix varies the last key fastest": {
			"weir: 1\nmatrix:\n  load.rate: [1000/s, 20/m]\n  topology.producers: [1, 4]\n", nil,
			[]string{
				"jetstream-1kib-1k-producers-1: jetstream 1000/s 1KiB x1 ", "jetstream-1kib-1k-producers-4: jetstream 1000/s 1KiB x4 ",
				"jetstream-1kib-20-m-producers-1: jetstream 20/m 1KiB x1 ", "jetstream-1kib-20-m-producers-4: jetstream 20/m 1KiB x4 ",
			},
		},
		"a matrix over an option and a size, of a named file": {
			"weir: 1\nname: disk\nmatrix: {system.options.storage: [file, memory], message.size: [64B, [{size: 1KB, weight: 1}, {size: 2KB, weight: 2}]]}\n", nil,
			[]string{
				"disk-file-64b: jetstream 1000/s 64B x1 file", "disk-file-size-1kb-weight-1-size-2: jetstream 1000/s [{size: 1KB, weight: 1}, {size: 2KB, weight: 2}] x1 file",
				"disk-memory-64b: jetstream 1000/s 64B x1 memory", "disk-memory-size-1kb-weight-1-size-2: jetstream 1000/s [{size: 1KB, weight: 1}, {size: 2KB, weight: 2}] x1 memory",
			},
		},
		"one that excludes what the rest says": {
			"weir: 1\nname: n\nmeasure: 5s\nmatrix: {load.rate: [5/s, 6/s]}\nconsume: {settle: each}\nscenarios:\n- {mode: produce}\n- {load: {profile: [{rate: 9/s, for: 1s}]}}\n", nil,
			[]string{"n-1-5: jetstream 5/s 1KiB x1 ", "n-1-6: jetstream 6/s 1KiB x1 ", "n-2: jetstream 0/s 1KiB x1 "},
		},
		"keys that vary together": {
			"weir: 1\nname: n\nmatrix:\n  topology.producers: [1, 2]\n  zip: {message.size: [64B, 128B, 256B], load.rate: [9/s, 6/s, 9/s]}\n", nil,
			[]string{
				"n-producers-1-64b-9: jetstream 9/s 64B x1 ", "n-producers-1-128b-6: jetstream 6/s 128B x1 ", "n-producers-1-256b-9: jetstream 9/s 256B x1 ",
				"n-producers-2-64b-9: jetstream 9/s 64B x2 ", "n-producers-2-128b-6: jetstream 6/s 128B x2 ", "n-producers-2-256b-9: jetstream 9/s 256B x2 ",
			},
		},
		"a flag stands instead of one that varies with others": {
			"weir: 1\nname: n\nmatrix: {zip: {message.size: [64B, 128B], load.rate: [9/s, 6/s]}}\n", flags("load.rate=5/s"),
			[]string{"n-64b: jetstream 5/s 64B x1 ", "n-128b: jetstream 5/s 128B x1 "},
		},
		"a matrix inside one of several": {
			"weir: 1\nscenarios:\n- {name: a, matrix: {load.rate: [max, 5/s]}}\n- {load: {rate: 9/s}}\n- {load: {rate: 9/s}}\n", nil,
			[]string{"a-max: jetstream max 1KiB x1 ", "a-5: jetstream 5/s 1KiB x1 ", "jetstream-1kib-9: jetstream 9/s 1KiB x1 ", "jetstream-1kib-9-2: jetstream 9/s 1KiB x1 "},
		},
		"a matrix of the whole and of one": {
			"weir: 1\nmatrix: {topology.producers: [1, 2]}\nscenarios:\n- {name: a, matrix: {load.rate: [5/s]}}\n- {name: b, matrix: {topology.producers: [3]}}\n", nil,
			[]string{"a-producers-1-5: jetstream 5/s 1KiB x1 ", "a-producers-2-5: jetstream 5/s 1KiB x2 ", "b-producers-3: jetstream 1000/s 1KiB x3 "},
		},
		"a name that all share has their numbers": {
			"weir: 1\nname: all\nscenarios:\n- {load: {rate: 5/s}}\n- {load: {rate: 6/s}}\n", nil,
			[]string{"all-1: jetstream 5/s 1KiB x1 ", "all-2: jetstream 6/s 1KiB x1 "},
		},
		"drivers in a matrix": {
			"weir: 1\nmatrix: {system.driver: [jetstream, plain]}\n", nil,
			[]string{"1kib-1k-jetstream: jetstream 1000/s 1KiB x1 ", "1kib-1k-plain: plain 1000/s 1KiB x1 "},
		},
		"values that look alike in a name": {
			"weir: 1\nname: n\nmatrix: {system.options.user: [a/b, a-b, A b]}\n", nil,
			[]string{"n-a-b: jetstream 1000/s 1KiB x1 ", "n-a-b-2: jetstream 1000/s 1KiB x1 ", "n-A-b-3: jetstream 1000/s 1KiB x1 "},
		},
		"a flag stands instead of the matrix": {
			"weir: 1\nname: n\nmatrix: {load.rate: [5/s, 6/s], topology.producers: [1, 2]}\n", flags("load.rate=9/s"),
			[]string{"n-producers-1: jetstream 9/s 1KiB x1 ", "n-producers-2: jetstream 9/s 1KiB x2 "},
		},
		"a flag that excludes what the matrix varies": {
			"weir: 1\nname: n\nmatrix: {messages: [5, 6], load.arrival: [poisson]}\n", flags("measure=1s", "load.rate=max"),
			[]string{"n: jetstream max 1KiB x1 "},
		},
		"a flag names the runs of a matrix": {
			"weir: 1\nmatrix: {topology.producers: [1, 2]}\n", flags("name=mine"),
			[]string{"mine-producers-1: jetstream 1000/s 1KiB x1 ", "mine-producers-2: jetstream 1000/s 1KiB x2 "},
		},
		"a long name is cut and stays apart": {
			"weir: 1\nname: " + strings.Repeat("n", 100) + "\nmatrix: {topology.producers: [1, 2]}\n", nil,
			[]string{strings.Repeat("n", 100) + ": jetstream 1000/s 1KiB x1 ", strings.Repeat("n", 98) + "-2: jetstream 1000/s 1KiB x2 "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := must.Get(Resolve(inputs(t, tt.file, tt.flags...)))(t)
			golden.Equal(t, tt.want, tell(runs), "runs")
		})
	}
}

func TestFaultsOfSeveralRuns(t *testing.T) {
	t.Parallel()
	billion := "weir: 1\nmatrix:\n"
	for _, key := range []string{"topology.producers", "topology.consumers", "topology.destinations", "seed", "load.in_flight", "drain", "warmup", "measure", "limits.memory"} {
		values := make([]string, 10)
		for i := range values {
			values[i] = fmt.Sprint(i+1) + map[string]string{"drain": "s", "warmup": "s", "measure": "s", "limits.memory": "GiB"}[key]
		}
		billion += "  " + key + ": [" + strings.Join(values, ", ") + "]\n"
	}
	for name, tt := range map[string]struct {
		file  string
		flags []Override
		want  string
	}{
		"a billion runs, and another fault": {billion + "mode: sream\n", nil, "f.yaml:2:1: matrix: makes 1000000000 runs (at most 1000)\nf.yaml:12:7: mode: \"sream\" is not known, did you mean \"stream\"? (stream, produce, consume, request, backlog)"},
		"too many runs over scenarios":      {"weir: 1\nmatrix: {seed: [" + numbers(600) + "]}\nscenarios: [{name: a}, {name: b}]\n", nil, "f.yaml:3:12: scenarios: make 1200 runs with their matrix (at most 1000)"},
		"a zip of two lengths":              {"weir: 1\nmatrix:\n  zip: {message.size: [64B, 128B], load.rate: [9/s]}\n", nil, "f.yaml:3:47: matrix.zip.load.rate: has 1 values, and message.size has 2 (a mapping of two or more keys to lists of one length, such as {message.size: [1KiB, 10KiB], load.rate: [1000/s, 100/s]})"},
		"a zip of the same values":          {"weir: 1\nmatrix:\n  zip: {message.size: [64B, 64B], load.rate: [9/s, 9/s]}\n", nil, "f.yaml:3:29: matrix.zip: has the same values twice, at place 2 (once; repeat says how often a run is done)"},
		"a zip of what stands beside it":    {"weir: 1\nseed: 1\nmatrix:\n  load.rate: [9/s]\n  zip: {seed: [1, 2], load.rate: [9/s, 8/s]}\n", nil, "f.yaml:5:9: matrix.zip.seed: is set at f.yaml:2:7 too (one of them)\nf.yaml:5:23: matrix.zip.load.rate: is varied beside zip too (one of them)"},
		"a zip that is a list":              {"weir: 1\nmatrix: {zip: [load.rate]}\n", nil, "f.yaml:2:15: matrix.zip: is a list (a mapping of two or more keys to lists of one length, such as {message.size: [1KiB, 10KiB], load.rate: [1000/s, 100/s]})"},
		"a zip in a zip":                    {"weir: 1\nmatrix: {zip: {zip: {seed: [1]}}}\n", nil, "f.yaml:2:16: matrix.zip.zip: cannot be varied (any key of a run but its name)"},
		"a list of nothing":                 {"weir: 1\nscenarios: []\n", nil, "f.yaml:2:12: scenarios: holds none (a list of scenarios, each overriding the rest of the file)"},
		"scenarios that are not a list":     {"weir: 1\nscenarios: {name: a}\nseed: x\n", nil, "f.yaml:2:1: scenarios: is a mapping (a list of scenarios, each overriding the rest of the file)\nf.yaml:3:7: seed: \"x\" is not a whole number (a whole number from 0 to 18446744073709551615)"},
		"a scenario that is not a mapping":  {"weir: 1\nscenarios: [fast, {name: a}]\n", nil, "f.yaml:2:13: scenarios[0]: is a single value (a mapping of the keys that differ from the rest of the file)"},
		"scenarios in scenarios":            {"weir: 1\nscenarios: [{weir: 1, scenarios: []}]\n", nil, "f.yaml:2:14: scenarios[0].weir: stands at the top of the file only (leave it out)\nf.yaml:2:23: scenarios[0].scenarios: stands at the top of the file only (leave it out)"},
		"two of one name":                   {"weir: 1\nscenarios:\n- {name: a}\n- {name: A}\n", nil, "f.yaml:4:10: name: \"A\" is the name of scenarios[0] too (a name of its own)"},
		"one name for several":              {"weir: 1\nscenarios: [{name: a}, {name: b}]\n", flags("name=c"), "--name: names one run, and the file holds 2 scenarios (leave it out)"},
		"a fault that all share":            {"weir: 1\nwarmup: 5\nscenarios: [{name: a}, {name: b}]\n", nil, "f.yaml:2:9: warmup: 5 has no unit (a duration such as 250ms, 5s, 2m)"},
		"a fault of one":                    {"weir: 1\nscenarios:\n- name: a\n- name: b\n  load: {rat: 5/s}\n", nil, "f.yaml:5:10: load.rat: unknown key, did you mean \"rate\"? (rate, arrival, profile, batch, in_flight, in_flight_until, when_full)"},
		"a fault of one that its place hides": {
			"weir: 1\nconsume: {settle: each}\nscenarios:\n- {name: a}\n- {name: b, system: {driver: sink}}\n", nil,
			"f.yaml:2:19: consume.settle: driver sink has no consumer side (leave it out), in scenarios[1]",
		},
		"a fault of one member of a matrix": {
			"weir: 1\nconsume: {settle: each}\nmatrix: {mode: [stream, produce], seed: [1, 2]}\n", nil,
			"f.yaml:2:19: consume.settle: mode produce receives nothing (leave it out), in mode produce with seed 1",
		},
		"a matrix that is a list":     {"weir: 1\nmatrix: [a]\n", nil, "f.yaml:2:9: matrix: is a list (a mapping of keys to lists of values, such as load.rate: [1000/s, 10000/s])"},
		"one value instead of a list": {"weir: 1\nmatrix: {load.rate: 5/s}\n", nil, "f.yaml:2:21: matrix.load.rate: is a single value (a list of the values that it takes)"},
		"no value":                    {"weir: 1\nmatrix: {load.rate: []}\n", nil, "f.yaml:2:21: matrix.load.rate: is an empty list (a list of the values that it takes)"},
		"a value twice":               {"weir: 1\nmatrix: {load.rate: [5/s, 6/s, 5/s]}\n", nil, "f.yaml:2:32: matrix.load.rate[2]: is given twice (once; repeat says how often a run is done)"},
		"a wrong value": {
			"weir: 1\nmatrix: {load.rate: [5/s, 6/d], topology.producers: [1, 2]}\n", nil,
			"f.yaml:2:27: load.rate: \"6/d\": a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h",
		},
		"an unknown option": {
			"weir: 1\nmatrix: {system.options.storge: [file, memory]}\n", nil,
			"f.yaml:2:10: system.options.storge: unknown option, did you mean \"storage\"? (address, password, server.sync, storage, timeout, tls.ca, user)",
		},
		"a folder as a file, and as what it is": {
			"weir: 1\nmatrix: {message.payload: [{file: docs}, {dir: docs}]}\n", nil,
			"f.yaml:2:35: message.payload.file: docs is a folder (a regular file of 1B to 67108832B, or {dir: FOLDER})",
		},
		"keys that cannot be varied": {
			"weir: 1\nmatrix: {weir: [1], name: [a], matrix: [b], scenarios: [c], system.options: [{}]}\n", nil,
			"f.yaml:2:10: matrix.weir: cannot be varied (any key of a run but its name)\n" +
				"f.yaml:2:21: matrix.name: cannot be varied (any key of a run but its name)\n" +
				"f.yaml:2:32: matrix.matrix: cannot be varied (any key of a run but its name)\n" +
				"f.yaml:2:45: matrix.scenarios: cannot be varied (any key of a run but its name)\n" +
				"f.yaml:2:61: matrix.system.options: cannot be varied as a whole (one option by its name, such as system.options.storage)",
		},
		"keys that are not known": {
			"weir: 1\nmatrix: {rate: [5/s], load.rte: [5/s], load: [{}], prefetc: [1], colour: [red]}\n", nil,
			"f.yaml:2:10: matrix.rate: is the short form of a flag, did you mean \"load.rate\"? (keys as in a file, with dots)\n" +
				"f.yaml:2:23: matrix.load.rte: unknown key, did you mean \"load.rate\"? (keys as in a file, with dots)\n" +
				"f.yaml:2:40: matrix.load: is a section (one key of it with a dot, such as load.rate)\n" +
				"f.yaml:2:52: matrix.prefetc: unknown key (keys as in a file, with dots, such as load.rate)\n" +
				"f.yaml:2:66: matrix.colour: unknown key (keys as in a file, with dots, such as load.rate)",
		},
		"a key that the file sets too": {
			"weir: 1\nload: {rate: 5/s}\nsystem: {options: {tls: {ca: x}}}\nmatrix: {load.rate: [6/s], system.options.tls.ca: [y]}\n", nil,
			"f.yaml:4:10: matrix.load.rate: is set at f.yaml:2:14 too (one of them)\n" +
				"f.yaml:4:28: matrix.system.options.tls.ca: is set at f.yaml:3:30 too (one of them)",
		},
		"a key that one scenario sets too": {
			"weir: 1\nmatrix: {load.rate: [5/s, 6/s]}\nscenarios:\n- {name: a}\n- {name: b, load: {rate: 7/s}}\n", nil,
			"f.yaml:2:10: matrix.load.rate: is set at f.yaml:5:26 too (one of them)",
		},
	} {
		t.Run(name, func(t *testing.T) {
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

func TestFaultsOfAMatrixShowNoSecret(t *testing.T) {
	t.Parallel()
	_, err := Resolve(inputs(t, "weir: 1\ntopology: {consumers: 2}\nmatrix: {system.options.password: [canary, canary, other-canary], mode: [stream, produce]}\n"))
	const says = "in system.options.password[0] with mode produce"
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; want it to say %q and no secret", err, says)
	}
}

// numbers returns 1, 2, ... n as in a list.
func numbers(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(out, ", ")
}
