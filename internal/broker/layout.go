package broker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Names in a process's folder.
const (
	outputFile = "output.log" // the process's output
	dataFolder = "data"
)

// loopback is the default listen address.
const loopback = "127.0.0.1"

// containerFolder is where a container finds its files.
const containerFolder = "/weir"

// A plan is a recipe with every choice made.
type plan struct {
	recipe    *Recipe
	nodes     int
	settings  map[string]string // every setting
	ports     []map[string]int  // port numbers by name, for each node
	container bool
	bind      string        // address to listen and be reached at; "": loopback
	disks     bool          // each process has its own disk for its data
	slow      bool          // each process has its data on a slowable file system
	linger    time.Duration // how long the system may still be restarted after its last server has ended
	groups    string        // path of the control group that contains one for each node; "": none
	places    []Place       // of the nodes, if each has its own
	root      string        // the system's folder
	install   string        // folder of the programs
	programs  map[string]string
}

// A layout lists what to write and to run.
type layout struct {
	units   []unit
	address []string
	options map[string]map[string][]string // further options by driver name
}

// A unit is one process on one node.
type unit struct {
	name   string // "server-2"
	part   *Part
	node   int // from 1
	dir    string
	files  map[string]string
	env    []string
	before []Command
	start  []string
	after  []Command
	logs   []string
	memory int64 // required memory in bytes; 0: unknown

	entrypoint, command []string // for a container
}

// A peer is a node as templates see it.
type peer struct {
	Node int            // from 1
	Port map[string]int // ports of all its processes

	plan    *plan
	outside bool // as seen by a client, not by the other processes
}

// Host returns the host of the process that has the port.
func (p peer) Host(port string) (string, error) {
	if _, ok := p.Port[port]; !ok {
		return "", fmt.Errorf("node %d has no port %q", p.Node, port)
	}
	if p.outside || !p.plan.container {
		return p.plan.reach(p.Node), nil
	}
	for i := range p.plan.recipe.Processes {
		part := &p.plan.recipe.Processes[i]
		if _, ok := part.Ports[port]; ok && slices.Contains(part.where(p.plan.nodes, p.plan.apart()), p.Node) {
			return unitName(part, p.Node), nil
		}
	}
	return "", fmt.Errorf("node %d has no port %q", p.Node, port)
}

// reach returns the address at which clients reach a node: a container's ports are published on
// loopback.
func (p *plan) reach(node int) string {
	if p.container {
		return loopback
	}
	if node <= len(p.places) {
		return p.places[node-1].Address
	}
	return cmp.Or(p.bind, loopback)
}

// at returns host:port of each port of a part on a node, as clients reach it.
func (p *plan) at(part *Part, node int) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(part.Ports)) {
		all = append(all, net.JoinHostPort(p.reach(node), strconv.Itoa(p.ports[node-1][name])))
	}
	return all
}

// apart reports whether each node has an address of its own.
func (p *plan) apart() bool { return len(p.places) > 0 }

// space returns the path of a node's network namespace; "": that of the supervisor.
func (p *plan) space(node int) string {
	if node <= len(p.places) {
		return p.places[node-1].Space
	}
	return ""
}

// At returns host:port of a port.
func (p peer) At(port string) (string, error) {
	host, err := p.Host(port)
	return fmt.Sprintf("%s:%d", host, p.Port[port]), err
}

// group returns the node whose control group a process starts in; 0 is the group for what all nodes
// share.
func (p *plan) group(u *unit) int {
	if u.part.On == onAddress && !p.apart() {
		return 0
	}
	return u.node
}

// unitName returns the name of a process, and of its container.
func unitName(part *Part, node int) string { return fmt.Sprintf("%s-%d", part.Name, node) }

// A scope is the data passed to a template (its dot).
type scope struct {
	peer
	Name    string // of the recipe
	Version string
	Bind    string // listen address
	Reach   string // address at which clients reach it
	Apart   bool   // each node has an address of its own
	Dir     string // of the process, with its files
	Data    string // data folder, which exists and is empty
	Root    string // of the system
	Install string
	Nodes   []peer // all nodes, including this one
	Others  []peer // all nodes but this one
	First   peer
	Process string // "server-2"
}

// A templateError names the template that failed.
type templateError struct {
	at  []any
	err error
}

func (e *templateError) Error() string { return pathText(e.at) + ": " + e.err.Error() }

func (e *templateError) Unwrap() error { return e.err }

// defaults returns every setting with its default.
func (r *Recipe) defaults() map[string]string {
	out := map[string]string{}
	for name, s := range r.Settings {
		out[name] = s.Default
	}
	return out
}

// where returns the nodes that a part runs on. apart means that each node has its own address.
func (p *Part) where(nodes int, apart bool) []int {
	var out []int
	for n := 1; n <= nodes; n++ {
		first := p.On == onFirst || p.On == onAddress && !apart
		if p.On == "" || p.On == onAll || first && n == 1 || p.On == onOthers && n > 1 || p.On == onAddress && apart {
			out = append(out, n)
		}
	}
	return out
}

// portStep separates the numbers of one port on two nodes when the vendor's own numbers are used.
const portStep = 100

// numbered gives every port the vendor's own number, shifted by node.
func (p *plan) numbered() {
	p.ports = make([]map[string]int, p.nodes)
	for i := range p.ports {
		p.ports[i] = map[string]int{}
	}
	for i := range p.recipe.Processes {
		part := &p.recipe.Processes[i]
		for _, n := range part.where(p.nodes, p.apart()) {
			for name, number := range part.Ports {
				p.ports[n-1][name] = number + portStep*(n-1)
			}
		}
	}
}

func (p *plan) peer(node int) peer { return peer{Node: node, Port: p.ports[node-1], plan: p} }

// layout renders every template. All its errors are *templateError.
func (p *plan) layout() (*layout, error) {
	l := &layout{options: map[string]map[string][]string{}}
	for i := range p.recipe.Processes {
		part := &p.recipe.Processes[i]
		if p.container && part.Docker == nil {
			continue
		}
		for _, node := range part.where(p.nodes, p.apart()) {
			u, err := p.unit(part, i, node)
			if err != nil {
				return nil, err
			}
			l.units = append(l.units, *u)
		}
	}
	last := p.nodes
	if p.recipe.Connect.Nodes == onFirst {
		last = 1
	}
	for node := 1; node <= last; node++ {
		s := p.scope(node, "", "")
		s.outside, s.First.outside = true, true
		a, err := p.render(s, p.recipe.Connect.Address, "connect", "address")
		if err != nil {
			return nil, err
		}
		l.address = append(l.address, a)
		for driver, options := range p.recipe.Connect.Options {
			for name, text := range options {
				v, err := p.render(s, text, "connect", "options", driver, name)
				if err != nil {
					return nil, err
				}
				if l.options[driver] == nil {
					l.options[driver] = map[string][]string{}
				}
				if v != "" && !slices.Contains(l.options[driver][name], v) {
					l.options[driver][name] = append(l.options[driver][name], v)
				}
			}
		}
	}
	return l, nil
}

// Known returns the options that the recipe gives a driver for the given number of nodes and settings,
// except those that contain a port: ports are chosen when the system starts.
func (r *Recipe) Known(driver string, nodes int, settings map[string]string) map[string][]string {
	p := &plan{recipe: r, nodes: nodes, settings: r.defaults(), ports: make([]map[string]int, nodes)}
	maps.Copy(p.settings, settings)
	out := map[string][]string{}
	for name, text := range r.Connect.Options[driver] {
		v, err := p.render(p.scope(1, "", ""), text)
		if err == nil && v != "" {
			out[name] = []string{v}
		}
	}
	return out
}

// scope returns the template data for a process, or for no process in particular.
func (p *plan) scope(node int, process, dir string) *scope {
	s := &scope{
		peer: p.peer(node), Name: p.recipe.Name, Version: p.recipe.Version, Bind: p.reach(node), Reach: p.reach(node), Apart: p.apart(),
		Dir: dir, Data: path.Join(dir, dataFolder), Root: p.root, Install: p.install, First: p.peer(1), Process: process,
	}
	if p.container {
		s.Bind = "0.0.0.0"
	}
	for n := 1; n <= p.nodes; n++ {
		s.Nodes = append(s.Nodes, p.peer(n))
		if n != node {
			s.Others = append(s.Others, p.peer(n))
		}
	}
	return s
}

// unit renders one process.
func (p *plan) unit(part *Part, i, node int) (*unit, error) {
	u := &unit{name: unitName(part, node), part: part, node: node, files: map[string]string{}}
	u.dir = path.Join(p.root, u.name)
	if p.container {
		u.dir = containerFolder
	}
	s := p.scope(node, u.name, u.dir)
	if p.container {
		s.Data = cmp.Or(part.Docker.Data, path.Join(containerFolder, dataFolder))
	}
	var errs []error
	one := func(text string, at ...any) string {
		out, err := p.render(s, text, append([]any{"processes", i}, at...)...)
		if err != nil {
			errs = append(errs, err)
		}
		return out
	}
	list := func(texts []string, at ...any) []string {
		var out []string
		for j, t := range texts {
			out = append(out, one(t, append(slices.Clone(at), j)...))
		}
		return out
	}
	variables := func(env map[string]string, at ...any) []string {
		var out []string
		for _, k := range slices.Sorted(maps.Keys(env)) {
			out = append(out, k+"="+one(env[k], append(slices.Clone(at), k)...))
		}
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(part.Files)) {
		u.files[name] = one(part.Files[name], "files", name)
	}
	if p.container {
		u.entrypoint = list(part.Docker.Entrypoint, "docker", "entrypoint")
		u.command = list(part.Docker.Command, "docker", "command")
		u.env = variables(part.Docker.Env, "docker", "env")
	} else {
		u.env = variables(part.Env, "env")
		commands := func(cs []Command, at string) []Command {
			var out []Command
			for j, c := range cs {
				out = append(out, Command{Run: list(c.Run, at, j, "run"), Retry: c.Retry})
			}
			return out
		}
		u.before, u.after = commands(part.Before, "before"), commands(part.After, "after")
		u.start = list(part.Start, "start")
		u.logs = append([]string{path.Join(u.dir, outputFile)}, list(part.Logs, "logs")...)
		var err error
		if u.memory, err = sizes(one(part.Memory, "memory")); err != nil {
			errs = append(errs, &templateError{[]any{"processes", i, "memory"}, err})
		}
	}
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return u, nil
}

// maxRendered limits the size of a rendered template.
const maxRendered = 256 << 10

// render renders one template.
func (p *plan) render(s *scope, text string, at ...any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("template").Option("missingkey=error").Funcs(template.FuncMap{
		"program": p.program,
		"set":     p.set,
		"add":     func(a, b int) int { return a + b },
	}).Parse(text)
	if err != nil {
		return "", &templateError{at, errors.New(strings.TrimPrefix(err.Error(), "template: template:"))}
	}
	b := &bounded{most: maxRendered}
	if err := t.Execute(b, s); err != nil {
		return "", &templateError{at, errors.New(strings.TrimPrefix(err.Error(), "template: template:"))}
	}
	return b.String(), nil
}

// bounded is a text of limited size.
type bounded struct {
	strings.Builder
	most int
}

func (b *bounded) Write(x []byte) (int, error) {
	if b.Len()+len(x) > b.most {
		return 0, errors.New("is too long")
	}
	return b.Builder.Write(x)
}

// set is the template function that returns a setting.
func (p *plan) set(name string) (string, error) {
	v, ok := p.settings[name]
	if !ok {
		return "", fmt.Errorf("no setting %q", name)
	}
	return v, nil
}

// program is the template function that returns a program's path. Before the install it returns where
// the program will be.
func (p *plan) program(name string) (string, error) {
	if found, ok := p.programs[name]; ok {
		return found, nil
	}
	if slices.Contains(p.recipe.programs(), name) {
		return path.Join(p.install, "bin", name), nil
	}
	return "", fmt.Errorf("no program %q", name)
}

// programs returns the names of the required programs, sorted.
func (r *Recipe) programs() []string {
	var out []string
	if in := r.Install; in != nil {
		for _, m := range in.all() {
			out = slices.AppendSeq(out, maps.Keys(m))
		}
	}
	for _, n := range r.Needs {
		out = append(out, n.Program)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// all returns the programs of each source that is present.
func (in *Install) all() []map[string]string {
	var out []map[string]string
	if in.Go != nil {
		out = append(out, in.Go.Programs)
	}
	if in.Maven != nil {
		out = append(out, in.Maven.Programs)
	}
	if in.Apt != nil {
		out = append(out, in.Apt.Programs)
	}
	if in.PyPI != nil {
		out = append(out, in.PyPI.Programs)
	}
	return out
}
