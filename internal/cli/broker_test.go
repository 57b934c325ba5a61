package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

// brokenGo is a go in PATH that downloads a module of nothing, and hangs in the
// step that it is told: "mod", or "serve", for which it builds a server that does
// not answer.
const brokenGo = `#!/bin/sh
case "$1" in
version) echo go version go1.26 ;;
mod)
	mkdir -p "$HOME/module"
	echo "{\"Dir\": \"$HOME/module\", \"Sum\": \"h1:x\"}"
	test STEP = mod && sleep 600
	;;
build)
	while test "$1" != -o; do shift; done
	mkdir -p "$(dirname "$2")"
	printf '#!/bin/sh\necho I will never answer\nsleep 600\n' >"$2"
	;;
esac
exit 0
`

// first is PATH with a folder before all others.
func first(dir string) string { return dir + string(os.PathListSeparator) + os.Getenv("PATH") }

// TestSignalDuringInstallOrStartCleansUp stops weir in the middle of an
// install and of a start.
func TestSignalDuringInstallOrStartCleansUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, step, on, want string
		args                 []string
	}{
		{"a run that installs", "mod", "downloading the module", "interrupted before the first message: the run has no figures", []string{"run", "--driver", "jetstream", "--start", "process", "--out", "r"}},
		{"a run that starts", "serve", "installed in", "interrupted before the first message: the run has no figures", []string{"run", "--driver", "jetstream", "--start", "process", "--out", "r"}},
		{"an install", "mod", "downloading the module", "weir: interrupted: nats could not be installed\n", []string{"broker", "install", "nats"}},
		{"an up that installs", "mod", "downloading the module", "weir: interrupted: nats could not be installed\n", []string{"broker", "up", "nats"}},
		{"an up that starts", "serve", "starting 3 nodes", "interrupted: nats was not started", []string{"broker", "up", "nats", "--nodes", "3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(bin, "go"), []byte(strings.ReplaceAll(brokenGo, "STEP", c.step)), 0o755))
			cache := t.TempDir()
			f := &flight{args: c.args, on: c.on, then: func(p *os.Process) { _ = p.Signal(syscall.SIGINT) }, env: map[string]string{broker.VariableCache: cache, "PATH": first(bin)}}
			if code := f.fly(t); code != int(Interrupted) || !strings.Contains(f.stderr.String(), c.want) {
				t.Errorf("exit code %d; want %d and %q\n%s", code, Interrupted, c.want, &f.stderr)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.dir), "temp", "weir-*"))
			partial, _ := filepath.Glob(filepath.Join(cache, "nats", ".partial*"))
			kept, _ := filepath.Glob(filepath.Join(cache, "running", "*"))
			runs, _ := filepath.Glob(filepath.Join(f.dir, "*"))
			for _, name := range append(append(append(left, partial...), kept...), runs...) {
				t.Errorf("%s is left", name)
			}
		})
	}
}

// Of a run, and of up.
func TestServerExitingAtOnceIsReported(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	text := strings.ReplaceAll(strings.ReplaceAll(brokenGo, "STEP", "none"), `never answer\nsleep 600`, `end at once\nexit 9`)
	must.Do(t, os.WriteFile(filepath.Join(bin, "go"), []byte(text), 0o755))
	for _, args := range [][]string{
		{"run", "--driver", "jetstream", "--start", "process", "--out", "r"},
		{"broker", "up", "nats"},
	} {
		f := &flight{args: args, env: map[string]string{broker.VariableCache: t.TempDir(), "PATH": first(bin)}}
		if code := f.fly(t); code != int(Unreachable) || !strings.Contains(f.stderr.String(), "system could not be started: nats: server-1 ended: exit status 9: I will end at once\n") {
			t.Errorf("%q: exit code %d\n%s", args, code, &f.stderr)
		}
	}
}
