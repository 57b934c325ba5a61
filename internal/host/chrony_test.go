package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/offset"
)

// chronyc puts a program of that name, a script, before all others.
func chronyc(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "chronyc"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestChronyReadsWhatChronycSays(t *testing.T) {
	chronyc(t, `[ "$*" = "-n -c tracking" ] || exit 9
echo 7F000001,127.0.0.1,4,1795297056.268988074,-0.000001148,0.000000067,0.000000087,0.006,0.001,0.024,0.000004567,0.000001213,1.0,Normal`)
	got, err := Chrony(t.Context())
	if err != nil || got.Source != "127.0.0.1" || got.Offset != -1148 || got.Bound() != 1148+1213+4567/2 {
		t.Errorf("Chrony = %+v, %v", got, err)
	}
}

func TestChronyTellsWhyItKnowsNothing(t *testing.T) {
	t.Run("no daemon", func(t *testing.T) {
		chronyc(t, "echo 506 Cannot talk to daemon; exit 1")
		if got, err := Chrony(t.Context()); err == nil || !strings.Contains(err.Error(), "506 Cannot talk to daemon") {
			t.Errorf("Chrony = %+v, %v; want chronyc's words", got, err)
		}
	})
	t.Run("not synchronised", func(t *testing.T) {
		chronyc(t, "echo 00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised")
		if got, err := Chrony(t.Context()); !errors.Is(err, offset.ErrUnsynchronised) {
			t.Errorf("Chrony = %+v, %v; want ErrUnsynchronised", got, err)
		}
	})
	t.Run("no chronyc", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if got, err := Chrony(t.Context()); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("Chrony = %+v, %v; want ErrNotFound", got, err)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		chronyc(t, "exec sleep 3600")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if got, err := Chrony(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Chrony = %+v, %v; want DeadlineExceeded", got, err)
		}
	})
}
