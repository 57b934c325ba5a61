// Package tested reads and writes the record of what drivers have been tested against: which
// server, its version, when. Conformance runs write it (drivertest.Run, if enabled by the
// environment), pages show it. Do not edit it by hand.
package tested

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
)

// Environment variables that make a conformance run record its result.
const (
	VariablePath   = "WEIR_TESTED"        // the file to record in; unset or empty: none
	VariableRecipe = "WEIR_TESTED_RECIPE" // recipe that started the system at hand; empty: the test itself did
)

// An Entry is one conformance suite that passed entirely.
type Entry struct {
	Driver  string   `yaml:"driver" json:"-"`
	Test    string   `yaml:"test" json:"test"`                         // name of the test, for go test -run
	Recipe  string   `yaml:"recipe,omitempty" json:"recipe,omitempty"` // that started the system; empty: the test itself did
	Server  string   `yaml:"server" json:"server"`                     // driver.Facts.Name
	Version string   `yaml:"version" json:"version"`                   // as the server reported it
	Nodes   int      `yaml:"nodes" json:"nodes"`                       // servers that formed the system; 0 if there were none
	Client  string   `yaml:"client,omitempty" json:"client,omitempty"` // version of the client library; empty if there is none
	Passed  int      `yaml:"passed" json:"passed"`                     // checks
	Waived  []string `yaml:"waived,omitempty" json:"waived,omitempty"` // waived checks, each with a reason in the driver's test
	Date    string   `yaml:"date" json:"date"`                         // the day in UTC, 2006-01-02
}

// head is the first line of the file.
const head = "# What each driver's conformance suite last passed against. Written by `make tested`, never by hand.\n"

// Parse reads a record. Unknown keys are errors.
func Parse(b []byte) ([]Entry, error) {
	var es []Entry
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	if err := yaml.UnmarshalWithOptions(b, &es, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("reading the record of tests: %w", err)
	}
	return es, nil
}

// Format writes a record, sorted by driver and test. Parse reads it.
func Format(es []Entry) ([]byte, error) {
	es = slices.Clone(es)
	slices.SortStableFunc(es, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Test, b.Test))
	})
	b, err := yaml.Marshal(es)
	if err != nil {
		return nil, fmt.Errorf("writing the record of tests: %w", err)
	}
	return append([]byte(head), b...), nil
}

// Put returns es with e replacing the earlier entry of the same test and driver.
func Put(es []Entry, e Entry) []Entry {
	same := func(x Entry) bool { return x.Driver == e.Driver && x.Test == e.Test }
	return append(slices.DeleteFunc(slices.Clone(es), same), e)
}

// Of returns the entries of a driver.
func Of(es []Entry, driver string) []Entry {
	return slices.DeleteFunc(slices.Clone(es), func(e Entry) bool { return e.Driver != driver })
}
