package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// widest limits the column to which long lines push the other lines' comments.
const widest = 48

// Explain returns YAML with a comment after every value that names its origin: a place in the file, a
// flag, a variable, a default. For a file with several scenarios or a matrix it also names which.
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

// source names the origin of the value at path.
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

// sources records the origin of every key that is not a default.
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
