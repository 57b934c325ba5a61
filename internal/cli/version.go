package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/layout"
)

// versionCommand is `weir version`.
type versionCommand struct {
	JSON bool `name:"json" help:"Print a JSON object on stdout."`
}

// versions is what --json prints.
type versions struct {
	Schema   string `json:"schema"`
	Weir     string `json:"weir"`
	Revision string `json:"revision,omitempty"` // of the source; empty: the build does not say
	Modified bool   `json:"modified"`           // the source differed from the revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`

	Clients []usedModule `json:"clients"` // libraries of the drivers
	Servers []usedModule `json:"servers"` // that weir embeds
}

// A usedModule is a module and the drivers that use it.
type usedModule struct {
	Path    string   `json:"module"`
	Version string   `json:"version,omitempty"` // empty: the build does not say
	Drivers []string `json:"drivers"`
}

// run prints the versions.
func (c *versionCommand) run(_ context.Context, e *env) Code {
	v := versionsOf(e.Drivers)
	if err := e.answer(c.JSON, v, true, v.show); err != nil {
		e.complain(fmt.Errorf("writing the versions: %w", err))
		return Failed
	}
	return OK
}

func versionsOf(drivers []driver.Definition) versions {
	v := versions{
		Schema: "weir.version/v1", Weir: buildinfo.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Clients: used(drivers, func(d driver.Definition) string { return d.Client }),
		Servers: used(drivers, func(d driver.Definition) string { return d.Embeds }),
	}
	v.Revision, v.Modified = buildinfo.Revision()
	return v
}

// used returns the modules that drivers name, by path, each with its drivers.
func used(drivers []driver.Definition, of func(driver.Definition) string) []usedModule {
	users := map[string][]string{}
	for _, d := range drivers {
		if path := of(d); path != "" {
			users[path] = append(users[path], d.Name)
		}
	}
	all := []usedModule{}
	for _, path := range slices.Sorted(maps.Keys(users)) {
		slices.Sort(users[path])
		all = append(all, usedModule{path, buildinfo.Module(path), users[path]})
	}
	return all
}

func (v *versions) show(p *layout.Page) {
	revision := "not recorded in this build"
	if v.Revision != "" {
		revision = v.Revision + map[bool]string{true: ", modified", false: ""}[v.Modified]
	}
	t := layout.Listing("", "")
	t.Row("weir", v.Weir)
	t.Row("revision", revision)
	t.Row("go", fmt.Sprintf("%s %s/%s", v.Go, v.OS, v.Arch))
	for _, list := range []struct {
		word    string
		modules []usedModule
	}{{"client", v.Clients}, {"server", v.Servers}} {
		for _, m := range list.modules {
			t.Row(list.word, fmt.Sprintf("%s %s (%s)", m.Path, cmp.Or(m.Version, "version not recorded"), strings.Join(m.Drivers, ", ")))
		}
	}
	p.Table(t)
}
