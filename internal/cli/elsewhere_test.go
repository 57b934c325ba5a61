package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// TestDriverOnlyInWeirAllNamesCommand: wherever a driver is named, before
// anything starts.
func TestDriverOnlyInWeirAllNamesCommand(t *testing.T) {
	const self = "/tmp/go-build1/b001/exe/weir"
	dir := t.TempDir()
	scenario := "weir: 1\nload: {rate: 100/s}\nsystem:\n  driver: farmq\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "a b.yaml"), []byte(scenario), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--driver", "farmq"}, `--driver: driver "farmq" is in weir-all: go run ./cmd/weir-all run --driver farmq`},
		{[]string{"run", "a b.yaml"}, `a b.yaml:4:11: system.driver: driver "farmq" is in weir-all: go run ./cmd/weir-all run 'a b.yaml'`},
		{[]string{"capacity", "--driver", "farmq"}, `--driver: driver "farmq" is in weir-all: go run ./cmd/weir-all capacity --driver farmq`},
		{
			[]string{"run", "--driver", "farmq", "--option", "auth.password=canary", "--address", "amqp://me:canary@h"},
			`--driver: driver "farmq" is in weir-all: go run ./cmd/weir-all run --driver farmq --option auth.password=... --address amqp://...h`,
		},
		{
			[]string{"run", "--driver", "noop,farmq"},
			`--driver: unknown driver "noop,farmq" (chan, farmq, noop): a file with matrix: {system.driver: [noop, farmq]} makes a run of each; driver "farmq" is in weir-all`,
		},
		{[]string{"drivers", "farmq"}, `weir: driver "farmq" is in weir-all: go run ./cmd/weir-all drivers farmq`},
		{[]string{"broker", "up", "faraway"}, `weir: driver "farmq" is in weir-all: go run ./cmd/weir-all broker up faraway`},
		{[]string{"drivers", "far"}, `weir: unknown driver "far", did you mean "farmq"? (chan, farmq, noop)`},
		{[]string{"suite", "run", "commit-log", "--drivers", "farmq"}, `weir: --drivers: driver "farmq" is in weir-all: go run ./cmd/weir-all suite run commit-log --drivers farmq`},
		{[]string{"run", "farmq"}, "weir: farmq: there is no such file, did you mean --driver farmq? (a scenario file)"},
	} {
		w := World{Dir: dir, Self: self, Absent: []driver.Absent{{Name: "farmq", Title: "Far MQ", Recipes: []string{"faraway"}}}}
		code, stdout, stderr := do(t, w, tt.args...)
		if got, _, _ := strings.Cut(stderr.String(), "\n"); code != 2 || got != tt.want || stdout.String() != "" {
			t.Errorf("weir %q: exit code %d\n%s%s; want\n%s", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestWeirAllCommandFitsTheBuild(t *testing.T) {
	for _, tt := range []struct {
		w             World
		version, want string
	}{
		{World{Self: "/root/.cache/go-build/ab/cd-d/weir", Args: []string{"run"}}, "", "weir-all: go run ./cmd/weir-all run"},
		{World{Self: "/root/go/bin/weir", Args: []string{"run"}}, "", "weir-all: go install ./cmd/weir-all && weir-all run"},
		{World{Self: "/root/go/bin/weir", Args: []string{"run"}}, "v1.2.0", "weir-all: go install github.com/weirmq/weir/cmd/weir-all@v1.2.0 && weir-all run"},
		{World{Self: "/root/go/bin/weir", Args: []string{"agent", "--join", "secret"}}, "", "weir-all: go install ./cmd/weir-all && weir-all agent ..."},
	} {
		if got := tt.w.elsewhere(tt.version); got != tt.want {
			t.Errorf("%q; want %q", got, tt.want)
		}
	}
}
