//go:build unix

package broker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
)

// TestInstallOfAnotherRelease checks that programs of a newer release run with its libraries, and that
// the host's own lists and programs are ignored.
func TestInstallOfAnotherRelease(t *testing.T) {
	r := recipeFrom(t, "apt: {packages: [thing], release: trixie, programs: {thing: 'usr/lib/thing-*/thing', text: usr/bin/text}}")
	targets := "Debian Debian-Security http://mirror.example/security/\nDebian Debian http://mirror.example/debian/\n"
	var source string
	h := fakeHost([]string{"apt-get", "dpkg-deb", "thing", "text"}, func(c call) ([]byte, error) {
		switch {
		case c.args[1] == "indextargets":
			return []byte(targets), nil
		case filepath.Base(c.args[0]) == "apt-get":
			for _, a := range c.args {
				if file, ok := strings.CutPrefix(a, "Dir::Etc::sourcelist="); ok {
					b, err := os.ReadFile(file)
					if err != nil {
						t.Error(err)
					}
					source = string(b)
				}
				if dir, ok := strings.CutPrefix(a, "Dir::Cache::Archives="); ok {
					write(t, filepath.Join(dir, "thing_7_amd64.deb"), "", 0o644)
				}
			}
		case c.args[1] == "--extract":
			loader := filepath.Join(c.args[3], "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
			write(t, loader, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n", 0o755)
			write(t, filepath.Join(c.args[3], "usr/lib/thing-7/thing"), "\x7fELF", 0o755)
			write(t, filepath.Join(c.args[3], "usr/bin/text"), "#!/bin/sh\nROOT=/usr/lib/thing\nexec \"$ROOT/7\" \"$0\"\n", 0o755)
			write(t, filepath.Join(c.args[3], "usr/lib/thing/7"), "#!/bin/sh\necho seven for \"$1\"\n", 0o755)
		case c.args[1] == "--field":
			return []byte("1:1-7+deb13u2\n"), nil
		}
		return nil, nil
	})
	in, _ := must.Two(installed(t, h, r))(t)
	if want := "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian/ trixie main\n"; source != want {
		t.Errorf("source %q; want %q", source, want)
	}
	out, err := exec.Command(in.Programs["thing"], "one", "two words").Output()
	libraries := filepath.Join(in.Dir, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(in.Dir, "usr/lib")
	want := strings.Join([]string{"--argv0", in.Programs["thing"], "--library-path", libraries, in.Programs["thing"] + ".real", "one", "two words", ""}, "\n")
	if diff := cmp.Diff(want, string(out)); err != nil || diff != "" {
		t.Errorf("what the loader was given (-want +got), %v:\n%s", err, diff)
	}
	if out, err := exec.Command(in.Programs["text"]).Output(); err != nil || string(out) != "seven for "+in.Programs["text"]+"\n" {
		t.Errorf("a script that holds a path of a host with the packages: %q, %v", out, err)
	}
	other := *r
	other.Version = "2"
	if _, _, err := installed(t, h, &other); err == nil || !strings.Contains(err.Error(), "debian trixie has version 1 of thing now, and the recipe is for 2 (--via docker)") {
		t.Errorf("a release with another version: %v", err)
	}
	targets = "Ubuntu Ubuntu http://mirror.example/ubuntu/\n"
	if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), "no mirror of Debian (WEIR_DEBIAN_MIRROR=URL names one") {
		t.Errorf("a host of another distribution: %v", err)
	}
	h.env = func(string) string { return "http://named.example/debian/" }
	want = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://named.example/debian/ trixie main\n"
	if _, _, err := installed(t, h, r); err != nil || source != want {
		t.Errorf("a host of another distribution: source %q, %v; want %q", source, err, want)
	}
}
