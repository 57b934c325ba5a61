// Package redisserver holds how Redis and Valkey are had and started, which the
// drivers that speak their protocol share.
package redisserver

import _ "embed"

//go:embed recipe.yaml
var recipe string

// Recipe returns Definition.Recipe of the drivers: redis, and after it valkey.
func Recipe() []byte { return []byte(recipe) }
