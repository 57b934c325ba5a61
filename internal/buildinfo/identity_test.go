package buildinfo

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

func TestVersionsIdentifyingSource(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: modified}}
	}
	for name, tt := range map[string]struct {
		info  debug.BuildInfo
		exact bool
	}{
		"a release":             {debug.BuildInfo{Main: debug.Module{Path: weir, Version: "v1.2.0"}}, true},
		"a revision":            {debug.BuildInfo{Main: debug.Module{Path: weir, Version: "(devel)"}, Settings: vcs("false")}, true},
		"a modified revision":   {debug.BuildInfo{Main: debug.Module{Path: weir, Version: "(devel)"}, Settings: vcs("true")}, false},
		"a dirty version":       {debug.BuildInfo{Main: debug.Module{Path: weir, Version: "v0.0.0-20260101000000-0123456789ab+dirty"}}, false},
		"nothing":               {debug.BuildInfo{Main: debug.Module{Path: weir, Version: "(devel)"}}, false},
		"a program with a weir": {debug.BuildInfo{Main: debug.Module{Path: "example.com/x"}, Deps: []*debug.Module{{Path: weir, Version: "v1.2.0"}}, Settings: vcs("true")}, true},
	} {
		if got := exact(&tt.info); got != tt.exact {
			t.Errorf("%s: exact is %v", name, got)
		}
	}
}

func TestWeirAllNamesItself(t *testing.T) {
	for path, want := range map[string]string{weir + "/cmd/weir": "", weir + "/cmd/weir-all": "/weir-all", "example.com/cmd/x": "", weir + "/internal/cli.test": ""} {
		if got := variant(&debug.BuildInfo{Path: path}); got != want {
			t.Errorf("%s: %q; want %q", path, got, want)
		}
	}
}

func TestBuildWithoutRevisionIsNamedByHash(t *testing.T) {
	own := must.Get(Identity())(t)
	if !regexp.MustCompile(`^[^@]+@[a-z0-9]+/[a-z0-9]+:[0-9a-f]{12}$`).MatchString(own) { // of a test's binary
		t.Errorf("the identity is %q", own)
	}
	if again, err := Identity(); err != nil || again != own {
		t.Errorf("the identity is %q and %q, %v", own, again, err)
	}
	if v := VersionsOf(nil); v.Weir != own || Build() != own {
		t.Errorf("weir version says %q, and results %q; want %q", v.Weir, Build(), own)
	}
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"v1.2.0", "v1.2.0", true},
		{"v1.2.0", "v1.2.1", false},
		{"devel", "devel@linux/amd64:000000000001", false},
		{"devel@linux/amd64:000000000001", "devel@linux/amd64:000000000001", true},
		{"devel@linux/amd64:000000000001", "devel@linux/amd64:000000000002", false},
		{"devel@linux/amd64:000000000001", "devel@darwin/arm64:000000000002", true},
		{"devel@linux/amd64:000000000001", "devel-0123456789ab@darwin/arm64:000000000002", false},
		{"devel@linux/amd64:000000000001", "devel/weir-all@linux/amd64:000000000002", false},
		{"devel@linux/amd64:000000000001", "devel/weir-all@darwin/arm64:000000000002", false},
		{"v1.2.0", "v1.2.0@darwin/arm64:000000000002", false},
	} {
		if got := Same(tt.a, tt.b); got != tt.same || Same(tt.b, tt.a) != tt.same {
			t.Errorf("%s and %s: same is %v", tt.a, tt.b, got)
		}
	}
}

func TestBuildIDIsThatOfGo(t *testing.T) {
	id := "uF07MIlZfS82FM4_NJ3I/81NCA-kYbDYIm1aESy-d/iO7_dspU7IHouqk134E8/Jxl3njBCfEkMVaZMxNP7"
	note := "\x7fELF\x04\x00\x00\x00S\x00\x00\x00\x04\x00\x00\x00Go\x00\x00"
	for name, c := range map[string]struct{ file, want string }{
		"ELF":                    {note + id + "\x00\x03\x00", id},
		"another format":         {"\xcf\xfa\xff Go build ID: \"" + id + "\"\n \xff", id},
		"one of a builder":       {note + "redacted\x00\x03\x00", ""},
		"one of a package":       {note + id[:41] + "\x00\x03\x00", ""},
		"none":                   {"\x7fELF", ""},
		"far from the beginning": {strings.Repeat("x", 64<<10) + note + id + "\x00", ""},
	} {
		if got, err := buildID(strings.NewReader(c.file)); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	f := must.Get(Program())(t)
	defer func() { _ = f.Close() }()
	if got, err := buildID(f); err != nil || len(got) != len(id) {
		t.Errorf("of this test: %q, %v", got, err)
	}
}

func TestFileNamesBuildWithoutID(t *testing.T) {
	for _, text := range []string{"one", "two"} {
		f := must.Get(os.Create(filepath.Join(t.TempDir(), "program")))(t)
		defer func() { _ = f.Close() }()
		must.Get(f.WriteString(text))(t)
		sum, err := fingerprint(f)
		if want := sha256.Sum256([]byte(text)); err != nil || string(sum) != string(want[:]) {
			t.Errorf("%s: %x, %v; want %x", text, sum, err, want)
		}
	}
}

// A fleet sends stripped copies of itself to hosts: they must run, and count as the same build.
func TestStrippedProgramIsTheSameBuild(t *testing.T) {
	if os.Getenv("WEIR_PRINT_IDENTITY") != "" {
		id, err := Identity()
		fmt.Println(id, err)
		os.Exit(0)
	}
	f := must.Get(Program())(t)
	defer func() { _ = f.Close() }()
	loaded := must.Get(Stripped(f))(t)
	b := must.Get(io.ReadAll(loaded))(t)
	st := must.Get(f.Stat())(t)
	if runtime.GOOS == "linux" && int64(len(b)) >= st.Size() {
		t.Errorf("%d of %d bytes are left", len(b), st.Size())
	}
	path := filepath.Join(t.TempDir(), "stripped")
	must.Do(t, os.WriteFile(path, b, 0o700))
	cmd := exec.Command(path, "-test.run", "^TestStrippedProgramIsTheSameBuild$")
	cmd.Env = append(os.Environ(), "WEIR_PRINT_IDENTITY=1")
	out, err := cmd.CombinedOutput()
	own, _ := Identity()
	if got := strings.TrimSpace(string(out)); err != nil || got != own+" <nil>" {
		t.Errorf("the stripped program is %q (%v); want %q", got, err, own)
	}
	again := must.Get(os.Open(path))(t)
	defer func() { _ = again.Close() }()
	twice := must.Get(Stripped(again))(t)
	if c, err := io.ReadAll(twice); err != nil || !bytes.Equal(b, c) {
		t.Errorf("stripped twice it differs: %v", err)
	}
}
