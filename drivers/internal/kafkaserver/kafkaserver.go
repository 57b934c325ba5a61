// Package kafkaserver has the recipes that install and start Kafka and Redpanda, for all drivers
// that speak their protocol.
package kafkaserver

import _ "embed"

//go:embed recipe.yaml
var recipe string

// Recipe returns the drivers' Definition.Recipe: kafka, then redpanda.
func Recipe() []byte { return []byte(recipe) }
