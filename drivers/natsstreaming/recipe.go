package natsstreaming

import _ "embed"

//go:embed recipe.yaml
var recipe string
