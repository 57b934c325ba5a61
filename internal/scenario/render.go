package scenario

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// YAML renders the scenario with every default written out; resolving the result gives the same run
// again, from any folder. Secrets are written as the reference they came from. Options that weir
// itself sets for a system that it starts are left out.
func (s *Scenario) YAML() []byte {
	var b bytes.Buffer
	for _, l := range s.lines(s.connected) {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// A line is one line of a rendered scenario.
type line struct {
	text string
	path string // of the line's key; "" for the head of a section
}

// lines renders the scenario without the given options and without keys that the run does not use.
func (s *Scenario) lines(but []string) []line {
	w := &renderer{}
	for i := range keys {
		section, _, _ := strings.Cut(keys[i].Path, ".")
		if i == 0 || !strings.HasPrefix(keys[i-1].Path, section+".") { // it begins here
			for j := range keys {
				if keys[j].first && strings.HasPrefix(keys[j].Path, section+".") {
					w.key(s, &keys[j], but)
				}
			}
		}
		if !keys[i].first {
			w.key(s, &keys[i], but)
		}
	}
	return w.lines
}

type renderer struct {
	lines   []line
	section string
}

// key renders a key, preceded by the head of its section if it is the first.
func (w *renderer) key(s *Scenario, k *Key, but []string) {
	if k.Path == "system.options" {
		w.options(&s.System, but)
		return
	}
	value := k.render(s)
	if value == "" {
		return
	}
	section, inner, two := strings.Cut(k.Path, ".")
	if !two {
		w.lines = append(w.lines, line{k.Path + ": " + value, k.Path})
		return
	}
	if section != w.section {
		w.section = section
		w.lines = append(w.lines, line{text: section + ":"})
	}
	w.lines = append(w.lines, line{"  " + inner + ": " + value, k.Path})
}

// options renders the given options and the defaults of the others, so that the file means the same to
// a driver with other defaults.
func (w *renderer) options(sys *System, but []string) {
	var lines [][2]string
	for _, o := range driver.Options(sys.Config) {
		i := slices.IndexFunc(sys.Options, func(g Option) bool { return g.Name == o.Name })
		switch {
		case o.Name == "address" && sys.Start != StartNone, slices.Contains(but, o.Name):
		case strings.HasPrefix(o.Name, driver.ServerPrefix) && sys.Start != StartEmbedded:
		case i >= 0:
			lines = append(lines, [2]string{o.Name, sys.Options[i].yaml(o.Type)})
		case o.Type == "secret" || o.Default == "", slices.Contains(sys.FromURL, o.Name): // contained in the address
		case o.Type == "list":
			lines = append(lines, [2]string{o.Name, flow(o.Name, strings.Split(o.Default, ","))})
		default:
			lines = append(lines, [2]string{o.Name, quote(strip(o.Name, o.Default))})
		}
	}
	if sys.Start == StartProcess {
		for _, name := range slices.Sorted(maps.Keys(sys.Recipe.Settings)) {
			o := driver.ServerPrefix + name
			value := quote(sys.Recipe.Settings[name].Default)
			if i := slices.IndexFunc(sys.Options, func(g Option) bool { return g.Name == o }); i >= 0 {
				value = sys.Options[i].yaml("text")
			}
			lines = append(lines, [2]string{o, value})
		}
	}
	if len(lines) == 0 {
		return
	}
	w.lines = append(w.lines, line{text: "  options:"})
	for _, l := range lines {
		w.lines = append(w.lines, line{"    " + quote(l[0]) + ": " + l[1], "system.options." + l[0]})
	}
}

func (o *Option) yaml(kind string) string {
	switch {
	case o.File:
		return "{file: " + quote(o.Reference) + "}"
	case o.Reference != "":
		return quote(o.Reference)
	case o.Secret:
		return quote("***")
	case kind == "list":
		return flow(o.Name, o.Values)
	}
	return quote(strip(o.Name, o.Values[0]))
}

// Settings returns the given options as texts for a result: secrets and references as their reference
// or ***, URLs without user and password.
func (s *System) Settings() map[string]string {
	out := make(map[string]string, len(s.Options))
	for _, o := range s.Options {
		switch {
		case o.Reference != "":
			out[o.Name] = o.reference()
		case o.Secret:
			out[o.Name] = "***"
		default:
			vs := make([]string, len(o.Values))
			for i, v := range o.Values {
				vs[i] = strip(o.Name, v)
			}
			out[o.Name] = strings.Join(vs, ",")
		}
	}
	return out
}

func flow(name string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(strip(name, v))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// bare matches texts that need no quotes in YAML, even in a list or mapping.
var bare = regexp.MustCompile(`^-?[A-Za-z0-9_./][A-Za-z0-9_./+-]*$`)

// quote formats s so that YAML reads it back unchanged.
func quote(s string) string {
	if bare.MatchString(s) && !strings.EqualFold(s, "null") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '\r':
			b.WriteString(`\r`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// userInfo matches user and password in URLs, including invalid ones with a comma or a slash inside.
// It rather removes too much than too little.
var userInfo = []*regexp.Regexp{
	regexp.MustCompile(`(://)[^/?#\s]*@`),
	regexp.MustCompile(`(://)[^,\s]*@`),
}

// stripUser removes user and password from every URL in s; other texts are unchanged.
func stripUser(s string) string {
	for _, r := range userInfo {
		s = r.ReplaceAllString(s, "$1")
	}
	return s
}

// bareUser matches user and password of an address without a scheme.
var bareUser = regexp.MustCompile(`(^|,)[^,/]*@`)

// strip applies stripUser to the option name; addresses need no scheme.
func strip(name, s string) string {
	s = stripUser(s)
	if name == "address" {
		s = bareUser.ReplaceAllString(s, "$1")
	}
	return s
}
