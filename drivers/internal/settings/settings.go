// Package settings combines the values that several servers or queues report for the same settings.
// Use Values for driver.Facts if a setting may have more than one value.
package settings

import (
	"slices"
	"strings"
)

// Values holds the values of settings, by name.
type Values map[string][]string

// Add adds a value.
func (v Values) Add(name, value string) {
	if !slices.Contains(v[name], value) {
		v[name] = append(v[name], value)
	}
}

// Of returns a setting's distinct values, in order.
func (v Values) Of(name string) string {
	return strings.Join(slices.Sorted(slices.Values(v[name])), ", ")
}

// Into copies them into the settings of facts.
func (v Values) Into(settings map[string]string) {
	for name := range v {
		settings[name] = v.Of(name)
	}
}
