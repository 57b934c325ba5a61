package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sort"

	"github.com/weirmq/weir/driver"
)

type versionCommand struct{}

// run prints weir's version, Go's, and those of the drivers' client libraries.
func (*versionCommand) run(_ context.Context, e *env) Code {
	if err := e.versions(e.Stdout); err != nil {
		e.complain(fmt.Errorf("writing the versions: %w", err))
		return Failed
	}
	return OK
}

func (e *env) versions(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "weir %s\n%s %s/%s\n", weirVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	var clients []string
	for _, d := range e.Drivers {
		if c := client(d); c != "" {
			clients = append(clients, c)
		}
	}
	sort.Strings(clients)
	for i, c := range clients {
		if i > 0 && clients[i-1] == c {
			continue
		}
		if _, err := fmt.Fprintln(w, c); err != nil {
			return err
		}
	}
	return nil
}

// weirVersion is that of the main module with the revision it was built from,
// "devel" where the build says neither.
func weirVersion() string {
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

// client returns the path and version of a driver's client library, "" where it
// has none.
func client(d driver.Definition) string {
	if d.Client == "" {
		return ""
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == d.Client {
				return m.Path + " " + m.Version
			}
		}
	}
	return d.Client
}
