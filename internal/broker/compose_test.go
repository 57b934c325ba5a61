package broker

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
)

// composeSchema is that of the Compose specification, as the module
// github.com/compose-spec/compose-go/v2 v2.9.0 has it (Apache-2.0).
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

// fits holds a Compose file against the schema.
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

// TestEveryRecipeGivesAComposeFileOfTheSchema takes every recipe of every driver,
// for each number of nodes.
func TestEveryRecipeGivesAComposeFileOfTheSchema(t *testing.T) {
	s := composeSchema(t)
	if err := fits(t, s, []byte("services: {a: {image: [x]}}")); err == nil {
		t.Fatal("the schema takes anything")
	}
	written := 0
	for _, def := range all.Definitions() {
		rs, err := Recipes(def)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if !slices.ContainsFunc(r.Processes, func(p Part) bool { return p.Docker != nil }) {
				continue
			}
			for _, n := range r.Nodes {
				c, err := Compose(r, n, nil)
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

const boxedRecipe = `recipe: 1
name: boxed
title: Boxed
version: "1"
nodes: [1, 2]
settings: {level: {default: "1", help: "h"}}
processes:
  - name: first
    on: first
    ports: {client: 4000}
    docker:
      image: vendor/first:1.2
      user: "1000"
      entrypoint: [sh, -c]
      command: ["echo $HOME; serve {{set \"level\"}} {{.Bind}} {{.Port.client}}"]
      env: {NODE: "{{.Node}}"}
      data: /var/lib/first
  - name: second
    on: others
    ports: {client: 4000, peer: 4001}
    files: {a.conf: "follow {{.First.At \"client\"}} of {{range .Nodes}}{{.At \"client\"}} {{end}}cost $5 in {{.Data}}"}
    docker: {image: "vendor/second:3", command: [serve, "{{.Dir}}/a.conf"]}
connect: {address: '{{.At "client"}}', options: {d: {o: '{{.First.At "client"}}'}}}
`

func TestComposeFile(t *testing.T) {
	rs, err := ParseRecipes("r", []byte(boxedRecipe))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compose(rs[0], 2, map[string]string{"level": "9"})
	if err != nil {
		t.Fatal(err)
	}
	want := `name: weir-boxed
services:
  first-1:
    image: vendor/first:1.2
    user: "1000"
    entrypoint:
      - sh
      - -c
    command:
      - echo $$HOME; serve 9 0.0.0.0 4000
    environment:
      NODE: "1"
    ports:
      - 127.0.0.1:4000:4000
    volumes:
      - first-1-data:/var/lib/first
  second-2:
    image: vendor/second:3
    command:
      - serve
      - /weir/a.conf
    ports:
      - 127.0.0.1:4100:4100
      - 127.0.0.1:4101:4101
    configs:
      - source: second-2-a-conf
        target: /weir/a.conf
        mode: "0444"
    volumes:
      - second-2-data:/weir/data
    depends_on:
      - first-1
configs:
  second-2-a-conf:
    content: follow first-1:4000 of first-1:4000 second-2:4100 cost $$5 in /weir/data
volumes:
  first-1-data: {}
  second-2-data: {}
`
	if string(c.File) != want {
		t.Errorf("got\n%s\nwant\n%s", c.File, want)
	}
	if err := fits(t, composeSchema(t), c.File); err != nil {
		t.Error(err)
	}
	if !slices.Equal(c.Address, []string{"127.0.0.1:4000", "127.0.0.1:4100"}) || c.Options["d"]["o"][0] != "127.0.0.1:4000" {
		t.Errorf("clients go to %q with %v", c.Address, c.Options)
	}
	for _, nodes := range []int{3, 7} {
		if _, err := Compose(rs[0], nodes, nil); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
	plain, err := ParseRecipes("r", []byte(goodRecipe))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compose(plain[0], 1, nil); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "names no image") {
		t.Errorf("a recipe without images: %v", err)
	}
}
