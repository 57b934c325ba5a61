// Package buildinfo tells what this program was built from: its own version, and
// those of the modules in it. What the build does not record is left out.
package buildinfo

import (
	"runtime/debug"
	"strings"

	"github.com/weirmq/weir/driver"
)

// weir is the path of weir's own module.
const weir = "github.com/weirmq/weir"

// Version returns weir's. Where weir is the main module, the revision it was built from
// follows; in another program, the version is that of weir's module in it. Where the
// build says none of this, it is "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return version(info)
}

// module returns weir's module, which is the main one or one in another program.
func module(info *debug.BuildInfo) debug.Module {
	if info == nil {
		return debug.Module{}
	}
	m := info.Main
	for _, d := range info.Deps {
		if d.Path == weir {
			m = *d
		}
	}
	if m.Replace != nil {
		m = *m.Replace
	}
	return m
}

func version(info *debug.BuildInfo) string {
	if m := module(info); m.Version != "" && m.Version != "(devel)" {
		return m.Version
	}
	if revision, _ := revision(info); len(revision) >= 12 {
		return "devel-" + revision[:12]
	}
	return "devel"
}

// Downloaded returns the version at which weir's module came from a proxy or a repository; ""
// where weir was built from a folder.
func Downloaded() string {
	info, _ := debug.ReadBuildInfo()
	return downloaded(info)
}

func downloaded(info *debug.BuildInfo) string {
	if m := module(info); m.Sum != "" {
		return m.Version
	}
	return ""
}

// Revision returns the revision of weir's source, and whether the source differed from
// it; "" where the build does not say, as in a program that adds drivers to weir.
func Revision() (revised string, modified bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	return revision(info)
}

func revision(info *debug.BuildInfo) (revised string, modified bool) {
	if info.Main.Path != weir {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revised = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return revised, modified
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
