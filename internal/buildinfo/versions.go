package buildinfo

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/view/layout"
)

// Versions is what weir version --json prints.
type Versions struct {
	Schema   string `json:"schema"`
	Weir     string `json:"weir"`
	Revision string `json:"revision,omitempty"` // of the source; empty: the build does not say
	Modified bool   `json:"modified"`           // the source differed from the revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`

	Clients []Used `json:"clients"` // libraries of the drivers
	Servers []Used `json:"servers"` // that weir embeds
}

// A Used is a module and the drivers that use it.
type Used struct {
	Path    string   `json:"module"`
	Version string   `json:"version,omitempty"` // empty: the build does not say
	Drivers []string `json:"drivers"`
}

// VersionsOf returns those of this program with its drivers.
func VersionsOf(drivers []driver.Definition) *Versions {
	v := &Versions{
		Schema: "weir.version/v1", Weir: Build(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Clients: used(drivers, func(d driver.Definition) string { return d.Client }),
		Servers: used(drivers, func(d driver.Definition) string { return d.Embeds }),
	}
	v.Revision, v.Modified = Revision()
	return v
}

// used returns the modules that drivers name, by path, each with its drivers.
func used(drivers []driver.Definition, of func(driver.Definition) string) []Used {
	users := map[string][]string{}
	for _, d := range drivers {
		if path := of(d); path != "" {
			users[path] = append(users[path], d.Name)
		}
	}
	all := []Used{}
	for _, path := range slices.Sorted(maps.Keys(users)) {
		slices.Sort(users[path])
		all = append(all, Used{path, Module(path), users[path]})
	}
	return all
}

// Show puts them on a page.
func (v *Versions) Show(p *layout.Page) {
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
		modules []Used
	}{{"client", v.Clients}, {"server", v.Servers}} {
		for _, m := range list.modules {
			t.Row(list.word, fmt.Sprintf("%s %s (%s)", m.Path, cmp.Or(m.Version, "version not recorded"), strings.Join(m.Drivers, ", ")))
		}
	}
	p.Table(t)
}
