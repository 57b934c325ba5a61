// Package settings gathers what several servers, or several queues, say of the same
// settings. Use Values for driver.Facts where one setting may have more than one value.
package settings

import (
	"slices"
	"strings"
)

// Values are the values of settings, by name.
type Values map[string][]string

// Add notes a value.
func (v Values) Add(name, value string) {
	if !slices.Contains(v[name], value) {
		v[name] = append(v[name], value)
	}
}

// Of returns the different values of a setting, in their order.
func (v Values) Of(name string) string {
	return strings.Join(slices.Sorted(slices.Values(v[name])), ", ")
}

// Into writes them into the settings of facts.
func (v Values) Into(settings map[string]string) {
	for name := range v {
		settings[name] = v.Of(name)
	}
}
