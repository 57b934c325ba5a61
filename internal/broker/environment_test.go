//go:build unix

package broker

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func TestEmbeddedSystemGetsMinimalEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=x", "GORACE=a=b", "WEIR_PASSWORD=x", "PATHS=x", "GODEBUGX=x", "TMPDIR=", "odd"})
	golden.Equal(t, []string{"PATH=/bin", "GORACE=a=b", "TMPDIR="}, got, "")
	if environment(nil) == nil {
		t.Error("nil, which guard takes for everything")
	}
}

// TestEmbeddedSystemDoesNotSeeEnvironment reads the environment from the kernel.
func TestEmbeddedSystemDoesNotSeeEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" {
		needs.Host(t, "linux", "/proc/PID/environ")
	}
	t.Setenv("BROKER_PASSWORD", "canary")
	r := must.Get(start(t, "jetstream", nil))(t)
	for _, pid := range append(r.Pids, r.process.GuardPid()) {
		b := must.Get(os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ"))(t)
		if text := string(b); strings.Contains(text, "canary") || !strings.Contains(text, "TMPDIR=") {
			var names []string // names only: the values are the user's
			for v := range strings.SplitSeq(text, "\x00") {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			t.Errorf("process %d has the variables %q; want TMPDIR, and not BROKER_PASSWORD", pid, names)
		}
	}
}
