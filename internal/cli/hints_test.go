package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// Before anything runs, with the flags that add replicas, only if they would help.
func TestFaultOnOnlyReplicaWarns(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--driver jetstream --fault kill_1_at_2s":                           "kill 1 at 2s: each message is on one node, and while that is away messages may be lost or stop: add --nodes 3 --replication 3\n",
		"--driver jetstream --nodes 3 --fault kill_leader_at_2s,_for_1s":    "kill leader at 2s for 1s: each message is on one node, and while that is away messages may be lost or stop: add --replication 3\n",
		"--driver kafka --nodes 3 --fault cut_1_at_2s":                      "cut 1 at 2s: each message is on one node, and while that is away messages may be lost or stop: add --replication 3\n",
		"--driver jetstream --nodes 3 --replication 3 --fault kill_1_at_2s": "",
		"--driver jetstream --nodes 3 --fault kill_all_at_2s":               "", // copies do not help
		"--driver jetstream --nodes 3 --fault disconnect_clients_at_2s":     "",
		"--driver nats --nodes 3 --fault kill_1_at_2s":                      "", // it keeps none
		"--driver jetstream": "",
	} {
		given := []string{"run", "--explain", "--start", "process"}
		for a := range strings.FieldsSeq(args) {
			given = append(given, strings.ReplaceAll(a, "_", " "))
		}
		code, stdout, stderr := do(t, World{Drivers: all.Definitions()}, given...)
		if code != int(OK) || stderr.String() != want || !strings.HasPrefix(stdout.String(), "weir: 1") {
			t.Errorf("%s: exit code %d, said %q; want %q", args, code, stderr, want)
		}
	}
}

// The commands suggested by a comparison of two single runs work as printed.
func TestSuggestedRepeatCommandForSingleRunsWorks(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	dir := t.TempDir()
	for _, out := range []string{"one", "other"} {
		if code, _, stderr := do(t, World{Dir: dir}, "run", "--driver", "chan", "--rate", "max", "--messages", "500", "--warmup", "0s", "--out", out); code != int(OK) && code != int(Invalid) {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	code, _, stderr := do(t, World{Dir: dir}, "compare", "one", "other")
	said := stderr.String()
	const loop = "  for i in 1 2 3 4 5 6; do weir run one/scenario.yaml --out turns/a$i; weir run other/scenario.yaml --out turns/b$i; done\n  weir compare 'turns/a*' 'turns/b*'\n"
	if code != int(Usage) || !strings.HasSuffix(said, loop) || strings.Contains(said, "--append") {
		t.Fatalf("exit code %d, said\n%swant at its end\n%s", code, said, loop)
	}
	if code, _, stderr := do(t, World{Dir: dir}, "run", "--driver", "chan", "--rate", "500/s", "--messages", "500", "--warmup", "0s", "--out", "open"); code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if _, _, stderr := do(t, World{Dir: dir}, "compare", "one", "open"); !strings.Contains(stderr.String(), "left out: INVALID") && (strings.Contains(stderr.String(), "for i in") || !strings.Contains(stderr.String(), "--allow-different")) { // a busy host
		t.Errorf("runs that no repeats make comparable: %s", stderr)
	}
	for _, i := range []string{"1", "2", "3", "4"} {
		for _, side := range [][2]string{{"one", "a"}, {"other", "b"}} {
			if code, _, stderr := do(t, World{Dir: dir}, "run", side[0]+"/scenario.yaml", "--out", "turns/"+side[1]+i); code != int(OK) && code != int(Invalid) {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
		}
	}
	if code, _, stderr := do(t, World{Dir: dir}, "compare", "turns/a*", "turns/b*"); code != int(OK) && !strings.Contains(stderr.String(), "INVALID") { // a busy host
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// For a matrix, and for sides that are folders; for other sides there is no command.
func TestCommandAddsMissingRunsToFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, errors.Join(
		makeSeries(filepath.Join(dir, "all invalid"), 6, made{seed: 1, invalid: 6}),
		makeSeries(filepath.Join(dir, "enough"), 6, made{seed: 2, hour: 1}),
		makeSeries(filepath.Join(dir, "few"), 3, made{seed: 3, hour: 2}),
	))
	const adds = "this adds runs, and compares again:\n"
	const generic = "weir run FILE --repeat N makes a series of runs, in a folder that is a side; weir run --append DIR --repeat N adds runs to it\n"
	for args, want := range map[string]string{
		"compare|enough|few":               adds + "  weir run --append few --repeat 1\n  weir compare enough few\n",
		"compare|few|enough|--alpha|0.001": adds + "  weir run --append few --repeat 4\n  weir run --append enough --repeat 1\n  weir compare few enough --alpha 0.001\n",
		"compare|all invalid|few": adds + "  weir run --append 'all invalid' --repeat 4\n  weir run --append few --repeat 1\n  weir compare 'all invalid' few\n" +
			"INVALID runs do not count: weir doctor shows what on this host disturbs a run\n",
		"compare|enough|few/01-made-r1,few/02-made-r2": generic,
		"history|few":   "this adds runs: weir run --append few --repeat 7\n",
		"history|few/*": "weir run FILE --repeat N makes runs of one name; weir run --append DIR --repeat N adds to them\n",
	} {
		code, _, stderr := do(t, World{Dir: dir}, strings.Split(args, "|")...)
		if code != int(Usage) || !strings.HasSuffix(stderr.String(), "\n"+want) {
			t.Errorf("%s: exit code %d, said\n%s\nwant at its end\n%s", args, code, stderr, want)
		}
	}
}

// One command for their folder, which works.
func TestCommandAddsRunsToMatrixSides(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	dir := t.TempDir()
	matrix := "weir: 1\nname: m\nsystem: {driver: chan}\nload: {rate: max}\nwarmup: 0s\nmessages: 500\nmatrix: {message.size: [64B, 128B, 256B]}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(matrix), 0o600))
	if code, _, stderr := do(t, World{Dir: dir}, "run", "m.yaml", "--out", "m"); code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	code, _, stderr := do(t, World{Dir: dir}, "compare", "m", "--by", "message.size", "--allow-different")
	want := regexp.MustCompile(`this adds runs, and compares again:\n  weir run --append m --repeat [34]\n  weir compare m --by message.size --allow-different\n`)
	if code != int(Usage) || !want.MatchString(stderr.String()) {
		t.Fatalf("exit code %d, said\n%s\nwant\n%s", code, stderr, want)
	}
	if code, _, stderr := do(t, World{Dir: dir}, "run", "--append", "m", "--repeat", "4"); code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := do(t, World{Dir: dir}, "compare", "m", "--by", "message.size", "--allow-different"); code != int(OK) && !strings.Contains(stderr.String(), "INVALID") { // a busy host
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestAReportIsJSONToo, of one run and of several, and other words for a format lead to it.
func TestAReportIsJSONToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, stderr := do(t, World{Dir: dir}, "run", "--driver", "noop", "--rate", "max", "--messages", "500", "--warmup", "0s", "--repeat", "2", "--out", "r"); code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	first, err := filepath.Glob(filepath.Join(dir, "r", "01-*"))
	if err != nil || len(first) != 1 {
		t.Fatal(err, first)
	}
	for args, want := range map[string]int{"r --json": 2, "r --format json": 2, first[0] + " --format JSON": 1, "r -o r.json": 2} {
		code, stdout, stderr := do(t, World{Dir: dir}, append([]string{"report"}, strings.Fields(args)...)...)
		text := stdout.String()
		if strings.Contains(args, "-o") {
			b := must.Get(os.ReadFile(filepath.Join(dir, "r.json")))(t)
			text = string(b)
		}
		objects := 0
		for d := json.NewDecoder(strings.NewReader(text)); d.More(); objects++ {
			var v map[string]any
			if err := d.Decode(&v); err != nil || v["schema"] != "weir.result/v1" {
				t.Fatalf("%s: %v, schema %v", args, err, v["schema"])
			}
		}
		if code != int(OK) || objects != want {
			t.Errorf("%s: exit code %d, %d objects; want %d\n%s", args, code, objects, want, stderr)
		}
	}
	for args, want := range map[string]string{
		"report r --format prometheus":  `--format: "prometheus" is not known, did you mean openmetrics? (`,
		"report r --format xml":         "did you mean junit?",
		"report r --format jsno":        "did you mean json?",
		"report r --prometheus":         "unknown flag --prometheus, did you mean --format openmetrics?",
		"report r --csv":                "unknown flag --csv, did you mean --format csv?",
		"report r --json --html":        "--html and --json: a report has one format (one of them)",
		"report r --json --format text": "--json: contradicts --format text (use one of them)",
		"compare r r --format json":     "unknown flag --format, did you mean --json, --markdown or --html?",
		"history r --output html":       "unknown flag --output, did you mean --json, --markdown or --html?",
		"run --driver noop --html":      "unknown flag --html, did you mean --json, or weir report DIR --format FORMAT after the run?",
	} {
		code, _, stderr := do(t, World{Dir: dir}, strings.Fields(args)...)
		if code != int(Usage) || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, said %q; want %q", args, code, stderr, want)
		}
	}
}

// An unknown flag is answered with the equivalent of the tool that has it.
func TestFlagsOfOtherToolsSuggestEquivalents(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run --iterations 100":        "unknown flag --iterations, did you mean --messages or --repeat?",
		"run --ramp-up 10s":           "unknown flag --ramp-up: a load that rises is load.profile of a scenario file (--warmup leaves out the first seconds)",
		"run -t2 -c100 -d30s -R2000":  "unknown flag -t, did you mean --measure or --producers?\nweir: unknown flag -c, did you mean --producers or --consumers?\nweir: unknown flag -d, did you mean --measure?\nweir: unknown flag -R, did you mean --rate?\n",
		"capacity --step 10":          "unknown flag --step, did you mean --precision?",
		"capacity --max-rate 100k":    "unknown flag --max-rate, did you mean --most?",
		"capacity --explain":          "unknown flag --explain: weir run --explain shows the scenario that a search starts from",
		"run --baseline k1":           "unknown flag --baseline: weir compare BASE DIR --fail-on regression compares runs",
		"run --max-regression 5%":     "unknown flag --max-regression: weir compare BASE DIR --fail-on regression compares runs",
		"compare a b --threshold 5%":  "unknown flag --threshold, did you mean --band?",
		"history a --figure e2e.p99":  "unknown flag --figure: a history looks at all figures (--least leaves out small changes, and weir compare has --figure)",
		"compare a b --strict":        "--strict: makes --fail-on stricter (add --fail-on regression)",
		"run --driver foo":            `--driver: unknown driver "foo" (activemq, `,
		"run --driver nats,jetstream": "): a file with matrix: {system.driver: [nats, jetstream]} makes a run of each",
		"run --rate 100,500":          `--rate: "100,500": this may be one number or a list: write 100500/s for the number: a file with matrix: {load.rate: [100, 500]} makes a run of each`,
		"run --producers 10,100":      "--producers: 10,100 may be one number or a list: write 10100 for the number",
		"run --slo avg<200ms":         `"avg" is not a figure of a run, did you mean "e2e.mean", "send.mean" or "rtt.mean"?`,
		"run --fault kill_1_at_3s":    "--fault: needs servers that a recipe starts, and system.start is embedded (--start process)",
	} {
		given := strings.Fields(args)
		for i, a := range given {
			given[i] = strings.ReplaceAll(a, "_", " ")
		}
		code, _, stderr := do(t, World{Drivers: all.Definitions()}, given...)
		if code != int(Usage) || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, said %q; want %q", args, code, stderr, want)
		}
	}
}
