//go:build unix

package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func TestTailKeepsStartOfPanic(t *testing.T) {
	var last, panicked tail
	for i := range 2 * tailLines {
		line := fmt.Sprint("line ", i)
		last.add(line)
		if i == 3 {
			line = "panic: runtime error"
		}
		panicked.add(line)
	}
	if got := last.String(); !strings.HasPrefix(got, "line 8; ") || !strings.HasSuffix(got, "; line 15") {
		t.Errorf("last lines: %s", got)
	}
	if got := panicked.String(); !strings.HasPrefix(got, "panic: runtime error; line 4; ") || !strings.HasSuffix(got, "; line 10") {
		t.Errorf("lines of a panic: %s", got)
	}
}

func TestRestartOfGoneSystem(t *testing.T) {
	r := &Running{Dir: t.TempDir(), Processes: []Process{{Name: "server-1"}}}
	if err := r.Restart(t.Context()); !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), "too late for a restart") {
		t.Error(err)
	}
}

func TestUserCannotEnterCache(t *testing.T) {
	if os.Geteuid() != 0 {
		needs.Host(t, "root", "the process keeps its user otherwise")
	}
	dir := t.TempDir()
	for at := dir; at != os.TempDir(); at = filepath.Dir(at) {
		must.Do(t, os.Chmod(at, 0o755))
	}
	cache := filepath.Join(dir, "cache")
	must.Do(t, os.Mkdir(cache, 0o700))
	part := &Part{Name: "server", As: "nobody"}
	s := &supervisor{host: &host{root: true}, plan: &plan{root: filepath.Join(dir, "root")}}
	u := &unit{part: part, dir: filepath.Join(dir, "root", "server-1"), start: []string{filepath.Join(cache, "server")}}
	must.Do(t, os.MkdirAll(u.dir, 0o755))
	if err := s.hand(u); err == nil || !strings.Contains(err.Error(), "nobody cannot enter "+cache+" (set WEIR_CACHE") {
		t.Error(err)
	}
	must.Do(t, os.Chmod(cache, 0o711))
	must.Do(t, s.hand(u))
}
