package hosts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/scenario/tree"
)

func TestFileNamesEachFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "text"), []byte("no program"), 0o600))
	other := "linux/arm64"
	if here() == other {
		other = "linux/amd64"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "h.yaml: is empty (it begins with weir-hosts: 1)"},
		{"no version", "hosts: {a: {}}", "h.yaml:1:1: weir-hosts: is missing, or not 1 (1, the version of the format)"},
		{"no hosts", "weir-hosts: 1", "h.yaml:1:1: hosts: is missing or does not fit (a mapping of 1 to 512 hosts by the names of their agents)"},
		{"unknown keys", "weir-hosts: 1\nport: 3\nhosts:\n  a: {shh: x}", "h.yaml:2:1: port: unknown key (weir-hosts, listen, programs, hosts)\n" +
			"h.yaml:4:7: hosts.a.shh: unknown key (ssh, folder, platform, labels, allow, bind, allow-env, allow-file, fifo)"},
		{"a name twice", "weir-hosts: 1\nhosts:\n  a: {}\n  a: {}", "h.yaml:4:3: hosts.a: is given twice (once)"},
		{"a host twice", "weir-hosts: 1\nhosts:\n  a: {ssh: x@h}\n  b:\n    ssh: x@h", "h.yaml:5:10: hosts.b.ssh: is the same host as a (each host once)"},
		{"a host twice by its name", "weir-hosts: 1\nhosts:\n  a: {ssh: b}\n  b:", "h.yaml:4:3: hosts.b: is the same host as a (each host once)"},
		{"an option as a destination", "weir-hosts: 1\nhosts:\n  a: {ssh: -oProxyCommand=x}", "h.yaml:3:12: hosts.a.ssh: is not a destination (a destination as ssh takes it, such as user@host or ssh://user@host:2222)"},
		{"a command as a folder", "weir-hosts: 1\nhosts:\n  a: {folder: /tmp/$(x)}", "h.yaml:3:15: hosts.a.folder: is not a folder (an absolute path of letters, digits and . _ @ + -)"},
		{"no program for a platform", "weir-hosts: 1\nhosts:\n  a: {}\n  b: {platform: " + other + "}", "h.yaml:4:17: hosts.b.platform: there is no program for " + other + " (a line in programs, such as " + other + ": ./weir)"},
		{"a program that is none", "weir-hosts: 1\nprograms: {" + other + ": text}\nhosts: {a: {}}", "is not a program for Linux (a weir built for " + other + ")"},
		{"no such program", "weir-hosts: 1\nprograms: {" + other + ": none}\nhosts: {a: {}}", "there is no such file (a weir built for " + other + ")"},
		{"no such platform", "weir-hosts: 1\nprograms: {plan9/arm: text}\nhosts: {a: {}}", "h.yaml:2:12: programs.plan9/arm: is not a platform (linux/amd64, linux/arm64, darwin/amd64, darwin/arm64)"},
		{"values", "weir-hosts: 1\nlisten: x\nhosts:\n  a:\n    allow: [brokers]\n    bind: x\n    fifo: maybe\n    labels: {'k k': v}", "h.yaml:2:9: listen: \"x\" is not an address (HOST:PORT, with a port of 1 to 65535)\n" +
			"h.yaml:5:12: hosts.a.allow: \"brokers\" is not known (broker, faults)\nh.yaml:6:11: hosts.a.bind: is not an address (an IP address of the host)\nh.yaml:7:11: hosts.a.fifo: is not true or false (true, false)\n"},
	} {
		_, err := Parse("h.yaml", []byte(tt.text), func(p string) string { return filepath.Join(dir, p) })
		if faults := (tree.Faults)(nil); !errors.As(err, &faults) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n%v\nwant\n%s", tt.name, err, tt.want)
		}
	}
}

func TestFileBecomesArguments(t *testing.T) {
	t.Parallel()
	f := must.Get(Parse("h.yaml", []byte("weir-hosts: 1\nlisten: 10.0.0.1:7700\nhosts:\n  a:\n  b:\n    ssh: ssh://u@h:2222\n    labels: {zone: x, role: y}\n    allow: [broker, faults]\n    bind: 10.0.0.2\n    allow-env: PASSWORD\n    fifo: true\n"), func(p string) string { return p }))(t)
	if f.Listen != "10.0.0.1:7700" || len(f.Hosts) != 2 || f.Hosts[0].SSH != "a" || f.Hosts[1].SSH != "ssh://u@h:2222" {
		t.Errorf("%+v", f)
	}
	want := "--name b --label zone=x --label role=y --allow broker --allow faults --bind 10.0.0.2 --allow-env PASSWORD --fifo"
	if got := strings.Join(f.Hosts[1].args, " "); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// The files that documents show are right.
func TestDocumentsShowGoodFiles(t *testing.T) {
	t.Parallel()
	found := 0
	for _, doc := range []string{"formats/hosts.md", "fleets.md"} {
		text := must.Get(os.ReadFile(filepath.Join("../../../docs", doc)))(t)
		for _, block := range regexp.MustCompile("(?s)```yaml\n(weir-hosts.*?)```").FindAllSubmatch(text, -1) {
			found++
			self := must.Get(os.Executable())(t)
			shown := strings.ReplaceAll(string(block[1]), "linux/arm64", here()) // of which there is a program
			if _, err := Parse(doc, []byte(shown), func(string) string { return self }); err != nil {
				t.Error(err)
			}
		}
	}
	if found != 2 {
		t.Errorf("found %d files", found)
	}
}

// The checksums are those that the tools of a host print.
func TestCksumIsTheTools(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", strings.Repeat("weir\n", 1000)} {
		cmd := exec.Command("cksum")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			needs.Host(t, "cksum", err)
		}
		c := new(cksum)
		_, _ = c.Write([]byte(text))
		if got := strings.TrimSpace(string(out)); c.String() != got {
			t.Errorf("%d bytes: %s; want %s", len(text), c, got)
		}
	}
}

// tools makes a folder with these programs of this host, which is all that a script then finds.
func tools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "sh", "uname", "mkdir", "cat", "chmod", "mv", "rm", "rmdir") {
		path, err := exec.LookPath(name)
		if err != nil {
			needs.Host(t, "posix", err)
		}
		must.Do(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

// Each way to check a program, with and without compression, on a host that has nothing else.
func TestPutOnAnyHost(t *testing.T) {
	t.Parallel()
	b := &binary{path: filepath.Join(t.TempDir(), "program")}
	text := strings.Repeat("program\n", 10_000)
	must.Do(t, os.WriteFile(b.path, []byte(text), 0o600))
	b = must.Get(newBinary(b.path))(t)
	if sum := sha256.Sum256([]byte(text)); b.sha256 != hex.EncodeToString(sum[:]) {
		t.Fatalf("the hash is %s", b.sha256)
	}
	packed := must.Get(b.packed())(t)
	for _, tt := range []struct {
		name  string
		tools []string
		how   string
		sent  []byte
		want  string
	}{
		{"sha256sum and gzip", []string{"sha256sum", "gzip"}, "gzip", packed, "weir: send\nweir: have\n"},
		{"openssl", []string{"openssl"}, "plain", []byte(text), "weir: send\nweir: have\n"},
		{"cksum", []string{"cksum"}, "plain", []byte(text), "weir: send\nweir: have\n"},
		{"cut short", []string{"sha256sum", "gzip"}, "gzip", packed[:len(packed)/2], "weir: send\n"},
		{"changed", []string{"cksum"}, "plain", []byte(text[1:] + "x"), "weir: send\n"},
	} {
		path, home := tools(t, tt.tools...), t.TempDir()
		put := func() string {
			// The login shell has the command as one argument.
			cmd := exec.Command(filepath.Join(path, "sh"), "-c", remote(put, home, b.sha256, b.crc, tt.how))
			cmd.Env, cmd.Stdin = []string{"PATH=" + path}, bytes.NewReader(tt.sent)
			out, _ := cmd.Output() // its failure is an answer that is missing
			return string(out)
		}
		if got := put(); got != tt.want {
			t.Errorf("%s: %q; want %q", tt.name, got, tt.want)
		}
		if !strings.HasSuffix(tt.want, "have\n") {
			if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
				t.Errorf("%s: it left %v, %v", tt.name, left, err)
			}
			continue
		}
		if got := put(); got != "weir: have\n" {
			t.Errorf("%s: the second time: %q", tt.name, got)
		}
		kept, err := os.ReadFile(filepath.Join(home, "weir-programs", b.sha256, "weir"))
		if err != nil || string(kept) != text {
			t.Errorf("%s: %d bytes, %v; want %d", tt.name, len(kept), err, len(text))
		}
	}
}

// The folder for caches of the user, made and left as little as possible.
func TestPlaceAndPurge(t *testing.T) {
	t.Parallel()
	path, home := tools(t), t.TempDir()
	run := func(script, folder string, env ...string) string {
		cmd := exec.Command(filepath.Join(path, "sh"), "-c", remote(script, folder))
		cmd.Env = append(env, "PATH="+path)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run(place, "", "HOME="+home, "XDG_CACHE_HOME="); !strings.Contains(out, "weir: platform ") || !strings.Contains(out, "weir: folder "+home+"/.cache/weir\n") || strings.Contains(out, "gzip") {
		t.Errorf("at home: %s", out)
	}
	if out := run(place, "", "HOME="+home, "XDG_CACHE_HOME="+home+"/x"); !strings.Contains(out, "weir: folder "+home+"/x/weir\n") {
		t.Errorf("with XDG_CACHE_HOME: %s", out)
	}
	if out := run(place, home+"/none", "HOME="+home); !strings.Contains(out, "weir: no "+home+"/none: ") || strings.Contains(out, "weir: folder") {
		t.Errorf("a folder that does not exist: %s", out)
	}
	if out := run(purge, "", "HOME="+home, "XDG_CACHE_HOME="); out != "" {
		t.Errorf("purge: %s", out)
	}
	if _, err := os.Stat(home + "/.cache"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder for caches is left: %v", err)
	}
}

// A socket folder goes with its process, or when the next one is made.
func TestNewDirRemovesOldOnes(t *testing.T) {
	t.Parallel()
	below := t.TempDir()
	dead := filepath.Join(below, "ssh-dead")
	must.Do(t, os.Mkdir(dead, 0o700))
	first, remove := must.Two(NewDir(context.Background(), below))(t)
	second, removeSecond := must.Two(NewDir(context.Background(), below))(t)
	for path, want := range map[string]bool{dead: false, first: true, second: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v; want %v", path, err == nil, want)
		}
	}
	remove()
	removeSecond()
	if left, err := filepath.Glob(filepath.Join(below, "ssh-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
