// Package kafkaserver holds how Kafka and Redpanda are had and started, which the
// drivers that speak their protocol share.
package kafkaserver

import _ "embed"

//go:embed recipe.yaml
var recipe string

// Recipe returns Definition.Recipe of the drivers: kafka, and after it redpanda.
func Recipe() []byte { return []byte(recipe) }
