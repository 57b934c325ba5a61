package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

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

// Package drivers/all validates the Compose file of every recipe against the schema.
func TestComposeFile(t *testing.T) {
	rs := must.Get(ParseRecipes("r", []byte(boxedRecipe)))(t)
	c := must.Get(Compose(rs[0], 2, map[string]string{"level": "9"}))(t)
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
	if !slices.Equal(c.Address, []string{"127.0.0.1:4000", "127.0.0.1:4100"}) || c.Options["d"]["o"][0] != "127.0.0.1:4000" {
		t.Errorf("clients go to %q with %v", c.Address, c.Options)
	}
	for _, nodes := range []int{3, 7} {
		if _, err := Compose(rs[0], nodes, nil); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
	plain := must.Get(ParseRecipes("r", []byte(goodRecipe)))(t)
	if _, err := Compose(plain[0], 1, nil); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "names no image") {
		t.Errorf("a recipe without images: %v", err)
	}
}
