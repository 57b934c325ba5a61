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

// A plan is what is asked for.
type plan struct {
	Name    string // of the driver: "redis-lists"
	Package string // and its folder: "redislists"
	Title   string // the system as its makers write it
}

// Bounds of texts, in characters. A recipe's name may have no more.
const longestName, longestTitle = 40, 60

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// newPlan checks what was asked for, without a look at any file.
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

// checkTitle refuses what cannot stand in a line of a comment.
func (p plan) checkTitle() error {
	switch {
	case !utf8.ValidString(p.Title) || strings.ContainsFunc(p.Title, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the title is not one line of printable characters")
	case utf8.RuneCountInString(p.Title) > longestTitle:
		return fmt.Errorf("the title has %d characters (at most %d)", utf8.RuneCountInString(p.Title), longestTitle)
	}
	return nil
}

// taken are package names that mean something to Go or to the house, and those that
// internal/policy refuses because they say nothing.
func taken() []string {
	return []string{
		"all", "driver", "drivers", "drivertest", "init", "internal", "main", "standard", "testdata", "vendor",
		"base", "common", "core", "helper", "helpers", "lib", "misc", "types", "util", "utils",
	}
}
