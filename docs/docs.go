// Package docs holds the documents that the program itself shows.
package docs

import _ "embed"

//go:embed glossary.md
var glossary string

// Glossary returns glossary.md.
func Glossary() string { return glossary }
