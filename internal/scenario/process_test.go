package scenario

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// withRecipe is a driver's recipe with a setting that the driver's Config has too, and one that it
// does not have.
const withRecipe = `recipe: 1
name: server
title: A Server
version: "1"
nodes: [1, 3]
install: {pypi: {package: p, version: "1", programs: {p: p}}}
settings:
  sync: {default: "false", allowed: ["false", "true"], help: "h"}
  kept: {default: 2m, help: "h"}
processes: [{name: n, ports: {client: 1}, start: ['{{program "p"}}', '{{set "sync"}}', '{{set "kept"}}']}]
connect: {address: '{{.At "client"}}', options: {served: {user: u, nothing: x}}}
---
recipe: 1
name: other
title: Another Server
version: "1"
nodes: [1, 5]
install: {pypi: {package: p, version: "1", programs: {p: p}}}
processes: [{name: n, ports: {client: 1}, start: ['{{program "p"}}']}]
connect: {address: '{{.At "client"}}'}
---
recipe: 1
name: boxed
title: A Server in a Container
version: "1"
nodes: [1]
processes: [{name: n, docker: {image: "i:1"}}]
connect: {address: a}
`

// served returns inputs whose only drivers are one with a recipe and one without.
func served(t *testing.T, file string, overrides ...Override) Inputs {
	in := inputs(t, file, overrides...)
	can := driver.Capabilities{Consume: true, Replicas: true}
	r := must.Get(driver.NewRegistry(
		driver.Definition{Name: "served", New: newFake, Capabilities: can, Page: driver.Page{Recipe: []byte(withRecipe)}},
		driver.Definition{Name: "plain", New: newFake, Capabilities: can},
	))(t)
	in.Drivers = r
	return in
}

func TestServersOfARecipe(t *testing.T) {
	in := served(t, "weir: 1\nsystem: {driver: served, start: process, nodes: 3, options: {server: {sync: yes}, server.kept: 5s, storage: memory}}\ntopology: {replication: 3}\n")
	all := must.Get(Resolve(in))(t)
	s := all[0]
	if s.System.Start != StartProcess || s.System.Nodes != 3 || s.System.Recipe.Name != "server" {
		t.Errorf("start %v, %d nodes, recipe %v", s.System.Start, s.System.Nodes, s.System.Recipe)
	}
	golden.Equal(t, map[string]string{"sync": "true", "kept": "5s"}, s.System.ForRecipe, "settings")
	before := s.YAML()
	must.Do(t, s.Connect([]string{"h:1"}, map[string][]string{"user": {"u"}, "nothing": {"x"}, "storage": {"file"}}))
	c := s.System.Config.(*fake)
	if c.Address[0] != "h:1" || c.User != "u" || c.Storage != "memory" {
		t.Errorf("connected with %+v", c)
	}
	if diff := cmp.Diff(string(before), string(s.YAML())); diff != "" {
		t.Errorf("the scenario is another once it is connected (-before +after):\n%s", diff)
	}
	again, err := Resolve(served(t, string(before)))
	if err != nil {
		t.Fatalf("its own file is refused: %v\n%s", err, before)
	}
	if !bytes.Equal(before, again[0].YAML()) {
		t.Errorf("its own file gives another run:\n%s\n%s", before, again[0].YAML())
	}
	for _, want := range []string{"start: process", "recipe: server", "nodes: 3", "server.kept: 5s", "server.sync: true"} {
		if !strings.Contains(string(before), want) {
			t.Errorf("%q is not in\n%s", want, before)
		}
	}
	if strings.Contains(string(before), "address") {
		t.Errorf("an address is in\n%s", before)
	}
}

// TestOptionsFromRecipe: what the run will tell the driver is explained, but is not part of the
// scenario, since it follows from the server's settings.
func TestOptionsFromRecipe(t *testing.T) {
	all := must.Get(Resolve(served(t, "weir: 1\nsystem: {driver: served, start: process}\n")))(t)
	if got := string(all[0].Explain()); !strings.Contains(got, "user: u") || !strings.Contains(got, "# recipe server\n") {
		t.Errorf("the option user is not explained:\n%s", got)
	}
	if got := string(all[0].YAML()); strings.Contains(got, "user:") {
		t.Errorf("the option user is in the scenario:\n%s", got)
	}
	all = must.Get(Resolve(served(t, "weir: 1\nsystem: {driver: served, start: process, options: {user: mine}}\n")))(t)
	if got := string(all[0].Explain()); !strings.Contains(got, "user: mine") {
		t.Errorf("the option given is lost:\n%s", got)
	}
}

// spread supports partitions with an option that one of its recipes sets.
type spread struct {
	fake
	Wide bool `option:"wide" help:"Over many servers."`
}

func (s *spread) Narrow(to driver.Capabilities) driver.Capabilities {
	to.Partitions = to.Partitions && s.Wide
	return to
}

// TestCapabilitiesWithRecipe: the recipe for that number of nodes is considered first; if a capability
// is missing, the message names a number of nodes that has it.
func TestCapabilitiesWithRecipe(t *testing.T) {
	const recipe = `recipe: 1
name: NAME
title: T
version: "1"
nodes: [NODES]
install: {pypi: {package: p, version: "1", programs: {p: p}}}
processes: [{name: n, ports: {client: 1}, start: ['{{program "p"}}']}]
connect: {address: '{{.At "client"}}'OPTIONS}
`
	both := strings.NewReplacer("NAME", "one", "NODES", "1, 3", "OPTIONS", "").Replace(recipe) + "---\n" +
		strings.NewReplacer("NAME", "many", "NODES", "3, 6", "OPTIONS", `, options: {spread: {wide: "true"}}`).Replace(recipe)
	for _, c := range []struct{ system, want string }{
		{"{driver: spread, start: process, nodes: 6}", ""},
		{"{driver: spread, start: process, nodes: 3, recipe: many}", ""},
		{"{driver: spread, start: process, nodes: 3}", "topology.partitions: driver spread has no partitions (1, or more with --nodes 6)"},
		{"{driver: spread, start: process, nodes: 3, recipe: one}", "topology.partitions: driver spread has no partitions (1, or more with --option wide=yes)"},
	} {
		in := inputs(t, "weir: 1\nsystem: "+c.system+"\ntopology: {partitions: 2}\n")
		r := must.Get(driver.NewRegistry(driver.Definition{
			Name: "spread", New: func() driver.Config { return &spread{} }, Page: driver.Page{Recipe: []byte(both)},
			Capabilities: driver.Capabilities{Consume: true, Partitions: true},
		}))(t)
		in.Drivers = r
		if _, err := Resolve(in); err == nil != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.system, err, c.want)
		}
	}
}

func TestNodeCountSelectsRecipe(t *testing.T) {
	for _, c := range []struct{ system, want string }{
		{"{driver: served, start: process}", "server"},
		{"{driver: served, start: process, nodes: 3}", "server"},
		{"{driver: served, start: process, nodes: 5}", "other"},
		{"{driver: served, start: process, nodes: 1, recipe: other}", "other"},
	} {
		all, err := Resolve(served(t, "weir: 1\nsystem: "+c.system+"\n"))
		if err != nil {
			t.Errorf("%s: %v", c.system, err)
		} else if got := all[0].System.Recipe.Name; got != c.want {
			t.Errorf("%s: recipe %s; want %s", c.system, got, c.want)
		}
	}
}

func TestFaultsOfServersOfARecipe(t *testing.T) {
	for _, c := range []struct{ name, system, want string }{
		{"a driver without a recipe", "{driver: plain, start: process}", "f.yaml:2:32: system.start: weir has no recipe for servers of plain (give the address of a running one)"},
		{"a recipe that the driver has not", "{driver: served, start: process, recipe: third}", `f.yaml:2:50: system.recipe: served has no recipe "third" (server, other, boxed)`},
		{"a recipe of nothing", "{driver: served, recipe: server}", "f.yaml:2:34: system.recipe: is for start: process, and here weir starts no server by a recipe (leave it out)"},
		{"a number of nodes that makes no system", "{driver: served, start: process, nodes: 2}", "f.yaml:2:49: system.nodes: server cannot form a system of 2 node(s) (1, 3)"},
		{"an address", "{driver: served, start: process, options: {address: h:1}}", "f.yaml:2:33: system.start: process and an address exclude one another (one of them)"},
		{"a value that the recipe does not take", "{driver: served, start: process, options: {server.sync: maybe}}", `f.yaml:2:65: system.options.server.sync: "maybe" is neither true nor false`},
		{"a setting that cannot be written into a file", `{driver: served, start: process, options: {server.kept: 'a"b'}}`, "f.yaml:2:65: system.options.server.kept: setting kept of server: does not fit (a plain text of one line without quotes, $, braces and backslashes)"},
		{"a setting that the recipe has not", "{driver: served, start: process, options: {server.cept: 1s}}", `f.yaml:2:65: system.options.server.cept: server has no setting "cept", did you mean "kept"? (kept, sync)`},
		{"a list", "{driver: served, start: process, options: {server.kept: [a, b]}}", "f.yaml:2:65: system.options.server.kept: is a list (one text)"},
		{"a setting of nothing that is started", "{driver: served, options: {server.kept: 1s}}", `f.yaml:2:49: system.options.server.kept: unknown option`},
		{"containers", "{driver: served, start: docker}", "f.yaml:2:33: system.start: weir starts no containers: weir broker up served --via docker writes a compose file, and --address says where it runs (none, embedded, process)"},
		{"a recipe of containers only", "{driver: served, start: process, recipe: boxed}", "f.yaml:2:50: system.recipe: no package installs boxed, and weir starts no containers: weir broker up boxed --via docker writes a compose file, and --address says where it runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Resolve(served(t, "weir: 1\nsystem: "+c.system+"\n"))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// TestExplicitVersionIsLocated: even if it is the recipe's own.
func TestExplicitVersionIsLocated(t *testing.T) {
	for file, want := range map[string]string{
		"weir: 1\nsystem: {driver: served, start: process}\nmatrix: {system.version: ['1']}\n": "(matrix)\n",
		"weir: 1\nsystem: {driver: served, start: process, version: '1'}\n":                    "f.yaml:2:51\n",
		"weir: 1\nsystem: {driver: served, start: process}\n":                                  "",
	} {
		all := must.Get(Resolve(served(t, file)))(t)
		_, rest, found := strings.Cut(string(all[0].Explain()), "\n  version: 1 ")
		if line, _, _ := strings.Cut(rest, "nodes:"); found != (want != "") || !strings.HasSuffix(strings.TrimRight(line, " "), want) {
			t.Errorf("%s: the line of the version ends with %q, want %q", file, line, want)
		}
	}
}
