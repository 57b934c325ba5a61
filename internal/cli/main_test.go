package cli

import (
	"context"
	"encoding/json"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/needs"
)

// quick is the race detector's option for processes of which there are many.
const quick = "atexit_sleep_ms=0"

// TestMain makes the test binary act as weir too: as the guard of embedded systems, and as the scripts'
// command.
func TestMain(m *testing.M) {
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "internal" {
		os.Exit(main()) // an embedded system that a test of this binary starts
	}
	// Processes built with the race detector end without its pause of 1 s.
	if err := os.Setenv("GORACE", quick); err != nil {
		panic(err)
	}
	// Most of these tests wait for runs, hosts and servers in other processes. Runs in this process change
	// its settings, so their tests are not parallel.
	if err := flag.Set("test.parallel", itoa(max(4, 2*runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"weir": weir, "natsserver": natsServer, "otherweir": otherWeir})
}

// weir is cmd/weir's main, and a look at what it has written.
func weir() {
	if len(os.Args) > 1 && os.Args[1] == "internal" {
		os.Exit(main())
	}
	os.Exit(audit(main))
}

func main() int { return Main(context.Background(), Process(all.Definitions(), nil, standard.Tested)) }

func TestScripts(t *testing.T) {
	t.Parallel()
	scripts(t, "script")
}

func TestLongScripts(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	scripts(t, "long")
}

func scripts(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", dir),
		Setup: func(e *testscript.Env) error {
			e.Setenv("TMPDIR", e.WorkDir)
			// Running systems belong to the script; a script that starts servers links to what is installed
			// already.
			e.Setenv(broker.VariableCache, filepath.Join(e.WorkDir, "cache"))
			e.Setenv("WEIR_FLEET_DIR", filepath.Join(e.WorkDir, "fleet"))
			shared, err := broker.CacheDir(os.LookupEnv)
			if err != nil {
				return err
			}
			e.Setenv("SHARED", shared)
			self, err := os.Executable()
			if err != nil {
				return err
			}
			e.Setenv("WEIR", self)
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("FREE", free.Addr().String()) // where nobody listens
			if err := free.Close(); err != nil {
				return err
			}
			for name, value := range goEnv() {
				e.Setenv(name, value)
			}
			e.Setenv("GORACE", quick)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "series": seriesCommand},
	})
}

// goEnv is what go needs in a script, which has no home, to find modules and what is built. Empty where there is no go.
var goEnv = sync.OnceValue(func() map[string]string {
	found := map[string]string{}
	if out, err := exec.Command("go", "env", "-json", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOMODCACHE", "GOCACHE").Output(); err == nil {
		_ = json.Unmarshal(out, &found)
	}
	return found
})

// exits CODE[|CODE] COMMAND... runs a command that must exit with one of the codes: an open-loop run exits
// with 0 or 5, since a busy host may make it invalid.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = "?"
		if e, ok := err.(interface{ ExitCode() int }); ok {
			got = itoa(e.ExitCode())
		}
	}
	if !slices.Contains(strings.Split(args[0], "|"), got) {
		ts.Fatalf("%v: exit code %s; want %s (%v)", args[1:], got, args[0], err)
	}
}
