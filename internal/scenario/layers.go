package scenario

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// layer merges overrides into the tree; more holds their further values by path.
func (d *decoder) layer(os []Override, more map[string][]string) {
	given := map[string]string{}
	for _, o := range os {
		given[o.Path] = strings.TrimSpace(o.Value)
	}
	d.supersede(given)
	for _, o := range os {
		d.override(o, more[o.Path])
	}
}

// lay returns top, one of a file's scenarios, merged over the rest of the file.
func lay(rest, top *tree.Node) *tree.Node {
	given := map[string]string{}
	of := decoder{root: top}
	for _, k := range keys {
		if n := of.find(k.Path); n != nil {
			given[k.Path] = n.Flow()
		}
	}
	under := decoder{root: rest}
	under.supersede(given)
	return tree.Overlay(under.root, top)
}

// supersede removes from the tree what the given values, by path, replace: a later layer wins over an
// earlier one even if the two are different keys that exclude one another. Conflicts within a layer
// stay and are reported.
func (d *decoder) supersede(given map[string]string) {
	has := func(path string) bool { _, ok := given[path]; return ok }
	arrival := d.find("load.arrival")
	traced := arrival != nil && arrival.Field("trace") != nil
	switch {
	case has("load.profile"):
		d.remove("load.rate", "measure", "messages")
		if traced {
			d.remove("load.arrival")
		}
	case strings.Contains(given["load.arrival"], "trace"):
		d.remove("load.rate", "load.profile", "measure", "messages")
	case isMax(given["load.rate"]):
		d.remove("load.profile", "load.arrival", "load.when_full")
	case has("load.rate"):
		d.remove("load.profile")
		if traced {
			d.remove("load.arrival")
		}
	}
	if has("messages") {
		d.remove("measure")
	}
	if has("measure") {
		d.remove("messages")
	}
	switch given["mode"] {
	case "":
	case modes[engine.Produce]:
		d.remove(receiving.paths()...)
		d.remove(beginning.paths()...)
		d.supersedePlacement("consumers")
	case modes[engine.Consume]:
		d.remove(sending.paths()...)
		d.supersedePlacement("producers")
	default:
		d.remove(beginning.paths()...)
	}
	for _, side := range []string{"producers", "consumers"} {
		if has("fleet." + side) {
			d.remove("topology." + side)
		}
		if has("topology." + side) {
			d.remove("fleet." + side)
		}
	}
	if has("topology.names") {
		d.remove("topology.destinations", "topology.partitions", "topology.replication")
	}
	if has("topology.destinations") {
		d.remove("topology.names")
	}
}

// remove removes keys from the tree and its matrix.
func (d *decoder) remove(paths ...string) {
	for _, path := range paths {
		d.root = d.root.Without(keyParts(path)...).Without("matrix", path).Without("matrix", zip, path)
	}
}

// override puts the value of a flag or variable into the tree, replacing the file's value and those of
// its matrix. If there are further values, the result is a list of all.
func (d *decoder) override(o Override, more []string) {
	d.flags[o.Path] = o.Flag
	at := Position{Source: o.Flag}
	n := &tree.Node{Shape: tree.List, At: at}
	for _, value := range append([]string{o.Value}, more...) {
		if !utf8.ValidString(value) || strings.ContainsFunc(value, control) {
			d.fault(at, o.Path, "holds what is not text (UTF-8 without control characters)")
			return
		}
		v, faults := tree.ParseFlag(o.Flag, value)
		switch {
		case len(faults) > 0:
			d.faults = append(d.faults, faults...)
			return
		case len(more) == 0:
			n = v
		case v.Shape == tree.List:
			n.Items = append(n.Items, v.Items...)
		default:
			n.Items = append(n.Items, v)
		}
	}
	d.root = d.root.Without("matrix", o.Path).Without("matrix", zip, o.Path).With(keyParts(o.Path), n)
}

// once returns the flags with each path once, and further values of those that add up. Any other
// repeated flag is a fault, since one value would be silently ignored.
func (d *decoder) once(os []Override) (out []Override, more map[string][]string) {
	more = map[string][]string{}
	for _, o := range os {
		i := slices.IndexFunc(out, func(p Override) bool { return p.Path == o.Path })
		switch {
		case i < 0:
			out = append(out, o)
		case key(o.Path) != nil && key(o.Path).Repeats:
			more[o.Path] = append(more[o.Path], o.Value)
		default:
			d.fault(Position{Source: o.Flag}, "", "is given twice (once)") // the flag's name already gives the path
		}
	}
	return out, more
}

func control(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }

// exclusive reports two variables that set the same key to different values, neither of which takes
// precedence.
func (d *decoder) exclusive(os []Override) {
	for i, o := range os {
		j := slices.IndexFunc(os[:i], func(p Override) bool { return p.Path == o.Path })
		if j >= 0 && strings.TrimSpace(os[j].Value) != strings.TrimSpace(o.Value) {
			d.fault(Position{Source: o.Flag}, "", "differs from %s, which sets the same (one of them)", os[j].Flag)
		}
	}
}

// keyParts splits the path of a key. A driver's option has one name, even if it contains dots.
func keyParts(path string) []string {
	if option, ok := strings.CutPrefix(path, "system.options."); ok {
		return []string{"system", "options", option}
	}
	return strings.Split(path, ".")
}
