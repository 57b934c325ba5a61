package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// maxFaults is the largest number of faults in a scenario.
const maxFaults = 100

// faults is a text or mapping, or a list of them.
var faults = kind[Scenario]{
	schema: func() object {
		beside := append(slices.Sorted(maps.Keys(fault.Words())), "by")
		beside = append(beside, fault.Times("")...)
		pattern := `^ *(` + strings.Join(fault.Verbs(), "|") + `) +[^ ]+( +(` + strings.Join(beside, "|") + `) +[^ ]+)+ *$`
		forms := []any{object{"type": "string", "pattern": pattern}}
		target := either(object{"type": "string"}, wholeNumber(1, 9))
		for _, verb := range fault.Verbs() {
			m := mapped(verb, target, "at", duration())
			p := m["properties"].(object)
			for word, verbs := range fault.Words() {
				if slices.Contains(verbs, fault.Verb(verb)) {
					p[word] = target
				}
			}
			for _, name := range fault.Times(fault.Verb(verb)) {
				p[name] = duration()
			}
			if fault.Verb(verb) == fault.Clock {
				p["by"] = texts(signedPattern)
			}
			forms = append(forms, m)
		}
		one := either(forms...)
		return either(one, object{"type": "array", "maxItems": maxFaults, "items": one})
	}(),
	read: func(d *decoder, n *tree.Node, path string, s *Scenario) bool {
		if n.Shape != tree.List {
			f, ok := d.faultOf(n, path)
			if ok {
				s.Faults = []fault.Fault{f}
			}
			return ok
		}
		if len(n.Items) > maxFaults {
			d.fault(n.At, path, "holds %d faults (up to %d)", len(n.Items), maxFaults)
			return false
		}
		s.Faults = nil
		for i, item := range n.Items {
			if f, ok := d.faultOf(item, fmt.Sprintf("%s[%d]", path, i)); ok {
				s.Faults = append(s.Faults, f)
			}
		}
		return true
	},
	text: func(s *Scenario) string {
		text := "["
		for i, f := range s.Faults {
			if i > 0 {
				text += ", "
			}
			text += strconv.Quote(f.Text())
		}
		return text + "]"
	},
	zero: func(s *Scenario) bool { return len(s.Faults) == 0 },
}

// faultOf reads one fault.
func (d *decoder) faultOf(n *tree.Node, path string) (f fault.Fault, ok bool) {
	if n.Shape != tree.Mapping {
		text, ok := d.textOf(n, path, fault.Form)
		if !ok {
			return f, false
		}
		f, err := fault.Parse(text)
		if err != nil {
			d.fault(n.At, path, "%v (%s)", err, fault.Form)
			return f, false
		}
		if err := f.Check(); err != nil {
			d.fault(n.At, path, "%v", err)
			return f, false
		}
		return f, true
	}
	i := slices.IndexFunc(fault.Verbs(), func(v string) bool { return n.Field(v) != nil })
	if i < 0 {
		d.fault(n.At, path, "does not say what is done (%s, with a target)", strings.Join(fault.Verbs(), ", "))
		return f, false
	}
	verb := fault.Verbs()[i]
	f.Do, ok = fault.Verb(verb), true
	for _, field := range n.Fields {
		at := path + "." + field.Key
		into, word := f.When(field.Key), f.Word(field.Key)
		switch {
		case field.Key == verb:
			var is bool
			f.To, is = d.textOf(field.Value, at, "a target")
			ok = ok && is
		case word != nil && slices.Contains(fault.Words()[field.Key], fault.Verb(verb)):
			var is bool
			*word, is = d.textOf(field.Value, at, "a word")
			ok = ok && is
		case into == nil || !slices.Contains(fault.Times(fault.Verb(verb)), field.Key):
			d.fault(field.At, at, "is not known beside %s (%s)", verb, strings.Join(besides(fault.Verb(verb)), ", "))
			ok = false
		case f.Do == fault.Clock && field.Key == "by":
			ok = step.read(d, field.Value, at, into) && ok
		default:
			ok = span(0).read(d, field.Value, at, into) && ok
		}
	}
	if n.Field("at") == nil {
		d.fault(n.At, path, "does not say when (at: 10s)")
		return f, false
	}
	if err := f.Check(); ok && err != nil {
		d.fault(n.At, path, "%v", err)
		return f, false
	}
	return f, ok
}

// step is a clock step.
var step = single("a duration such as 5s or -5s", texts(signedPattern), fault.Step, quantity.Typed)

// signedPattern is the pattern of a step.
const signedPattern = `^ *[+-]?[0-9.]+ *[a-zµ]+.*$`

// besides returns the keys that a fault may have in addition to its verb.
func besides(verb fault.Verb) (keys []string) {
	for _, word := range slices.Sorted(maps.Keys(fault.Words())) {
		if slices.Contains(fault.Words()[word], verb) {
			keys = append(keys, word)
		}
	}
	return append(keys, fault.Times(verb)...)
}

// combineFaults rejects faults that cannot happen.
func (d *decoder) combineFaults(s *Scenario) {
	const path = "faults"
	if len(s.Faults) == 0 {
		return
	}
	at := d.at(path)
	alone := !slices.ContainsFunc(s.Faults, func(f fault.Fault) bool { return !f.OfAgents() })
	switch {
	case s.System.Start != StartProcess && !alone:
		remedy := "system.start: process"
		if d.flags[path] != "" {
			remedy = "--start process"
		}
		d.fault(at, path, "needs servers that a recipe starts, and system.start is %s (%s)", s.System.Start, remedy)
		return
	case s.Mode == engine.Consume:
		d.fault(at, path, "mode consume has no measured window with a known beginning (leave it out)")
		return
	case len(d.faults) > 0 || s.System.Recipe == nil && !alone:
		return
	}
	// A driver may learn who leads from addresses that the recipe provides later.
	leads := false
	if def, err := d.in.Drivers.Lookup(s.System.Definition.Name); err == nil {
		leads = def.Capabilities.Leaders
	}
	window := max(0, s.Length()-s.WarmUp)
	var servers []fault.Server
	if !alone {
		servers = s.servers(s.Cuts())
	}
	for i, f := range s.Faults {
		one := path
		if n := d.find(path); n != nil && n.Shape == tree.List {
			one = fmt.Sprintf("%s[%d]", path, i)
			at = n.Items[i].At
		}
		if window > 0 && f.At >= window {
			d.fault(at, one, "begins after the measured window of %v has ended (at, a shorter time)", window)
		}
		if f.Do == fault.Cut {
			d.combineCut(s, f, at, one)
		}
		switch {
		case f.OfAgents():
		case f.Seeks():
			switch {
			case !leads:
				d.fault(at, one, "driver %s does not tell which node leads (the number of a node, or all)", s.System.Definition.Name)
			case f.Target() == fault.Follower && s.System.Nodes == 1:
				d.fault(at, one, "a single node has no follower (system.nodes: 3)")
			}
		case f.Target() == fault.All:
		default:
			if err := fault.CheckTarget(f.Target(), servers); err != nil {
				d.fault(at, one, "%v", err)
			}
		}
	}
	if n := fault.Steps(s.Faults, window); n > fault.Most {
		d.fault(d.at(path), path, "come to more than %d in a window of %v (every: more)", fault.Most, window)
	}
}

// servers returns the servers that weir starts. apart means that each node has its own address.
func (s *Scenario) servers(apart bool) (all []fault.Server) {
	for _, p := range broker.Processes(s.System.Recipe, s.System.Nodes, apart) {
		all = append(all, fault.Server{Name: p.Name, Node: p.Node})
	}
	return all
}

// CheckTogether rejects faults of processes that exist only if each node has its own address, for a
// run in which nodes share one.
func (s *Scenario) CheckTogether() error {
	for _, f := range s.Faults {
		if f.OfAgents() || f.Seeks() || s.System.Recipe == nil {
			continue
		}
		if err := fault.CheckTarget(f.Target(), s.servers(false)); err != nil {
			return fmt.Errorf("the fault %s: %w", f, err)
		}
	}
	return nil
}

// combineCut rejects an impossible cut.
func (d *decoder) combineCut(s *Scenario, f fault.Fault, at Position, path string) {
	other, _ := strconv.Atoi(f.From)
	switch {
	case s.System.Recipe.Apart():
		d.fault(at, path, "the servers of recipe %s live in a network of their own already (leave it out)", s.System.Recipe.Name)
	case other > s.System.Nodes:
		d.fault(at, path, "there is no node %d to cut it from (a node from 1 to %d)", other, s.System.Nodes)
	case (f.From == fault.Nodes || other > 0) && s.System.Nodes == 1:
		d.fault(at, path, "a single node has no other to be cut from (from clients, or system.nodes: 3)")
	}
}

// Exposed warns that faults take a node away while each message is stored on one node only, and names
// the flags for replicas; "" if no fault does, or the system does not replicate.
func (s *Scenario) Exposed() string {
	takes := func(f fault.Fault) bool {
		return (f.Do == fault.Kill || f.Do == fault.Stop || f.Do == fault.Cut) && f.Target() != fault.All
	}
	i := slices.IndexFunc(s.Faults, takes)
	recipe := s.System.Recipe
	if i < 0 || recipe == nil || s.Topology.Replication > 1 || !s.System.Definition.Capabilities.Replicas {
		return ""
	}
	flags, nodes := "", s.System.Nodes
	if more := slices.IndexFunc(recipe.Nodes, func(n int) bool { return n >= usualNodes }); nodes < usualNodes {
		if more < 0 {
			return ""
		}
		nodes = recipe.Nodes[more]
		flags = fmt.Sprintf("--nodes %d ", nodes)
	}
	return fmt.Sprintf("%s: each message is on one node, and while that is away messages may be lost or stop: add %s--replication %d", s.Faults[i].Text(), flags, usualNodes)
}

// usualNodes is the usual number of replicas that tolerates the loss of one.
const usualNodes = 3
