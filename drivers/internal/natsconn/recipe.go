package natsconn

import _ "embed"

//go:embed recipe.yaml
var recipe string

// Recipe returns Definition.Recipe of both drivers.
func Recipe() []byte { return []byte(recipe) }
