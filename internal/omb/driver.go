package omb

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
)

// A leaf is a value of a driver file with its path. The lines of a properties text are leaves too.
type leaf struct {
	path  string
	value *tree.Node
}

// A rule converts a leaf, and notes what it cannot convert.
type rule func(c *conversion, l leaf)

// A system maps one of the benchmark's drivers to weir's.
type system struct {
	driver   string            // "": weir has no driver for it
	rules    map[string]rule   // by path
	defaults map[string]string // the benchmark's defaults where weir's differ
	also     map[string]string // fixed behaviour of the benchmark's driver, as weir's keys
	finish   func(c *conversion, leaves map[string]*tree.Node)
}

// driver converts a driver file.
func (c *conversion) driver(d *tree.Node) {
	class := d.Field("driverClass")
	short := class.Text[strings.LastIndex(class.Text, ".")+1:]
	of, ok := systems[short]
	var leaves []leaf
	for _, f := range d.Fields {
		if f.Key != "name" && f.Key != "driverClass" {
			leaves = flat(leaves, f.Key, f.Value)
		}
	}
	if !ok || of.driver == "" {
		c.note(class.At, "driverClass", "is not carried over: weir has no driver for %s (weir drivers lists them; --driver)", short)
		for _, l := range leaves {
			c.note(l.value.At, l.path, "is not carried over: it is an option of %s", short)
		}
		return
	}
	c.set("system.driver", text(class, "%s", of.driver))
	found := map[string]*tree.Node{}
	for _, l := range leaves {
		found[l.path] = l.value
		if strings.TrimSpace(l.value.Text) == "" && l.value.Shape != tree.List {
			continue // unset
		}
		r := of.rules[l.path]
		if rest, ok := strings.CutPrefix(l.path, "commonConfig."); ok && r == nil {
			if r = of.rules["producerConfig."+rest]; r == nil {
				r = of.rules["consumerConfig."+rest]
			}
		}
		if r == nil {
			r = not("driver " + of.driver + " has no such option (weir drivers " + of.driver + ")")
		}
		r(c, l)
	}
	for _, path := range slices.Sorted(maps.Keys(of.defaults)) {
		if found[path] == nil {
			of.rules[path](c, leaf{path, text(class, "%s", of.defaults[path])})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of.also)) {
		c.set(key, text(class, "%s", of.also[key]))
	}
	if of.finish != nil {
		of.finish(c, found)
	}
}

// flat appends the leaves of n.
func flat(leaves []leaf, path string, n *tree.Node) []leaf {
	switch {
	case n.Shape == tree.Mapping:
		for _, f := range n.Fields {
			leaves = flat(leaves, tree.Join(path, f.Key), f.Value)
		}
	case n.Shape == tree.Text && strings.Contains(n.Text, "\n"):
		line := n.At.Line
		for property := range strings.Lines(n.Text) {
			line++ // the first is below the sign of the text
			property = strings.TrimSpace(property)
			if property == "" || strings.HasPrefix(property, "#") || strings.HasPrefix(property, "!") {
				continue
			}
			name, value := property, ""
			if i := strings.IndexAny(property, "=:"); i >= 0 {
				name, value = property[:i], property[i+1:]
			}
			at := tree.Position{Source: n.At.Source, Line: line, Column: 1}
			leaves = append(leaves, leaf{tree.Join(path, strings.TrimSpace(name)), &tree.Node{Shape: tree.Text, Text: strings.TrimSpace(value), At: at}})
		}
	default:
		leaves = append(leaves, leaf{path, n})
	}
	return leaves
}

func (l leaf) text() string { return strings.TrimSpace(l.value.Text) }

// to copies a value.
func to(key string) rule { return with(key, "", "") }

// with adds a prefix and a suffix to a value.
func with(key, before, behind string) rule {
	return func(c *conversion, l leaf) { c.set(key, text(l.value, "%s", before+l.text()+behind)) }
}

// amount converts a whole number, at least least, and adds a unit.
func amount(key, unit string, least int64) rule {
	return func(c *conversion, l leaf) {
		v, err := strconv.ParseInt(l.text(), 10, 64)
		if err != nil || v < least {
			c.note(l.value.At, l.path, "is not carried over: --%s takes %d%s or more", shortOf(key), least, unit)
			return
		}
		c.set(key, text(l.value, "%d%s", v, unit))
	}
}

// word maps known words.
func word(key string, words map[string]string) rule {
	return func(c *conversion, l leaf) {
		v, ok := words[strings.ToLower(l.text())]
		if !ok {
			c.note(l.value.At, l.path, "is not carried over: weir knows %s here", strings.Join(slices.Sorted(maps.Keys(words)), ", "))
			return
		}
		c.set(key, text(l.value, "%s", v))
	}
}

// not notes that a value is not converted, and why.
func not(why string) rule {
	return func(c *conversion, l leaf) { c.note(l.value.At, l.path, "is not carried over: %s", why) }
}

// same accepts silently a value that is weir's fixed behaviour, and notes any other.
func same(value, why string) rule {
	return func(c *conversion, l leaf) {
		if !strings.EqualFold(l.text(), value) {
			not(why)(c, l)
		}
	}
}

// secret notes a password without showing it.
func secret(option string) rule {
	return not("a scenario holds no secrets (--option " + option + "='${env:NAME}')")
}

// elsewhere ignores a value that a finish step handles.
func elsewhere(*conversion, leaf) {}

// server converts one or more server addresses, and removes the scheme that weir assumes.
func server(key string, schemes map[string]string) rule {
	return func(c *conversion, l leaf) {
		var all []string
		for one := range strings.SplitSeq(l.text(), ",") {
			one = strings.TrimSpace(one)
			if scheme, host, ok := strings.Cut(one, "://"); ok {
				to, known := schemes[scheme]
				if !known {
					c.note(l.value.At, l.path, "is not carried over: weir does not know %s:// here (--address)", scheme)
					return
				}
				one = to + host
			}
			all = append(all, one)
		}
		if strings.Contains(l.text(), "@") {
			c.note(l.value.At, l.path, "is not carried over: it holds a user (--address, --option user, --option password='${env:NAME}')")
			return
		}
		c.set(key, text(l.value, "%s", strings.Join(all, ",")))
	}
}

// amqp converts a list of AMQP URIs, without their passwords.
func amqp(c *conversion, l leaf) {
	var all []string
	for _, n := range l.value.Items {
		u, err := url.Parse(strings.TrimSpace(n.Text))
		if err != nil || u.Host == "" || u.Scheme != "amqp" && u.Scheme != "amqps" {
			c.note(n.At, l.path, "is not carried over: it is not a URI of AMQP (--address)")
			continue
		}
		if u.User != nil {
			c.set(options+"user", text(n, "%s", u.User.Username()))
			if p, ok := u.User.Password(); ok && p != u.User.Username() || u.User.Username() != "guest" {
				c.note(n.At, l.path, "is carried over without its password: a scenario holds no secrets (--option password='${env:NAME}')")
			}
		}
		if vhost := strings.TrimPrefix(u.Path, "/"); vhost != "" {
			c.set(options+"vhost", text(n, "%s", vhost))
		}
		port := map[string]string{"amqp": "5672", "amqps": "5671"}[u.Scheme]
		if u.Port() != "" {
			port = u.Port()
		}
		host := net.JoinHostPort(u.Hostname(), port)
		if u.Scheme == "amqps" {
			host = "amqps://" + host
		}
		all = append(all, host)
	}
	if len(all) > 0 {
		c.set(options+"address", text(l.value, "%s", strings.Join(all, ",")))
	}
}

// joined combines a host and a port from two lines into an address.
func joined(host, port, otherwise string) func(*conversion, map[string]*tree.Node) {
	return func(c *conversion, leaves map[string]*tree.Node) {
		h := leaves[host]
		if h == nil || strings.TrimSpace(h.Text) == "" {
			return
		}
		p := otherwise
		if n := leaves[port]; n != nil && strings.TrimSpace(n.Text) != "" {
			p = strings.TrimSpace(n.Text)
		}
		c.set(options+"address", text(h, "%s", net.JoinHostPort(strings.TrimSpace(h.Text), p)))
	}
}

func shortOf(key string) string {
	if option, ok := strings.CutPrefix(key, options); ok {
		return "option " + option
	}
	return key
}
