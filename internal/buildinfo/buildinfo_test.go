package buildinfo

import (
	"runtime/debug"
	"testing"
)

// TestWeirVersionDiffersFromEmbeddingProgram: a program with drivers of its own has
// a version and a revision too.
func TestWeirVersionDiffersFromEmbeddingProgram(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for _, tt := range []struct {
		name      string
		info      debug.BuildInfo
		want, rev string
	}{
		{"weir at a version", debug.BuildInfo{Main: debug.Module{Path: weir, Version: "v1.2.0"}, Settings: vcs}, "v1.2.0", "0123456789abcdef"},
		{"weir from its folder", debug.BuildInfo{Main: debug.Module{Path: weir, Version: "(devel)"}, Settings: vcs}, "devel-0123456789ab", "0123456789abcdef"},
		{"another program", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/x", Version: "v7.0.0"}, Deps: []*debug.Module{{Path: weir, Version: "v1.2.0"}}, Settings: vcs,
		}, "v1.2.0", ""},
		{"another program, with weir from a folder", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/x"}, Settings: vcs,
			Deps: []*debug.Module{{Path: weir, Version: "v1.2.0", Replace: &debug.Module{Path: "../weir"}}},
		}, "devel", ""},
	} {
		if got := version(&tt.info); got != tt.want {
			t.Errorf("%s: version %q; want %q", tt.name, got, tt.want)
		}
		if got, _ := revision(&tt.info); got != tt.rev {
			t.Errorf("%s: revision %q; want %q", tt.name, got, tt.rev)
		}
	}
}
