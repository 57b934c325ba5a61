// Package finding renders what weir found as sentences. A finding is data, a code and values; the texts are
// in catalogue.txt, the only place to edit them.
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
	"text/template"
)

// A Finding is a code of the catalogue, with a value for each name in its sentence. The zero Finding is
// empty.
type Finding struct {
	Code   string         `json:"code"`
	Values map[string]any `json:"values,omitempty"`
}

// New returns a finding with alternating names and values. A value is a number, a text, a bool, another
// finding, or a list of texts or findings. Names with nil values or empty findings are omitted.
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
	var b strings.Builder
	if err := catalogue().words.ExecuteTemplate(&b, f.Code, f.Values); err != nil {
		return err.Error()
	}
	return b.String()
}

// Verdict says in a few words what a check of this name found against a run; "" for one that decides nothing.
func Verdict(check string) string {
	code := "verdict." + strings.ReplaceAll(check, " ", "_")
	if catalogue().words.Lookup(code) == nil {
		return ""
	}
	return New(code).String()
}

// Join renders several findings.
func Join(all []Finding, between string) string { return join(all, between) }

// Data returns the codes of findings, including nested ones, and all their values as in JSON.
func Data(all ...Finding) (codes []string, values map[string]any) {
	merged := map[string]any{}
	for _, f := range all {
		if f.Code == "" {
			continue
		}
		codes = append(codes, f.Code)
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			merged[name] = f.Values[name]
			inner, _ := f.Values[name].([]Finding)
			if one, is := f.Values[name].(Finding); is {
				inner = []Finding{one}
			}
			more, _ := Data(inner...)
			codes = append(codes, more...)
		}
	}
	if b, err := json.Marshal(merged); err == nil && len(merged) > 0 { // infinite numbers have no JSON
		_ = json.Unmarshal(b, &values)
	}
	return codes, values
}

//go:embed catalogue.txt
var source string

// An entry is a sentence of the catalogue.
type entry struct{ section, code, when, text string }

type book struct {
	entries []*entry
	words   *template.Template // by code
}

// catalogue parses catalogue.txt, which begins with a description of its format.
var catalogue = sync.OnceValue(func() book {
	b := book{words: template.New("").Funcs(formats)}
	section := ""
	for line := range strings.Lines(source) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(line, "# "):
		case strings.HasPrefix(line, "## "):
			section = text[3:]
		case line[0] != ' ':
			e := &entry{section: section}
			e.code, e.when, _ = strings.Cut(text, ": ")
			b.entries = append(b.entries, e)
		default:
			e := b.entries[len(b.entries)-1]
			e.text = strings.TrimSpace(e.text + " " + text)
		}
	}
	for _, e := range b.entries {
		if b.words.Lookup(e.code) != nil {
			panic(fmt.Sprintf("catalogue.txt has %s twice", e.code))
		}
		template.Must(b.words.New(e.code).Parse(e.text))
	}
	return b
})
