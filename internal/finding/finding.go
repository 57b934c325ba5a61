// Package finding turns what weir found into sentences. A finding is data, a code and
// values; its words stand in catalogue.txt, which is the only place to edit them.
package finding

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A Finding is a code of the catalogue, and a value for each name in its sentence. The zero
// Finding says nothing.
type Finding struct {
	Code   string         `json:"code"`
	Values map[string]any `json:"values,omitempty"`
}

// New returns a finding with values given as names and values in turn. A value is a number, a
// text, a switch, another finding, or a list of texts or findings. What is nil, or a Finding
// that says nothing, leaves its name out.
func New(code string, values ...any) Finding {
	f := Finding{Code: code, Values: map[string]any{}}
	for i := 0; i+1 < len(values); i += 2 {
		v := reflect.ValueOf(values[i+1])
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if inner, is := values[i+1].(Finding); v.IsValid() && (!is || inner.Code != "") {
			f.Values[values[i].(string)] = v.Interface()
		}
	}
	return f
}

// String returns the sentence.
func (f Finding) String() string {
	if f.Code == "" {
		return ""
	}
	e, ok := catalogue().byCode[f.Code]
	if !ok {
		return f.Code
	}
	return e.text.render(f.Values)
}

// Join renders several findings.
func Join(all []Finding, between string) string {
	var said []string
	for _, f := range all {
		said = append(said, f.String())
	}
	return strings.Join(said, between)
}

// Data returns the codes of findings, of those within them too, and all their values as
// they are in JSON.
func Data(all ...Finding) (codes []string, values map[string]any) {
	for _, f := range all {
		if f.Code == "" {
			continue
		}
		codes = append(codes, f.Code)
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			v := f.Values[name]
			switch inner := v.(type) {
			case Finding:
				more, _ := Data(inner)
				codes = append(codes, more...)
			case []Finding:
				more, _ := Data(inner...)
				codes = append(codes, more...)
			}
			if values == nil {
				values = map[string]any{}
			}
			values[name] = v
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return codes, nil // an infinite number has no JSON
	}
	values = nil
	_ = json.Unmarshal(b, &values)
	return codes, values
}

// catalogueText has a code in a line, perhaps with when it is said, and its sentence
// indented below. A line that begins with ## is the heading of a section.
//
//go:embed catalogue.txt
var catalogueText string

// An entry is a sentence of the catalogue.
type entry struct {
	code, when, source string
	text               template
}

// A section is a heading with the entries below it.
type section struct {
	title   string
	entries []*entry
}

type book struct {
	sections []section
	byCode   map[string]*entry
}

var catalogue = sync.OnceValue(func() book {
	b := book{byCode: map[string]*entry{}}
	var last *entry
	for line := range strings.Lines(catalogueText) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(line, "# "):
		case strings.HasPrefix(line, "## "):
			b.sections = append(b.sections, section{title: text[3:]})
		case line[0] == ' ':
			last.source = strings.TrimSpace(last.source + " " + text)
		default:
			last = new(entry)
			last.code, last.when, _ = strings.Cut(text, ": ")
			at := &b.sections[len(b.sections)-1]
			at.entries = append(at.entries, last)
			if b.byCode[last.code] != nil {
				panic(fmt.Sprintf("catalogue.txt has %s twice", last.code))
			}
			b.byCode[last.code] = last
		}
	}
	for code, e := range b.byCode {
		var err error
		if e.text, err = parse(e.source); err != nil {
			panic(fmt.Sprintf("catalogue.txt: %s: %v", code, err))
		}
	}
	return b
})
