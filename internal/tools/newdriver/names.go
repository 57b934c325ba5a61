package main

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A plan describes the driver to create.
type plan struct {
	Name    string // of the driver: "redis-lists"
	Package string // also its folder: "redislists"
	Title   string // the system's name as its makers write it
}

// Limits in characters. A recipe's name may not be longer.
const longestName, longestTitle = 40, 60

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// newPlan checks the request without reading any file.
func newPlan(name, title string) (plan, error) {
	p := plan{Name: name, Package: strings.ReplaceAll(name, "-", ""), Title: strings.TrimSpace(title)}
	if p.Title == "" {
		p.Title = name
	}
	switch {
	case !nameForm.MatchString(name):
		return p, fmt.Errorf("%q is not a name of a driver (small letters and digits, the first a letter, with single hyphens between them: redis-streams)", name)
	case len(name) > longestName:
		return p, fmt.Errorf("%q is not a name of a driver: %d characters (at most %d)", name, len(name), longestName)
	case token.IsKeyword(p.Package) || types.Universe.Lookup(p.Package) != nil:
		return p, fmt.Errorf("%q is not a name of a driver: Go has the word %s, its package cannot", name, p.Package)
	case slices.Contains(taken(), p.Package):
		return p, fmt.Errorf("%q is not a name of a driver: its package would be called %s, which means something else here", name, p.Package)
	}
	return p, p.checkTitle()
}

// checkTitle rejects characters that cannot be in a comment line.
func (p plan) checkTitle() error {
	switch {
	case !utf8.ValidString(p.Title) || strings.ContainsFunc(p.Title, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the title is not one line of printable characters")
	case utf8.RuneCountInString(p.Title) > longestTitle:
		return fmt.Errorf("the title has %d characters (at most %d)", utf8.RuneCountInString(p.Title), longestTitle)
	}
	return nil
}

// taken returns package names with a meaning in Go or in this repository, and those that
// internal/policy rejects as meaningless.
func taken() []string {
	return []string{
		"all", "driver", "drivers", "drivertest", "init", "internal", "main", "standard", "testdata", "vendor",
		"base", "common", "core", "helper", "helpers", "lib", "misc", "types", "util", "utils",
	}
}
