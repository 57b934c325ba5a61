// Package buildinfo tells what this program was built from: its own version, and
// those of the modules in it. What the build does not record is left out.
package buildinfo

import (
	"runtime/debug"
	"strings"

	"github.com/weirmq/weir/driver"
)

// Version returns that of the main module with the revision it was built from,
// "devel" where the build says neither.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "-" + s.Value[:12]
			}
		}
	}
	return v
}

// Module returns the version of a module that the program was built with, "" where
// the build does not say.
func Module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return ""
}

// Client returns the path and version of a driver's client library, "" where it
// has none.
func Client(d driver.Definition) string {
	return strings.TrimSpace(d.Client + " " + Module(d.Client))
}
