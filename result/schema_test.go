package result

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// formats is where the formats are described.
var formats = filepath.Join("..", "docs", "formats")

// schemaOf gives the JSON Schema of a Go type as this package marshals it.
func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		s := schemaOf(t.Elem())
		if kind, ok := s["type"].(string); ok {
			s["type"] = []string{kind, "null"}
		}
		return s
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			s := schemaOf(f.Type)
			if option == "omitempty" {
				if kinds, ok := s["type"].([]string); ok {
					s["type"] = kinds[0] // absent, never null
				}
			} else {
				required = append(required, name)
			}
			properties[name] = s
		}
		return map[string]any{"type": "object", "properties": properties, "required": required}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object"}
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

// TestJSONSchema keeps docs/formats/result.schema.json what the types say.
func TestJSONSchema(t *testing.T) {
	s := schemaOf(reflect.TypeFor[Result]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "result.json of weir, version 1"
	s["properties"].(map[string]any)["schema"] = map[string]any{"const": Schema}
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join(formats, "result.schema.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("file (-) and types (+) differ; if this is meant, run the test with -update:\n%s", d)
	}
}

// TestThePageNamesEveryField holds docs/formats/result.md to the types.
func TestThePageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(formats, "result.md"))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(t reflect.Type, visit func(name string))
	walk = func(t reflect.Type, visit func(string)) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(t.Elem(), visit)
		case reflect.Struct:
			for i := range t.NumField() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				visit(name)
				walk(t.Field(i).Type, visit)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Result](), reflect.TypeFor[Environment](), reflect.TypeFor[Event]()} {
		walk(typ, func(name string) {
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("%s: %q is not described", typ.Name(), name)
			}
		})
	}
	for _, schema := range []string{Schema, SchemaIntervals, SchemaHGRM, SchemaEnvironment, SchemaEvents} {
		if !strings.Contains(string(page), schema) {
			t.Errorf("%s is not described", schema)
		}
	}
}
