package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// widest is how far to the right the longest lines push the comments of the
// others.
const widest = 48

// Explain is YAML with a comment behind every value that says where it came
// from: a place in the file, a flag, a variable, a default. Behind the place of
// one of several scenarios or of a matrix stands which.
func (s *Scenario) Explain() []byte {
	lines := s.lines(nil)
	width := 0
	for _, l := range lines {
		if n := utf8.RuneCountInString(l.text); l.path != "" && n <= widest {
			width = max(width, n)
		}
	}
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l.text)
		if l.path != "" {
			pad := max(0, width-utf8.RuneCountInString(l.text))
			b.WriteString(strings.Repeat(" ", pad) + " # " + s.source(l.path))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// source says where the value of path came from.
func (s *Scenario) source(path string) string {
	if from, ok := s.sources[path]; ok {
		return from
	}
	if name, ok := strings.CutPrefix(path, "system.options."); ok && slices.Contains(s.connected, name) {
		return "recipe " + s.System.Recipe.Name
	}
	if s.of != nil && (path == "topology.names" || path == "consume.from") {
		return "consume.of"
	}
	if strings.HasPrefix(path, "system.options.") || key(path).ofDriver {
		return "default of driver " + s.System.Definition.Name
	}
	return "default"
}

// sources says of every key that is not a default where it came from.
func (d *decoder) sources(m *member) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if n := d.find(k.Path); n != nil && k.Path != "system.options" {
			out[k.Path] = n.Source()
		}
	}
	for name, n := range d.places {
		out["system.options."+name] = n.Source()
	}
	if set := m.run.System.FromURL; len(set) > 0 {
		out["system.options.address"] += ", sets " + strings.Join(set, ", ")
	}
	if of := m.run.of; of != nil {
		out["consume.of"] += fmt.Sprintf(": messages that it confirmed: %d", of.MessagesAll.Confirmed)
	}
	if len(m.variant.dims) > 0 {
		if name, ok := out["name"]; ok {
			out["name"] = name + ", with the values of the matrix"
		} else {
			out["name"] = "default, with the values of the matrix"
		}
	}
	return out
}
