package scenario

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
)

// bomb returns a file whose aliases expand to a billion words.
func bomb() string {
	var b strings.Builder
	b.WriteString("weir: 1\na: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'j'; c++ {
		p := string(c - 1)
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+", ", 10), ", ") + "]\n")
	}
	return b.String()
}

// TestBadInput checks invalid inputs, each with its whole message. The tests of matrix, payloads and
// variables have more.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const rates = "a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h"
	for name, tt := range map[string]struct {
		file  string
		flags []Override
		want  string
	}{
		"an unknown key":                        {"weir: 1\nload:\n  raet: 5/s\n", nil, "f.yaml:3:3: load.raet: unknown key, did you mean \"rate\"? (rate, arrival, profile, batch, in_flight, in_flight_until, when_full)"},
		"a wrong type":                          {"weir: 1\nload: {rate: [5/s]}\nwarmup: {s: 5}\n", nil, "f.yaml:2:14: load.rate: is a list (messages per time such as 20000/s, 0.5/s, 100/m)\nf.yaml:3:1: warmup: is a mapping (a duration such as 250ms, 5s, 2m)"},
		"a duplicate key":                       {"weir: 1\nload:\n  rate: 5/s\n  rate: 6/s\n", nil, "f.yaml:4:3: load.rate: is given twice (once)"},
		"two documents":                         {"weir: 1\nname: a\n---\nweir: 1\nname: b\n", nil, "f.yaml:4:5: begins a second document (one, with `scenarios:` for several scenarios)"},
		"a pause of consumers that close":       {"weir: 1\nconsume: {pause: at 1s for 1s, churn: 1s}\n", nil, "f.yaml:2:39: consume.churn: does not go with consume.pause: a consumer that takes nothing cannot close (leave one of them out)"},
		"a pause of no consumers":               {"weir: 1\nmode: produce\nconsume: {pause: at 1s for 1s, churn: 1s}\n", nil, "f.yaml:3:18: consume.pause: mode produce receives nothing (leave it out)\nf.yaml:3:39: consume.churn: mode produce receives nothing (leave it out)"},
		"a refusal that nothing follows":        {"weir: 1\nconsume: {fail: 1%}\n", nil, "f.yaml:2:17: consume.fail: driver jetstream does not deliver again what a consumer refuses (leave it out)"},
		"dead letters of a system without":      {"weir: 1\nconsume: {dead_letter: 3}\n", nil, "f.yaml:2:24: consume.dead_letter: driver jetstream has no dead letters with these options (leave it out)"},
		"consumers that never close":            {"weir: 1\nmeasure: 5s\nconsume: {churn: 5s}\n", nil, "f.yaml:3:18: consume.churn: is no less than the measured window of 5s, so that no consumer would close (less)"},
		"consumers that hardly stay":            {"weir: 1\nconsume: {churn: 5ms}\n", nil, "f.yaml:2:18: consume.churn: is 5ms (100ms or more)"},
		"churn of a backlog":                    {"weir: 1\nmode: backlog\nconsume: {churn: 1s}\n", nil, "f.yaml:3:18: consume.churn: needs mode stream (leave it out)"},
		"a pause of nothing known":              {"weir: 1\nconsume: {pause: at 1s for 2s until 5}\n", nil, "f.yaml:2:18: consume.pause: needs at, and one of for and until (such as at 10s for 5s, or at 10s until 50000, which is until this many messages wait)"},
		"a pause that outlasts the window":      {"weir: 1\nmeasure: 5s\nconsume: {pause: at 3s for 2s}\n", nil, "f.yaml:3:18: consume.pause: ends after the measured window of 5s, and then nothing is caught up while load continues (less)"},
		"a pause in a closed loop":              {"weir: 1\nload: {rate: max}\nconsume: {pause: at 3s for 2s}\n", nil, "f.yaml:3:18: consume.pause: needs a rate: with rate: max no message is due at a time (such as load.rate: 1000/s)"},
		"a pause of a backlog":                  {"weir: 1\nmode: backlog\nconsume: {pause: at 3s for 2s}\n", nil, "f.yaml:3:18: consume.pause: needs mode stream, in which load continues meanwhile (leave it out)"},
		"two documents, and the first at fault": {"weir: 1\nloda: 5\nmeasure: 10%\n---\nweir: 1\n", nil, "f.yaml:2:1: loda: unknown key, did you mean \"load\"? (weir, name, system, topology, load, message, consume, mode, warmup, measure, messages, drain, after_drain, repeat, slo, until_decided, faults, network, watch_pid, price_per_hour, placement, fleet, limits, seed, search, scenarios, matrix)\nf.yaml:3:10: measure: \"10%\" is not a duration (a duration such as 250ms, 5s, 2m)\nf.yaml:5:5: begins a second document (one, with `scenarios:` for several scenarios)"},
		"ten megabytes":                         {"weir: 1\n" + strings.Repeat("# filler\n", 10<<20/9), nil, "f.yaml: is longer than a scenario may be (64 KiB)"},
		"an empty file":                         {" ", nil, "f.yaml: is empty (a scenario begins with weir: 1)"},
		"not UTF-8":                             {"weir: 1\nname: caf\xe9\n", nil, "f.yaml:2:10: is not UTF-8 text"},
		"UTF-16":                                {"\xff\xfew\x00e\x00i\x00r\x00", nil, "f.yaml:1:1: is not UTF-8 text"},
		"a binary":                              {"\x7fELF\x02\x01\x01\x00\x00", nil, "f.yaml:1:5: is not UTF-8 text"},
		"a fault in a file with BOM and CRLF":   {"\xef\xbb\xbfweir: 1\r\nwarmup: 5\r\nload:\r\n  rate: 5/d\r\n", nil, "f.yaml:2:9: warmup: 5 has no unit (a duration such as 250ms, 5s, 2m)\nf.yaml:4:9: load.rate: \"5/d\": " + rates},
		"a BOM and the first key":               {"\xef\xbb\xbfwire: 1\r\n", nil, "f.yaml:1:1: wire: unknown key, did you mean \"weir\"? (weir, name, system, topology, load, message, consume, mode, warmup, measure, messages, drain, after_drain, repeat, slo, until_decided, faults, network, watch_pid, price_per_hour, placement, fleet, limits, seed, search, scenarios, matrix)\nf.yaml: the file lacks the line \"weir: 1\""},
		"a number where a duration belongs":     {"weir: 1\nmeasure: 30\ndrain: 1.5\nconsume: {work: 2}\n", nil, "f.yaml:2:10: measure: 30 has no unit (a duration such as 250ms, 5s, 2m)\nf.yaml:3:8: drain: 1.5 has no unit (a duration such as 250ms, 5s, 2m)\nf.yaml:4:17: consume.work: 2 has no unit (a duration such as 250ms, 5s, 2m)"},
		"a duration where a number belongs":     {"weir: 1\nrepeat: 5s\nload: {in_flight: 1ms}\nmessages: 10s\n", nil, "f.yaml:2:9: repeat: \"5s\" is not a whole number (a whole number from 1 to 100)\nf.yaml:3:19: load.in_flight: \"1ms\" is not a whole number (a whole number from 1 to 10000000)\nf.yaml:4:11: messages: \"10s\" is not a whole number (a whole number from 1 to 18446744073709551615)"},
		"percent signs":                         {"weir: 1\nname: '%s%d'\nload: {rate: 5%/s}\nmessage: {size: 10%}\nseed: '%!d'\n'%v': 1\nwarmup: 5%\n", nil, "f.yaml:2:7: name: \"%s%d\" is not a name (1 to 100 letters, digits, - _ . beginning with a letter or digit)\nf.yaml:3:14: load.rate: \"5%/s\": " + rates + "\nf.yaml:4:17: message.size: \"10%\" is not a size (32B to 64MiB, such as 256B, 1KiB, 1MB)\nf.yaml:5:7: seed: \"%!d\" is not a whole number (a whole number from 0 to 18446744073709551615)\nf.yaml:6:1: %v: unknown key (weir, name, system, topology, load, message, consume, mode, warmup, measure, messages, drain, after_drain, repeat, slo, until_decided, faults, network, watch_pid, price_per_hour, placement, fleet, limits, seed, search, scenarios, matrix)\nf.yaml:7:9: warmup: \"5%\" is not a duration (a duration such as 250ms, 5s, 2m)"},
		"wrong units":                           {"weir: 1\nload: {rate: 5/d}\nmessage: {size: 1kibi}\nmeasure: 5parsec\nlimits: {memory: 5Q}\n", nil, "f.yaml:2:14: load.rate: \"5/d\": " + rates + "\nf.yaml:3:17: message.size: \"1kibi\" is not a size (32B to 64MiB, such as 256B, 1KiB, 1MB)\nf.yaml:4:10: measure: \"5parsec\" is not a duration (a duration such as 250ms, 5s, 2m)\nf.yaml:5:18: limits.memory: \"5Q\" is not a size (1MiB to 16TiB, such as 256B, 1KiB, 1MB)"},
		"shares that are none":                  {"weir: 1\nlimits: {failed: 101%}\n", nil, "f.yaml:2:18: limits.failed: 101% is out of range (a percentage such as 1%, or the same as a part of 1, 0.01)"},
		"a share with a unit":                   {"weir: 1\nlimits: {failed: 5ms}\n", nil, "f.yaml:2:18: limits.failed: \"5ms\" is not a share (a percentage such as 1%, or the same as a part of 1, 0.01)"},
		"a negative share":                      {"weir: 1\nlimits: {failed: -0.1}\n", nil, "f.yaml:2:18: limits.failed: -0.1 is out of range (a percentage such as 1%, or the same as a part of 1, 0.01)"},
		"a reversed batch":                      {"weir: 1\nsystem: {driver: sink}\nload: {batch: 10..1}\n", nil, "f.yaml:3:15: load.batch: \"10..1\" is reversed (a whole number from 1 to 100000, or a range such as 1..10)"},
		"a batch of nothing":                    {"weir: 1\nsystem: {driver: sink}\nload: {batch: 1..0}\n", nil, "f.yaml:3:15: load.batch: \"1..0\" is reversed (a whole number from 1 to 100000, or a range such as 1..10)"},
		"a ramp to less than nothing":           {"weir: 1\nload: {profile: [{ramp: 1000/s..-1/s, for: 5s}]}\n", nil, "f.yaml:2:25: load.profile[0].ramp: \"-1/s\": rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond)"},
		"a profile of pauses":                   {"weir: 1\nload: {profile: [{rate: 0/s, for: 5s}, {ramp: 0..0, for: 5s}]}\n", nil, "f.yaml:2:1: load: Phases: no message is ever due: one phase needs a rate above 0"},
		"half a ramp":                           {"weir: 1\nload: {profile: [{ramp: 1000/s.., for: 5s}]}\n", nil, "f.yaml:2:25: load.profile[0].ramp: \"\": " + rates},
		"a trace out of order":                  {"weir: 1\nload: {arrival: {trace: back.txt}}\n", nil, "f.yaml:2:25: load.arrival.trace: back.txt, line 2: 4ms is before the line above (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)"},
		"a trace of words":                      {"weir: 1\nload: {arrival: {trace: words.txt}}\n", nil, "f.yaml:2:25: load.arrival.trace: words.txt, line 1: \"soon\" is not an instant (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)"},
		"an empty trace":                        {"weir: 1\nload: {arrival: {trace: empty.txt}}\n", nil, "f.yaml:2:25: load.arrival.trace: holds no instant (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)"},
		"a misspelt payload":                    {"", flags("message.payload=zeroes"), "--message.payload: \"zeroes\" is not known, did you mean \"zeros\"? (random, zeros, {compressible: 0.5}, {file: FILE}, {dir: FOLDER})"},
		"a share in percent":                    {"weir: 1\nmessage: {payload: {compressible: 50%}}\n", nil, "f.yaml:2:35: message.payload.compressible: \"50%\" is not a number (a number from 0 to 1)"},
		"an incompressible share":               {"weir: 1\nmessage: {payload: {compressible: 50}}\n", nil, "f.yaml:2:35: message.payload.compressible: 50 is out of range (a number from 0 to 1)"},
		"two payloads":                          {"weir: 1\nmessage: {payload: {file: a, dir: b}}\n", nil, "f.yaml:2:11: message.payload: has 2 keys where one is chosen (random, zeros, {compressible: 0.5}, {file: FILE}, {dir: FOLDER})"},
		"flags that contradict one another":     {"weir: 1\n", flags("messages=5", "measure=5s"), "--messages: excludes measure: both set the length (give one of them)"},
		"a flag that contradicts the file":      {"weir: 1\nload: {arrival: poisson}\nload.rate: max\n", flags("load.profile=[{rate: 5/s, for: 1s}]", "load.rate=max"), "f.yaml:2:17: load.arrival: a closed loop (rate: max) sends when a slot is free, and has no arrivals (leave it out)\nf.yaml:3:1: load.rate: unknown key; keys stand in their sections (load: {rate: ...})\n--load.profile: a closed loop (rate: max) has no profile (leave it out)"},
		"a flag into a section that is none":    {"weir: 1\nload: fast\n", flags("load.rate=5/s"), "f.yaml:2:1: load: must be a mapping, is a single value (rate, arrival, profile, batch, in_flight, in_flight_until, when_full)"},
		"a flag that is no YAML":                {"", flags("load.arrival={gamma: {cv: 3}"), "--load.arrival: is not valid YAML: could not find flow mapping end token '}'"},
		"a flag that is not text":               {"", flags("name=a\xffb", "system.options.user=a\x01b"), "--name: holds what is not text (UTF-8 without control characters)\n--system.options.user: holds what is not text (UTF-8 without control characters)"},
		"a request with names":                  {"weir: 1\nmode: request\ntopology: {names: [a]}\nsystem: {start: none}\n", nil, "f.yaml:3:19: topology.names: mode request makes its own destinations, to know what is in them (leave it out)"},
		"a request to several":                  {"weir: 1\nmode: request\ntopology: {subscriptions: 2}\n", nil, "f.yaml:3:27: topology.subscriptions: is 2, but in mode request each request has one answer (1)"},
		"a request in batches":                  {"weir: 1\nsystem: {driver: near}\nmode: request\nload: {batch: 4}\n", nil, "f.yaml:4:15: load.batch: mode request sends each request by itself (1)"},
		"a request to nobody":                   {"weir: 1\nsystem: {driver: sink}\nmode: request\n", nil, "f.yaml:3:7: mode: driver sink has no consumer side (produce)"},
		"a backlog that nobody keeps":           {"weir: 1\nsystem: {driver: plain}\nmode: backlog\n", nil, "f.yaml:3:7: mode: backlog needs a driver that keeps messages for later consumers; plain does not (stream, produce)"},
		"a backlog with names":                  {"weir: 1\nmode: backlog\nsystem: {start: none}\ntopology: {names: [a]}\n", nil, "f.yaml:4:19: topology.names: mode backlog makes its own destinations, to know what is in them (leave it out)"},
		"work for nobody":                       {"weir: 1\nmode: produce\nconsume: {work: 2ms, prefetch: 3}\n", nil, "f.yaml:3:17: consume.work: mode produce receives nothing (leave it out)\nf.yaml:3:32: consume.prefetch: mode produce receives nothing (leave it out)"},
		"batches for what settles nothing":      {"weir: 1\nsystem: {driver: plain}\nconsume: {batch: 5}\n", nil, "f.yaml:3:18: consume.batch: driver plain acknowledges nothing (leave it out)"},
		"batches settled in another way":        {"weir: 1\nsystem: {driver: jetstream}\nconsume: {batch: 5, settle: each, prefetch: 6}\n", nil, "f.yaml:3:29: consume.settle: is each, but consume.batch settles by batch (leave it out)\nf.yaml:3:45: consume.prefetch: is 6, but consume.batch sets it to 5 (leave it out)"},
		"negative work":                         {"weir: 1\nconsume: {work: -2ms}\n", nil, "f.yaml:2:17: consume.work: -2ms is negative (a duration such as 250ms, 5s, 2m)"},
		"sending where nothing is sent":         {"weir: 1\nmode: consume\ntopology: {names: [a]}\nload: {rate: 5/s}\nmessage: {size: 64B}\nwarmup: 1s\n", nil, "f.yaml:4:14: load.rate: mode consume sends nothing, and ends after 5s without a delivery (leave it out)\nf.yaml:5:17: message.size: mode consume sends nothing, and ends after 5s without a delivery (leave it out)\nf.yaml:6:9: warmup: mode consume sends nothing, and ends after 5s without a delivery (leave it out)"},
		"an objective that is none":             {"weir: 1\nslo: [\"e2e.p99 <= 10ms\", \"e2e.p99 <= 10 parsecs\", lost]\n", nil, "f.yaml:2:26: slo[1]: \"10parsecs\" is not a duration (a duration such as 250µs, 10ms or 1s, up to 1h)\nf.yaml:2:51: slo[2]: \"lost\" has no comparison (<=, >=, <, > or == and a limit, such as e2e.p99 <= 10ms)"},
		"an objective that nothing measures":    {"weir: 1\nslo:\n- rtt.p99 <= 1ms\n- lost == 0\n- lost  ==  0\n", nil, "f.yaml:3:3: slo[0]: \"rtt.p99 <= 1ms\": only mode request measures rtt (send, e2e or settle)\nf.yaml:5:3: slo[2]: \"lost == 0\" is given twice (once)"},
		"an objective of those who do not run":  {"weir: 1\nmode: produce\nslo: [e2e.p99 <= 1ms, send.p99 <= 1ms]\n", nil, "f.yaml:3:7: slo[0]: \"e2e.p99 <= 1ms\": mode produce receives nothing (an objective about send)"},
		"a response without a schedule":         {"weir: 1\nload: {rate: max}\nslo: [send.p99 <= 1ms, send.service.p99 <= 1ms]\n", nil, "f.yaml:3:7: slo[0]: \"send.p99 <= 1ms\": a closed loop (rate: max) has no due instants to count a response from (send.service)"},
		"repeats beyond reason":                 {"", flags("repeat=101"), "--repeat: 101 is out of range (a whole number from 1 to 100)"},
		"what grows when it is written out":     {"weir: 1\nmode: produce\ntopology:\n  names: [" + tenThousand() + "]\n", nil, "f.yaml: written out with its defaults is longer than a scenario may be (64 KiB)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(inputs(t, tt.file, tt.flags...))
			got := ""
			if err != nil {
				got = err.Error()
			}
			golden.Equal(t, strings.Split(tt.want, "\n"), strings.Split(got, "\n"), "faults")
		})
	}
}

// tenThousand returns a list that is below the size limit of a file as written, and above it with a
// space after each comma.
func tenThousand() string {
	names := make([]string, 7_900)
	for i := range names {
		names[i] = strings.Repeat("n", 2) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
	}
	return strings.Join(names, ",") + ",'" + strings.Repeat("x", 10_000) + "'"
}

// TestYAMLBombIsRejected would not finish if a bomb were expanded.
func TestYAMLBombIsRejected(t *testing.T) {
	t.Parallel()
	_, err := Resolve(inputs(t, bomb()))
	if err == nil || !strings.Contains(err.Error(), "\nf.yaml:2:4: a: anchors and aliases are not allowed (write the value out)") {
		t.Errorf("%v", err)
	}
}

func TestFilesOfOtherEditorsWork(t *testing.T) {
	t.Parallel()
	const file = "weir: 1\nname: n\nload:\n  rate: 5/s\n  profile_is_not: here\n"
	plain := strings.ReplaceAll(file, "  profile_is_not: here\n", "")
	want, err := only(inputs(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"CRLF":              strings.ReplaceAll(plain, "\n", "\r\n"),
		"a BOM":             "\xef\xbb\xbf" + plain,
		"both":              "\xef\xbb\xbf" + strings.ReplaceAll(plain, "\n", "\r\n"),
		"no newline at end": strings.TrimSuffix(plain, "\n"),
		"a document marker": "---\n" + plain + "...\n",
		"a comment first":   "# hello\n\n" + plain,
	} {
		s, err := only(inputs(t, text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden.Equal(t, string(want.YAML()), string(s.YAML()), "%s", name)
	}
	_, err = only(inputs(t, "\xef\xbb\xbf"+strings.ReplaceAll(file, "\n", "\r\n")))
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:5:3: load.profile_is_not: unknown key") {
		t.Errorf("a fault behind a BOM and CRLF: %v", err)
	}
}

func TestARampMayGoDown(t *testing.T) {
	t.Parallel()
	if _, err := only(inputs(t, "", flags("load.profile=[{ramp: 9000/s..1000/s, for: 5s}]")...)); err != nil {
		t.Error(err)
	}
}
