package all

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/internal/broker"
)

// composeSchema returns the schema of the Compose specification, from the module
// github.com/compose-spec/compose-go/v2 v2.9.0 (Apache-2.0).
func composeSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	b, err := os.ReadFile("testdata/compose-spec.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("compose-spec.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("compose-spec.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fits validates a Compose file against the schema.
func fits(t *testing.T, s *jsonschema.Schema, file []byte) error {
	t.Helper()
	j, err := yaml.YAMLToJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// TestEveryRecipeYieldsValidComposeFile covers all recipes of all drivers, with every number of
// nodes.
func TestEveryRecipeYieldsValidComposeFile(t *testing.T) {
	s := composeSchema(t)
	if err := fits(t, s, []byte("services: {a: {image: [x]}}")); err == nil {
		t.Fatal("the schema takes anything")
	}
	written := 0
	for _, def := range Definitions() {
		rs, err := broker.Recipes(def)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if !slices.ContainsFunc(r.Processes, func(p broker.Part) bool { return p.Docker != nil }) {
				continue
			}
			for _, n := range r.Nodes {
				c, err := broker.Compose(r, n, nil)
				if err != nil {
					t.Errorf("%s, %d nodes: %v", r.Name, n, err)
					continue
				}
				written++
				if err := fits(t, s, c.File); err != nil {
					t.Errorf("%s, %d nodes: %v\n%s", r.Name, n, err, c.File)
				}
				if len(c.Images) == 0 || len(c.Address) == 0 {
					t.Errorf("%s: images %q, addresses %q", r.Name, c.Images, c.Address)
				}
			}
		}
	}
	if written < 4 {
		t.Errorf("%d files", written)
	}
}
