// Package redisserver holds how Redis and Valkey are had and started, which the
// drivers that speak their protocol share.
package redisserver

import _ "embed"

//go:embed recipe.yaml
var recipe string

//go:embed cluster.yaml
var cluster string

// Recipe returns Definition.Recipe of a driver for one master: redis, and after it valkey.
func Recipe() []byte { return []byte(recipe) }

// Clusters returns Definition.Recipe of a driver that knows a Redis Cluster, too: those of
// Recipe, and after them redis-cluster.
func Clusters() []byte { return []byte(recipe + "---\n" + cluster) }
