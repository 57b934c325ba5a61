package all

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

// composeSchema returns the schema of the Compose specification, from the module
// github.com/compose-spec/compose-go/v2 v2.9.0 (Apache-2.0).
func composeSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/compose-spec.json"))(t)
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(b)))(t)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource("compose-spec.json", doc))
	s := must.Get(c.Compile("compose-spec.json"))(t)
	return s
}

// fits validates a Compose file against the schema.
func fits(t *testing.T, s *jsonschema.Schema, file []byte) error {
	t.Helper()
	j := must.Get(yaml.YAMLToJSON(file))(t)
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(j)))(t)
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
		rs := must.Get(broker.Recipes(def))(t)
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
