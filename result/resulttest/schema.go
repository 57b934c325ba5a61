// Package resulttest validates result folders against docs/formats: every file against its JSON
// Schema, and the files against each other. It is for tests, of weir and of other programs that
// write such folders.
package resulttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

// The schemas' file names in docs/formats.
const (
	ResultSchema      = "result.schema.json"
	EnvironmentSchema = "environment.schema.json"
	EventsSchema      = "events.schema.json" // of one line
	HostSchema        = "host.schema.json"   // of one line
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// Schemas returns the JSON Schemas of the files that package result writes, by file name, generated
// from its types. A closed schema rejects fields that the types do not have, to find undocumented
// ones. The open one is for readers, who ignore such fields.
func Schemas(closed bool) map[string][]byte {
	of := func(t reflect.Type, title, schema string) map[string]any {
		s := schemaOf(t, closed)
		s["$schema"], s["title"] = draft, title
		if schema != "" {
			s["properties"].(map[string]any)["schema"] = map[string]any{"const": schema}
		}
		return s
	}
	first := struct {
		Schema string `json:"schema"`
	}{}
	docs := map[string]map[string]any{
		ResultSchema:      of(reflect.TypeFor[result.Result](), "result.json of weir, version 1", result.Schema),
		EnvironmentSchema: of(reflect.TypeFor[result.Environment](), "environment.json of weir, version 1", result.SchemaEnvironment),
	}
	for name, log := range map[string]struct {
		file, schema string
		line         reflect.Type
	}{
		EventsSchema: {"events.jsonl", result.SchemaEvents, reflect.TypeFor[result.Event]()},
		HostSchema:   {"host.jsonl", result.SchemaHost, reflect.TypeFor[host.Sample]()},
	} {
		parts := []any{of(reflect.TypeOf(first), "the first line", log.schema), of(log.line, "any other line", "")}
		for _, part := range parts {
			delete(part.(map[string]any), "$schema")
		}
		docs[name] = map[string]any{"$schema": draft, "title": "a line of " + log.file + " of weir, version 1: the first, or any other", "anyOf": parts}
	}
	out := map[string][]byte{}
	for name, doc := range docs {
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			panic(fmt.Sprintf("schema %s: %v", name, err)) // maps, lists and texts only
		}
		out[name] = append(b, '\n')
	}
	return out
}

// words are the enumerated fields with their values.
var words = map[string][]any{
	"Status":            {result.Valid, result.Suspect, result.Invalid, result.NotRun},
	"Run.Loop":          {result.LoopOpen, result.LoopClosed},
	"Evidence.WhenFull": {"wait", "drop", "fail"},
	"Interval.Phase":    {"warmup", "measure", "drain"},

	"Efficiency.Messages": {result.CountConfirmed, result.CountReceived},

	"Percentile.UnsupportedBy": {result.ByClock, result.ByUnknownClock, result.ByLostAgents},
	"Percentile.UnboundedBy":   {result.ByDependence, result.ByEpisodes},
}

// schemaOf returns the JSON Schema of a Go type as encoding/json writes it.
func schemaOf(t reflect.Type, closed bool) map[string]any {
	if w, ok := words[t.Name()]; ok {
		return map[string]any{"type": "string", "enum": w}
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := schemaOf(t.Elem(), closed)
		if kind, ok := s["type"].(string); ok {
			s["type"] = []string{kind, "null"}
		}
		return s
	case reflect.Struct:
		s := map[string]any{"type": "object", "properties": map[string]any{}}
		members(t, closed, s["properties"].(map[string]any), s)
		if closed {
			s["additionalProperties"] = false
		}
		return s
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), closed)}
	case reflect.Map:
		s := map[string]any{"type": "object"}
		if t.Elem().Kind() != reflect.Interface {
			s["additionalProperties"] = schemaOf(t.Elem(), closed)
		}
		return s
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

// members adds the fields of a struct type to properties, and the required ones to required.
func members(t reflect.Type, closed bool, properties, s map[string]any) {
	required, _ := s["required"].([]string)
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			panic(t.String() + "." + f.Name + " has no name in JSON")
		}
		p := schemaOf(f.Type, closed)
		if w, ok := words[t.Name()+"."+f.Name]; ok {
			p["enum"] = w
		}
		if option == "omitempty" {
			if kinds, ok := p["type"].([]string); ok {
				p["type"] = kinds[0] // absent, never null
			}
		} else {
			required = append(required, name)
		}
		properties[name] = p
	}
	slices.Sort(required)
	if len(required) > 0 {
		s["required"] = required
	}
}

// Fields returns the names of all fields that the files have, sorted.
func Fields() []string {
	names := map[string]bool{}
	var walk func(s any)
	walk = func(s any) {
		switch s := s.(type) {
		case map[string]any:
			if p, ok := s["properties"].(map[string]any); ok {
				for name := range p {
					names[name] = true
				}
			}
			for _, v := range s {
				walk(v)
			}
		case []any:
			for _, v := range s {
				walk(v)
			}
		}
	}
	for _, b := range Schemas(false) {
		var s any
		if err := json.Unmarshal(b, &s); err != nil {
			panic(err) // it was marshalled by Schemas
		}
		walk(s)
	}
	return slices.Sorted(maps.Keys(names))
}
