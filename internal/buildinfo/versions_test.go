package buildinfo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/view/layout"
)

func TestModulesAreListedOnceWithTheirDrivers(t *testing.T) {
	got := used([]driver.Definition{{Name: "b", Client: "m/x"}, {Name: "none"}, {Name: "a", Client: "m/x"}, {Name: "c", Client: "m/a"}},
		func(d driver.Definition) string { return d.Client })
	want := []Used{{Path: "m/a", Drivers: []string{"c"}}, {Path: "m/x", Drivers: []string{"a", "b"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestVersionsReportUnrecorded(t *testing.T) {
	v := Versions{Weir: "v1.2.3", Revision: "abc", Modified: true, Go: "go1.26", OS: "linux", Arch: "arm64", Servers: []Used{{Path: "m/s", Drivers: []string{"x", "y"}}}}
	p := new(layout.Page)
	v.Show(p)
	want := "weir      v1.2.3\nrevision  abc, modified\ngo        go1.26 linux/arm64\nserver    m/s version not recorded (x, y)\n"
	if diff := cmp.Diff(want, layout.Text{}.Page(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
