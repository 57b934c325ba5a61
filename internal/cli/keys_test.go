package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// TestEveryKeyIsDocumentedEverywhere looks for each row of the table of keys in the schema,
// the help, the completion, the page of the format and what --explain prints. A
// key that is added needs nothing here.
func TestEveryKeyIsDocumentedEverywhere(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../docs/formats/scenario.md"))(t)
	b := must.Get(os.ReadFile("../../docs/formats/scenario.schema.json"))(t)
	var schema map[string]any
	must.Do(t, json.Unmarshal(b, &schema))
	_, help, _ := do(t, World{}, "run", "--help=all")
	flags := completed(t, World{}, "run", "--")
	explained := explainedKeys(t)
	for _, k := range scenario.Keys() {
		if !strings.Contains(string(page), "| `"+k.Path+"` |") {
			t.Errorf("%s is not on the page", k.Path)
		}
		if !described(schema, strings.Split(k.Path, ".")) {
			t.Errorf("%s is not in the schema, or has no description there", k.Path)
		}
		runs := k.Path == "scenarios" || k.Path == "matrix" // they make several runs, and what is explained is one
		if !runs && !slices.ContainsFunc(explained, func(p string) bool { return p == k.Path || strings.HasPrefix(p, k.Path+".") }) {
			t.Errorf("%s: --explain shows it for no value", k.Path)
		}
		if k.FileOnly {
			continue
		}
		flag := "--" + k.Path
		if k.Short != "" {
			flag = "--" + k.Short
		}
		if !strings.Contains(help.String(), flag+"=VALUE") {
			t.Errorf("%s: help does not show %s", k.Path, flag)
		}
		if !slices.Contains(flags, flag+"=") {
			t.Errorf("%s: %s is not completed", k.Path, flag)
		}
	}
}

// described reports whether a schema describes the property at path; that of a
// matrix refers to where it is.
func described(schema map[string]any, path []string) bool {
	properties, _ := schema["properties"].(map[string]any)
	p, _ := properties[path[0]].(map[string]any)
	if len(path) > 1 {
		return described(p, path[1:])
	}
	return p["description"] != nil || p["$ref"] != nil
}

// explainedKeys returns the paths that Explain writes, of runs with each key in
// turn and a value that it takes.
func explainedKeys(t *testing.T) []string {
	registry := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	sent := t.TempDir() // the folder of a run that another can receive from
	b := must.Get(result.Marshal(&result.Result{
		Run: result.Run{Mode: result.ModeProduce, Number: 1}, System: result.System{Driver: "jetstream"},
		MessagesAll: result.Messages{Sent: 1, Confirmed: 1}, Streams: []result.Stream{{Destination: "a", Sent: 1}},
	}))(t)
	must.Do(t, os.WriteFile(filepath.Join(sent, result.FileResult), b, 0o600))
	// One value of each kind, and runs that have a use for any key.
	values := []string{"1", "2.14.2", "5s", "1KiB", "7/s", "1%", "yes", "x", "[x]", "lost == 0", "[{rate: 7/s, for: 5s}]", "kill 1 at 1s", "1Mbit", "{latency: 20ms}", "both at 1s for 1s", "at 1s for 1s", "{consumers: [1, 2]}"}
	bases := [][]scenario.Override{
		nil,
		{{Flag: "-", Path: "slo", Value: "send.p99 <= 1s"}},
		{{Flag: "-", Path: "fleet.agents", Value: "1"}},
		{{Flag: "-", Path: "mode", Value: "consume"}, {Flag: "-", Path: "topology.names", Value: "a"}, {Flag: "-", Path: "system.start", Value: "none"}},
		{{Flag: "-", Path: "mode", Value: "consume"}, {Flag: "-", Path: "system.start", Value: "none"}, {Flag: "-", Path: "consume.of", Value: sent}},
		{{Flag: "-", Path: "system.start", Value: "process"}},
		{{Flag: "-", Path: "system.driver", Value: "rabbitmq"}, {Flag: "-", Path: "system.options.queue", Value: "quorum"}, {Flag: "-", Path: "system.start", Value: "process"}, {Flag: "-", Path: "consume.fail", Value: "10%"}},
		{{Flag: "-", Path: "system.start", Value: "process"}, {Flag: "-", Path: "network.latency", Value: "10ms"}},
	}
	var found []string
	shows := func(k scenario.Key, base []scenario.Override, value string) bool {
		with := append(slices.Clone(base), scenario.Override{Flag: "--" + k.Path, Path: k.Path, Value: value})
		if value == "" {
			with = base
		}
		runs, err := scenario.Resolve(scenario.Inputs{Overrides: with, Drivers: registry, Dir: "/", Env: os.LookupEnv, ReadFile: os.ReadFile, Stat: os.Stat, ReadDir: os.ReadDir})
		if err != nil {
			return false
		}
		section, before := "", len(found)
		for line := range strings.Lines(string(runs[0].Explain())) {
			key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			if !strings.HasPrefix(line, " ") {
				section = key
			} else {
				key = section + "." + key
			}
			if key == k.Path {
				found = append(found, key)
			}
		}
		return len(found) > before
	}
	for _, k := range scenario.Keys() {
		for _, value := range slices.Concat([]string{""}, k.Words, values) {
			if slices.ContainsFunc(bases, func(base []scenario.Override) bool { return shows(k, base, value) }) {
				break
			}
		}
	}
	return found
}
