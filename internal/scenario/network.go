package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// A Network is the simulated network between the clients and the servers that weir starts. The zero
// value means none.
type Network struct {
	Profile    string     // supplies conditions; "": none
	Each       Conditions // for each direction
	To, From   Conditions // for one direction, in addition
	Partitions []network.Partition
}

// Conditions are the conditions given explicitly; others are nil.
type Conditions struct {
	Latency, Jitter                   *time.Duration
	Distribution                      *network.Distribution
	Loss, Duplicate, Reorder, Corrupt *float64
	Bandwidth                         *int64 // bits per second
}

// Wanted reports whether a network is configured.
func (n *Network) Wanted() bool {
	none := Conditions{}
	return n.Profile != "" || n.Each != none || n.To != none || n.From != none || len(n.Partitions) > 0
}

// Networked reports whether clients and servers have separate networks: for conditions between them,
// or because a fault partitions nodes, which a run with agents does without one.
func (s *Scenario) Networked(agents bool) bool { return s.Network.Wanted() || s.Cuts() && !agents }

// Cuts reports whether a fault partitions nodes.
func (s *Scenario) Cuts() bool { return s.does(fault.Cut) }

// Fills reports whether a fault fills servers' disks.
func (s *Scenario) Fills() bool { return s.does(fault.Fill) }

// Slows reports whether a fault slows servers' disks.
func (s *Scenario) Slows() bool { return s.does(fault.Slow) }

func (s *Scenario) does(verb fault.Verb) bool {
	return slices.ContainsFunc(s.Faults, func(f fault.Fault) bool { return f.Do == verb })
}

// Spec returns the conditions of each direction: the profile, overridden by those for both directions,
// overridden by those for one.
func (n *Network) Spec(seed uint64) network.Spec {
	p, _ := network.ProfileNamed(n.Profile) // the zero value without one
	s := network.Spec{To: p.To, From: p.From, Seed: seed}
	for _, c := range []Conditions{n.Each, n.To} {
		c.over(&s.To)
	}
	for _, c := range []Conditions{n.Each, n.From} {
		c.over(&s.From)
	}
	return s
}

// over applies explicit conditions to x.
func (c *Conditions) over(x *network.Conditions) {
	put(&x.Latency, c.Latency)
	put(&x.Jitter, c.Jitter)
	put(&x.Distribution, c.Distribution)
	put(&x.Loss, c.Loss)
	put(&x.Duplicate, c.Duplicate)
	put(&x.Reorder, c.Reorder)
	put(&x.Corrupt, c.Corrupt)
	put(&x.Bandwidth, c.Bandwidth)
}

func put[T any](into, given *T) {
	if given != nil {
		*into = *given
	}
}

// unitless adds the given unit to a bare number from a flag or a variable, as in Comcast's flags. In a
// file a number needs its unit.
func unitless[T any](k kind[T], unit string) kind[T] {
	read := k.read
	k.read = func(d *decoder, n *tree.Node, path string, into *T) bool {
		if n.Shape == tree.Text && n.At.Line == 0 && hasNoUnit(n.Text) && strings.Trim(n.Text, "0.") != "" {
			with := *n
			with.Text += unit
			n = &with
		}
		return read(d, n, path, into)
	}
	return k
}

// Kinds of conditions.
var (
	lag   = unitless(brief, "ms")
	brief = single(fmt.Sprintf("a duration up to %v, such as 20ms", network.MostLatency), duration(), func(s string) (time.Duration, error) {
		v, err := quantity.Duration(s)
		switch {
		case err != nil && hasNoUnit(s):
			return 0, fmt.Errorf("%s has no unit", s)
		case err != nil:
			return 0, fmt.Errorf("%q is not a duration", s)
		case v < 0 || v > network.MostLatency:
			return 0, fmt.Errorf("%s is out of range", s)
		}
		return v, nil
	}, quantity.Typed)
	bits = unitless(single(fmt.Sprintf("bits per second from %s to %s, such as 100Mbit", network.FormatBandwidth(network.LeastBits), network.FormatBandwidth(network.MostBits)),
		texts(`^ *`+network.BandwidthForm+` *$`), network.ParseBandwidth, network.FormatBandwidth), "kbit")
	jitters = word(network.Distributions(), network.Uniform, network.Normal, network.Exponential, network.Pareto)
)

// conditions lists the parts of Conditions, in the order of a file.
var conditions = []part[Conditions]{
	{"latency", placed(optional(lag), func(c *Conditions) **time.Duration { return &c.Latency })},
	{"jitter", placed(optional(lag), func(c *Conditions) **time.Duration { return &c.Jitter })},
	{"distribution", placed(optional(jitters), func(c *Conditions) **network.Distribution { return &c.Distribution })},
	{"loss", placed(optional(share), func(c *Conditions) **float64 { return &c.Loss })},
	{"duplicate", placed(optional(share), func(c *Conditions) **float64 { return &c.Duplicate })},
	{"reorder", placed(optional(share), func(c *Conditions) **float64 { return &c.Reorder })},
	{"corrupt", placed(optional(share), func(c *Conditions) **float64 { return &c.Corrupt })},
	{"bandwidth", placed(optional(bits), func(c *Conditions) **int64 { return &c.Bandwidth })},
}

// condition returns the kind of a condition for both directions.
func condition(name string) kind[Scenario] {
	i := slices.IndexFunc(conditions, func(p part[Conditions]) bool { return p.key == name })
	k := placed(conditions[i].kind, func(s *Scenario) *Conditions { return &s.Network.Each })
	k.zero = func(s *Scenario) bool { return conditions[i].zero(&s.Network.Each) } // not given for all of them
	return k
}

// direction is a mapping of some conditions.
func direction(of func(*Scenario) *Conditions) kind[Scenario] {
	var names []string
	properties := object{}
	for _, p := range conditions {
		names = append(names, p.key)
		properties[p.key] = p.schema
	}
	allowed := "a mapping of " + strings.Join(names, ", ")
	k := kind[Conditions]{
		schema: object{"type": "object", "properties": properties, "minProperties": 1, "additionalProperties": false},
		read: func(d *decoder, n *tree.Node, path string, into *Conditions) bool {
			if n.Shape != tree.Mapping || len(n.Fields) == 0 {
				d.fault(n.At, path, "is %s (%s)", n.Shape, allowed)
				return false
			}
			v, ok := Conditions{}, true
			for _, f := range n.Fields {
				i := slices.Index(names, f.Key)
				if i < 0 {
					d.fault(f.At, path+"."+f.Key, "unknown key%s (%s)", meant(f.Key, names), strings.Join(names, ", "))
					ok = false
					continue
				}
				ok = conditions[i].read(d, f.Value, path+"."+f.Key, &v) && ok
			}
			if ok {
				*into = v
			}
			return ok
		},
		text: func(c *Conditions) string {
			var given []string
			for _, p := range conditions {
				if !p.zero(c) {
					given = append(given, p.key+": "+p.text(c))
				}
			}
			return "{" + strings.Join(given, ", ") + "}"
		},
	}
	return placed(k, of)
}

// profiled is a profile name.
var profiled = func() kind[string] {
	names := network.ProfileNames()
	return word(names, names...)
}()

// partitions is a text, or a list of texts.
var partitions = kind[Scenario]{
	schema: func() object {
		one := object{"type": "string", "pattern": `^ *(both|to-system|from-system)( +(at|for|every) +[^ ]+)+ *$`}
		return either(one, object{"type": "array", "maxItems": maxFaults, "items": one})
	}(),
	read: func(d *decoder, n *tree.Node, path string, s *Scenario) bool {
		items := []*tree.Node{n}
		if n.Shape == tree.List {
			items = n.Items
		}
		if len(items) > maxFaults {
			d.fault(n.At, path, "holds %d partitions (up to %d)", len(items), maxFaults)
			return false
		}
		s.Network.Partitions = nil
		ok := true
		for i, item := range items {
			at := path
			if n.Shape == tree.List {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			p, is := d.partitionOf(item, at)
			s.Network.Partitions = append(s.Network.Partitions, p)
			ok = ok && is
		}
		return ok
	},
	text: func(s *Scenario) string {
		var all []string
		for _, p := range s.Network.Partitions {
			all = append(all, strconv.Quote(p.Text()))
		}
		return "[" + strings.Join(all, ", ") + "]"
	},
	zero: func(s *Scenario) bool { return len(s.Network.Partitions) == 0 },
}

// partitionOf reads one partition. Its text is a fault's without the verb.
func (d *decoder) partitionOf(n *tree.Node, path string) (p network.Partition, ok bool) {
	text, ok := d.textOf(n, path, network.PartitionForm)
	if !ok {
		return p, false
	}
	f, err := fault.Parse("partition " + text)
	if err == nil {
		p = network.Partition{Of: f.To, At: f.At, For: f.For, Every: f.Every}
		if err = p.Check(); f.From != "" || f.By != 0 {
			err = fmt.Errorf("%q is not a partition", text)
		}
	} else if strings.HasSuffix(err.Error(), " is not a fault") {
		err = fmt.Errorf("%q is not a partition", text)
	}
	if err != nil {
		d.fault(n.At, path, "%s (%s)", strings.ReplaceAll(err.Error(), "partition ", ""), network.PartitionForm)
	}
	return p, err == nil
}

// combineNetwork rejects an invalid network.
func (d *decoder) combineNetwork(s *Scenario) {
	const path = "network"
	if !s.Network.Wanted() {
		return
	}
	first, at := d.networkAt()
	def := s.System.Definition
	switch {
	case s.System.Start != StartNone:
	case def.Capabilities.InProcess:
		d.fault(at, first, "driver %s works inside the run, without a network (leave it out)", def.Name)
		return
	case def.Serve == nil && len(def.Recipe) == 0:
		d.fault(at, first, "is between clients and servers that weir starts, and it starts none for driver %s (leave it out)", def.Name)
		return
	default:
		d.fault(at, first, "is between clients and servers that weir starts, and here it starts none (system.start: process)")
		return
	}
	if s.System.Recipe != nil && s.System.Recipe.Apart() {
		d.fault(at, first, "the servers of recipe %s live in a network of their own already, which clients enter (leave it out)", s.System.Recipe.Name)
		return
	}
	spec := s.Network.Spec(0)
	for _, x := range []struct {
		name string
		c    network.Conditions
	}{{"to_system", spec.To}, {"from_system", spec.From}} {
		if err := x.c.Check(); err != nil {
			key, what, _ := strings.Cut(err.Error(), ": ")
			where := tree.Join(path, key)
			if d.has(tree.Join(path, x.name)) {
				where = tree.Join(path, x.name) + "." + key
				at = d.at(tree.Join(path, x.name))
			} else if d.has(where) {
				at = d.at(where)
			}
			d.fault(at, where, "%s", what)
			break // the other direction mostly has the same conditions
		}
	}
	d.combinePartitions(s)
}

// networkAt returns the first network key that the scenario gives, and its position.
func (d *decoder) networkAt() (path string, at Position) {
	for _, p := range members("network") {
		if full := tree.Join("network", p); d.has(full) {
			return full, d.at(full)
		}
	}
	return "network", Position{}
}

// combinePartitions rejects partitions that never happen.
func (d *decoder) combinePartitions(s *Scenario) {
	const path = "network.partition"
	if len(s.Network.Partitions) == 0 {
		return
	}
	if s.Mode == engine.Consume {
		d.fault(d.at(path), path, "mode consume has no measured window with a known beginning (leave it out)")
		return
	}
	window := max(0, s.Length()-s.WarmUp)
	for _, p := range s.Network.Partitions {
		if window > 0 && p.At >= window {
			d.fault(d.at(path), path, "%q begins after the measured window of %v has ended (at, a shorter time)", p.Text(), window)
		}
	}
	if err := network.CheckPartitions(s.Network.Partitions, window); err != nil {
		d.fault(d.at(path), path, "%v", err)
	}
}
