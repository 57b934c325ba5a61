package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/proctree"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// A canary is a password that must not appear anywhere. Its core is identical in a URL, JSON, YAML and a Go
// string; its ends differ.
const (
	canaryCore = "c4n4RyZq8wTkP5"
	canary     = `%41"&` + canaryCore + `/+ü='`
)

// sightings returns what the canary may look like.
func sightings() map[string]string {
	seen := map[string]string{
		"plain":              canaryCore,
		"hexadecimal":        hex.EncodeToString([]byte(canaryCore)),
		"hexadecimal, LARGE": strings.ToUpper(hex.EncodeToString([]byte(canaryCore))),
		"backwards":          backwards(canaryCore),
		"a list of bytes":    strings.Trim(fmt.Sprintf("%d", []byte(canaryCore)), "[]"),
	}
	for shift := range 3 {
		// The digits that only the core decides, wherever it begins in what is encoded.
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), canaryCore...))
		seen[fmt.Sprintf("base64, %d bytes on", shift)] = text[(shift*8+5)/6 : (shift+len(canaryCore))*8/6]
	}
	return seen
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// sighted returns how the canary stands in text, "" where it does not.
func sighted(text []byte) string {
	for how, form := range sightings() {
		if bytes.Contains(text, []byte(form)) {
			return how
		}
	}
	return ""
}

// Guards against a search that finds nothing.
func TestCanaryIsDetected(t *testing.T) {
	for name, text := range map[string]string{
		"plain":              "x" + canary + "y",
		"in a Go string":     fmt.Sprintf("%q", canary),
		"in a URL":           "nats://user:%2541%22%26" + canaryCore + "%2F%2B%C3%BC%3D'@host",
		"in hexadecimal":     fmt.Sprintf("%x", canary),
		"in base64":          base64.StdEncoding.EncodeToString([]byte(canary)),
		"in base64 of a URL": base64.URLEncoding.EncodeToString([]byte("user:" + canary)),
		"in base64, of more": base64.StdEncoding.EncodeToString([]byte("ab" + canary)),
		"as bytes":           fmt.Sprintf("%d", []byte(canary)),
	} {
		if sighted([]byte(text)) == "" {
			t.Errorf("%s: %s is not seen", name, text)
		}
	}
	if how := sighted([]byte("nothing to see here")); how != "" {
		t.Errorf("seen %s where it is not", how)
	}
}

// A flight is a run of weir in a process of its own that is watched for the
// canary.
type flight struct {
	dir    string // the working folder; the result is in r
	files  map[string]string
	env    map[string]string
	args   []string
	on     string // what to wait for on stderr,
	then   func(*os.Process)
	groups []string // of control, by their folders, that it belongs to from its beginning
	stdout watch
	stderr watch
}

// fly runs weir, returns its exit code, and fails the test if the canary appears anywhere.
func (f *flight) fly(t *testing.T) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.dir = filepath.Join(t.TempDir(), "run")
	temp := filepath.Join(filepath.Dir(f.dir), "temp")
	for _, dir := range []string{f.dir, temp} {
		must.Do(t, os.Mkdir(dir, 0o755))
	}
	for name, text := range f.files {
		must.Do(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"weir"}, f.args...) // by its name this binary is weir: see TestMain
	if len(f.groups) > 0 {
		// A shell goes there and becomes weir.
		weir := filepath.Join(t.TempDir(), "weir")
		must.Do(t, os.Symlink(self, weir))
		const join = `set -e; while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"`
		cmd = exec.CommandContext(t.Context(), "sh", slices.Concat([]string{"-c", join, "sh"}, f.groups, []string{"--", weir}, f.args)...)
	}
	cmd.Dir = f.dir
	cmd.Env = []string{"TMPDIR=" + temp, "HOME=" + temp, "PATH=" + os.Getenv("PATH"), "GORACE=" + quick}
	for k, v := range f.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout, cmd.Stderr = &f.stdout, &f.stderr
	must.Do(t, cmd.Start())
	if f.on != "" {
		f.stderr.when(f.on, func() { f.then(cmd.Process) })
	}
	look := guardian(cmd.Process.Pid)
	err = cmd.Wait()
	for _, s := range look() {
		t.Error(s)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"stdout": f.stdout.String(), "stderr": f.stderr.String()} {
		if how := sighted([]byte(text)); how != "" {
			t.Errorf("the canary is on %s (%s):\n%s", name, how, text)
		}
	}
	for path, how := range nests(t, filepath.Dir(f.dir), slices.Collect(maps.Keys(f.files))...) {
		t.Errorf("the canary is in %s (%s)", path, how)
	}
	return cmd.ProcessState.ExitCode()
}

// nests returns the files below dir, except the test's own, with the canary in their names or contents.
func nests(t *testing.T, dir string, own ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a guard removes it
			return nil
		}
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".disk") { // a disk's image is mostly holes
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if how := sighted(b); how != "" && !slices.Contains(own, filepath.Base(path)) {
			found[path] = how
		}
		if how := sighted([]byte(path)); how != "" {
			found[path] = "its name, " + how
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// guardian watches the command lines of a process and its descendants, and the descendants' environments,
// until the returned function is called.
func guardian(pid int) func() []string {
	if runtime.GOOS != "linux" {
		return func() []string { return nil } // no /proc
	}
	seen := map[string]bool{}
	read := func(pid int, file string) []byte {
		b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file)) // it may have ended
		return b
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(15 * time.Millisecond)
		defer tick.Stop()
		for {
			weir := read(pid, "cmdline")
			for _, p := range append([]int{pid}, proctree.Below(proctree.All(proctree.Host()), pid)...) {
				line := read(p, "cmdline")
				if p == pid || bytes.Equal(line, weir) {
					// weir itself, which got the canary in its environment, or a fork of it before its
					// exec.
					if how := sighted(line); how != "" {
						seen["the canary is in weir's command line ("+how+")"] = true
					}
					continue
				}
				for file, text := range map[string][]byte{"command line": line, "environment": read(p, "environ")} {
					if how := sighted(text); how != "" {
						seen[fmt.Sprintf("the canary is in the %s of the process %q (%s)", file, bytes.ReplaceAll(line, []byte{0}, []byte(" ")), how)] = true
					}
				}
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() []string {
		close(stop)
		<-stopped
		return slices.Sorted(maps.Keys(seen))
	}
}

// A way is how a scenario gets a secret.
type way struct {
	name  string
	files map[string]string
	env   map[string]string
	args  []string
}

// ways returns every way to give the secret option of that name.
func ways(option, secret string) []way {
	file := func(reference string) string {
		return "weir: 1\nsystem:\n  driver: nats\n  options: {" + option + ": " + reference + "}\n"
	}
	return []way{
		{"a variable named in the file", map[string]string{"s.yaml": file("'${env:NEST}'")}, map[string]string{"NEST": secret}, []string{"s.yaml"}},
		{"a file named in the file", map[string]string{"s.yaml": file("{file: nest.txt}"), "nest.txt": secret + "\n"}, nil, []string{"s.yaml"}},
		{"a variable named by a flag", nil, map[string]string{"NEST": secret}, []string{"--option", option + "=${env:NEST}"}},
		{"a file named by a flag", map[string]string{"nest.txt": secret}, nil, []string{"--option", option + "={file: nest.txt}"}},
		{
			"a variable named by a variable", nil,
			map[string]string{"NEST": secret, "WEIR_SYSTEM_OPTIONS_" + strings.ToUpper(option): "${env:NEST}"},
			nil,
		},
	}
}

// short is a run that ends soon.
var short = []string{"--rate", "max", "--in-flight", "5", "--warmup", "0s", "--messages", "50", "--drain", "1m", "--out", "r"}

func TestSecretIsNotLeakedByRun(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	user := natsdtest.Start(t, func(o *server.Options) { o.Username, o.Password = "alice", canary })
	token := natsdtest.Start(t, func(o *server.Options) { o.Authorization = canary })
	for _, at := range []struct {
		option string
		server *server.Server
		more   []string
	}{
		{"password", user, []string{"--option", "user=alice"}},
		{"token", token, nil},
	} {
		for _, right := range []bool{true, false} {
			secret, outcome := canary, "right"
			if !right {
				secret, outcome = canary+"x", "wrong"
			}
			for i, w := range ways(at.option, secret) {
				t.Run(fmt.Sprintf("%s %s by %s", outcome, at.option, w.name), func(t *testing.T) {
					t.Parallel()
					f := &flight{files: w.files, env: w.env, args: slices.Concat(
						[]string{"run", "--driver", "nats", "--address", at.server.ClientURL()}, w.args, at.more, short,
					)}
					if i%2 == 1 {
						f.args = append(f.args, "--json")
					}
					code := f.fly(t)
					_, err := os.Stat(filepath.Join(f.dir, "r", result.FileReport)) // the last that is written
					if right && (code != int(OK) || err != nil) {
						t.Errorf("exit code %d, result %v; want a run\n%s", code, err, &f.stderr)
					}
					if !right && (code != int(Unreachable) || !strings.Contains(strings.ToLower(f.stderr.String()), "auth")) {
						t.Errorf("exit code %d; want 3 and a word about authorization\n%s", code, &f.stderr)
					}
				})
			}
		}
	}
}

// A variable or a file may contain a URL with a password.
func TestConnectionURLSecretIsNotLeaked(t *testing.T) {
	t.Parallel()
	s := natsdtest.Start(t, func(o *server.Options) { o.Username, o.Password = "alice", canary })
	at := strings.TrimPrefix(s.ClientURL(), "nats://")
	for outcome, secret := range map[string]string{"right": canary, "wrong": canary + "x"} {
		u := url.URL{Scheme: "nats", User: url.UserPassword("alice", secret), Host: at}
		for _, w := range []way{
			{"WEIR_ADDRESS", nil, map[string]string{"WEIR_ADDRESS": u.String()}, nil},
			{"a reference", nil, map[string]string{"NEST": u.String()}, []string{"--address", "${env:NEST}"}},
			{"a file", map[string]string{"nest.txt": u.String()}, nil, []string{"--option", "address={file: nest.txt}"}},
		} {
			t.Run(outcome+" in the URL of "+w.name, func(t *testing.T) {
				t.Parallel()
				f := &flight{files: w.files, env: w.env, args: slices.Concat([]string{"run", "--driver", "nats"}, w.args, short)}
				if code, want := f.fly(t), map[string]Code{"right": OK, "wrong": Unreachable}[outcome]; code != int(want) {
					t.Errorf("exit code %d; want %d\n%s", code, want, &f.stderr)
				}
			})
		}
	}
}

func TestSecretIsNotLeakedOnFailure(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	file := map[string]string{
		"s.yaml": "weir: 1\nsystem:\n  driver: nats\n  options: {user: alice, password: '${env:NEST}'}\nload: {rate: 200/s}\nwarmup: 100ms\nmeasure: 60s\ndrain: 1m\n",
	}
	env := map[string]string{"NEST": canary}
	auth := func(o *server.Options) { o.Username, o.Password = "alice", canary }
	for _, tt := range []struct {
		name  string
		args  []string
		files map[string]string
		on    string
		then  func(*os.Process, *server.Server)
		codes []Code
	}{
		{name: "only explained", args: []string{"--explain"}, codes: []Code{OK}},
		{
			name: "explained in a matrix", args: []string{"s.yaml", "--explain"}, codes: []Code{OK},
			files: map[string]string{"s.yaml": file["s.yaml"] + "matrix: {message.size: [64B, 128B]}\n"},
		},
		{
			name: "several runs", args: []string{"s.yaml", "--messages", "50", "--rate", "max", "--warmup", "0s", "--out", "r"}, codes: []Code{OK},
			files: map[string]string{"s.yaml": file["s.yaml"] + "matrix: {message.size: [64B, 128B]}\n"},
		},
		{name: "unreachable", args: []string{"--address", "nats://127.0.0.1:1"}, codes: []Code{Unreachable}},
		{name: "not to be resolved", args: []string{"--address", "nats://no-such-host.invalid:4222"}, codes: []Code{Unreachable}},
		{name: "no result folder", args: []string{"--out", "s.yaml/r"}, codes: []Code{Usage}},
		{name: "a guarantee that is not given", args: []string{"--guarantee", "received"}, codes: []Code{Usage}},
		{name: "embedded, which asks for none", args: []string{"--system.start", "embedded", "--messages", "50", "--rate", "max", "--in-flight", "5"}, codes: []Code{OK}},
		{name: "embedded with JetStream", args: []string{"--driver", "jetstream", "--option", "storage=memory", "--messages", "50", "--rate", "max", "--in-flight", "5"}, codes: []Code{OK}},
		{
			name: "interrupted", on: "measur", codes: []Code{Interrupted},
			then: func(p *os.Process, _ *server.Server) { _ = p.Signal(os.Interrupt) },
		},
		{
			name: "the server gone in mid-run", args: []string{"--measure", "2s", "--drain", "500ms"}, on: "measur", codes: []Code{OK, Unreachable, Lost, Invalid},
			then: func(_ *os.Process, s *server.Server) { s.Shutdown() },
		},
		{
			name: "killed in mid-run", on: "measur", codes: []Code{-1},
			then: func(p *os.Process, _ *server.Server) { _ = p.Kill() },
		},
		{
			name: "a crash", on: "measur", codes: []Code{2},
			then: func(p *os.Process, _ *server.Server) { _ = p.Signal(syscall.SIGSEGV) }, // Go prints every goroutine with its arguments
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := natsdtest.Start(t, auth)
			f := &flight{files: file, env: env, on: tt.on, args: []string{"run", "s.yaml", "--out", "r"}}
			if tt.files != nil {
				f.files = tt.files
				f.args = []string{"run"}
			}
			if !slices.ContainsFunc(tt.args, func(a string) bool { return a == "--address" || a == "embedded" || a == "jetstream" }) {
				f.args = append(f.args, "--address", s.ClientURL())
			}
			f.args = append(f.args, tt.args...)
			if tt.then != nil {
				f.then = func(p *os.Process) { tt.then(p, s) }
			}
			if code := f.fly(t); !slices.Contains(tt.codes, Code(code)) {
				t.Errorf("exit code %d; want one of %v\n%s%s", code, tt.codes, &f.stdout, &f.stderr)
			}
		})
	}
}

// A literal secret in a file or a command line is refused without being repeated. Nothing is started, so
// there is no other process to inspect.
func TestLiteralSecretIsRejectedWithoutEcho(t *testing.T) {
	t.Parallel()
	s := natsdtest.Start(t, func(o *server.Options) { o.Username, o.Password = "alice", canary })
	plain := "Pw" + canaryCore // as one may write it into YAML without quotes
	host := strings.TrimPrefix(s.ClientURL(), "nats://")
	url := "nats://alice:" + plain + "@" + host
	options := func(text string) map[string]string {
		return map[string]string{"s.yaml": "weir: 1\nsystem:\n  driver: nats\n  options:\n" + text}
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		env   map[string]string
		args  []string
	}{
		{name: "by --option", args: []string{"--option", "password=" + plain}},
		{name: "by --option of another case", args: []string{"--option", "Password=" + plain}},
		{name: "by a misspelt --option", args: []string{"--option", "pasword=" + plain}},
		{name: "by --option without =", args: []string{"--option", plain}},
		{name: "by the option's path", args: []string{"--system.options.password", plain}},
		{name: "by the option's path with =", args: []string{"--system.options.password=" + plain}},
		{name: "by a flag that there is not", args: []string{"--password", plain}},
		{name: "by a flag that there is not, with =", args: []string{"--password=" + plain}},
		{name: "as a list by --option", args: []string{"--option", "password=[" + plain + "]"}},
		{name: "as a mapping by --option", args: []string{"--option", "password={value: " + plain + "}"}},
		{name: "as half a reference", args: []string{"--option", "password=${env:" + plain}},
		{name: "beside a reference", args: []string{"--option", "password=${env:HOME}" + plain}},
		{name: "by a variable", env: map[string]string{"WEIR_PASSWORD": plain, "WEIR_SYSTEM_OPTIONS_PASSWORD": plain}},
		{name: "in a URL by --address", args: []string{"--address", url}},
		{name: "in a URL without a scheme", args: []string{"--address", "alice:" + plain + "@" + host}},
		{name: "in a URL with a slash in it", args: []string{"--address", "nats://alice:a/" + plain + "@" + host}},
		{name: "in the query of a URL", args: []string{"--address", "nats://" + host + "?password=" + plain}},
		{name: "in one URL of several", args: []string{"--address", "nats://" + host + "," + url}},
		{name: "in a URL that is none", args: []string{"--address", "nats://alice:" + plain + "%zz@" + host}},
		{name: "in a URL with a space", args: []string{"--address", "nats://alice: " + plain + " @" + host}},
		{name: "in a URL as the scenario's file", args: []string{url}},
		{name: "by a reference for an option of few words", env: map[string]string{"NEST": plain}, args: []string{"--option", "confirm=${env:NEST}"}},
		{name: "by a reference for a duration", env: map[string]string{"NEST": plain}, args: []string{"--option", "ping-interval=${env:NEST}"}},
		{name: "by a reference for yes or no", env: map[string]string{"NEST": plain}, args: []string{"--option", "tls.insecure=${env:NEST}"}},
		{name: "by a reference for a size", env: map[string]string{"NEST": plain}, args: []string{"--option", "pending-bytes=${env:NEST}"}},
		{name: "in the file", files: options("    password: " + plain + "\n")},
		{name: "in the file, quoted", files: options("    password: \"" + plain + "\"\n")},
		{name: "in the file, in a block", files: options("    password: |\n      " + plain + "\n")},
		{name: "in the file, as a list", files: options("    password: [" + plain + "]\n")},
		{name: "in the file, as a mapping", files: options("    password: {value: " + plain + "}\n")},
		{name: "in the file, as a key", files: options("    password: {" + plain + ": 1}\n")},
		{name: "in the file, without a space", files: options("    password:" + plain + "\n")},
		{name: "in the file, without a colon", files: options("    password " + plain + "\n")},
		{name: "in the file, in a flow without a colon", files: map[string]string{"s.yaml": "weir: 1\nsystem: {driver: nats, options: {password " + plain + "}}\n"}},
		{name: "in the file, under a misspelt name", files: options("    pasword: " + plain + "\n")},
		{name: "in the file, in the wrong place", files: map[string]string{"s.yaml": "weir: 1\npassword: " + plain + "\nsystem: {driver: nats, password: " + plain + "}\n"}},
		{name: "in the file, anchored", files: options("    password: &a " + plain + "\n    token: *a\n")},
		{name: "in the file, tagged", files: options("    password: !!str " + plain + "\n")},
		{name: "in the file, with an open quote", files: options("    password: \"" + plain + "\n")},
		{name: "in the file, with an open single quote", files: options("    password: '" + plain + "\n")},
		{name: "in the file, with an open bracket", files: options("    password: [" + plain + "\n")},
		{name: "in the file, with an open brace", files: options("    password: {x: " + plain + "\n")},
		{name: "in the file, badly indented", files: options("    user: alice\n   password: " + plain + "\n")},
		{name: "in the file, by a tab", files: options("\tpassword: " + plain + "\n")},
		{name: "in the file, twice", files: options("    password: " + plain + "\n    password: " + plain + "2\n")},
		{name: "in the file, after a reserved character", files: options("    password: @" + plain + "\n")},
		{name: "in the file, after a backtick", files: options("    password: `" + plain + "`\n")},
		{name: "in the file, after a percent sign", files: options("    password: %" + plain + "\n")},
		{name: "in the file, with a colon in it", files: options("    password: a: " + plain + "\n")},
		{name: "in the file, with a bad escape", files: options("    password: \"\\q" + plain + "\"\n")},
		{name: "in the file, in the URL", files: options("    address: " + url + "\n")},
		{name: "in the file, in a list of URLs", files: options("    address: [127.0.0.1, \"" + url + "\"]\n")},
		{name: "in the file, and not UTF-8", files: options("    password: " + plain + "\xff\n")},
		{name: "in the file, in a flow without a blank", files: map[string]string{"s.yaml": "weir: 1\nsystem: {driver: nats, options: {password:" + plain + "}}\n"}},
		{name: "in the file, in a flow with =", files: map[string]string{"s.yaml": "weir: 1\nsystem: {driver: nats, options: {password=" + plain + "}}\n"}},
		{name: "in the file, in a flow with a comma", files: map[string]string{"s.yaml": "weir: 1\nsystem: {driver: nats, options: {password, " + plain + "}}\n"}},
		{name: "in the file, after a vertical bar", files: options("    password: |" + plain + "\n")},
		{name: "in the file, after a bracket that folds", files: options("    password: > \"" + plain + "\"\n")},
		{name: "in the file, after an open quote of another key", files: map[string]string{"s.yaml": "weir: 1\nsystem:\n  driver: \"nats\n  options:\n    password: " + plain + "\n  # \"\n"}},
		{name: "in the file, in a flow at the top", files: map[string]string{"s.yaml": "{weir: 1, password " + plain + "}\n"}},
		{name: "by a reference in the file", files: options("    confirm: ${env:NEST}\n"), env: map[string]string{"NEST": plain}},
		{name: "by a file of the file", files: map[string]string{"s.yaml": options("    confirm: {file: nest.txt}\n")["s.yaml"], "nest.txt": plain}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, args := t.TempDir(), []string{"run", "--driver", "nats"}
			if tt.files["s.yaml"] != "" {
				args = []string{"run", "s.yaml"}
			}
			for name, text := range tt.files {
				must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			w := World{Args: slices.Concat(args, tt.args, short), Dir: dir, Stdout: &watch{}, Stderr: &watch{}, Drivers: all.Definitions()}
			w.Env = func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
			for name, v := range tt.env {
				w.Environ = append(w.Environ, name+"="+v)
			}
			code := Main(t.Context(), w)
			said := fmt.Sprint(w.Stdout, w.Stderr)
			if code != int(Usage) || said == "" {
				t.Errorf("exit code %d; want 2, and why\n%s", code, said)
			}
			if how := sighted([]byte(said)); how != "" {
				t.Errorf("it shows the canary (%s):\n%s", how, said)
			}
			for path, how := range nests(t, dir, slices.Collect(maps.Keys(tt.files))...) {
				t.Errorf("the canary is in %s (%s)", path, how)
			}
		})
	}
}

// Makes one to three random typos in files with a misplaced secret: no error may quote a part of the file
// that may be the secret.
func TestTyposNeverLeakSecrets(t *testing.T) {
	registry := must.Get(driver.NewRegistry(all.Definitions()...))(t)
	files := []string{
		"weir: 1\nsystem:\n  driver: nats\n  options:\n    user: alice\n    password: " + canaryCore + "\n    confirm: flush\nload: {rate: 5/s}\n",
		"weir: 1\nsystem: {driver: nats, options: {user: alice, token: \"" + canaryCore + "\", address: [\"nats://a:b@h:1\"]}}\n",
	}
	const slips = " \n\t:{}[],&*!|>'\"%@`#-?=\\x$~/"
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 6000 {
		text := files[n%len(files)]
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(text))
			if secret := strings.Index(text, canaryCore); at >= secret && at < secret+len(canaryCore) {
				continue // it stays whole, or it would not be seen
			}
			slip := string(slips[rnd.IntN(len(slips))])
			switch rnd.IntN(3) {
			case 0:
				text = text[:at] + text[at+1:]
			case 1:
				text = text[:at] + slip + text[at:]
			default:
				text = text[:at] + slip + text[at+1:]
			}
		}
		_, err := scenario.Resolve(scenario.Inputs{
			File: "f.yaml", Text: []byte(text), Drivers: registry,
			Env:      func(string) (string, bool) { return "", false },
			ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		})
		if err != nil && sighted([]byte(err.Error())) != "" {
			t.Errorf("the canary is in what is said of %q:\n%v", text, err)
		}
	}
}
