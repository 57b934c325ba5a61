package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/host"
)

// full is a standard output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Tests every verb that only prints: exit code 1, and a line that says what could not be written.
func TestWriteErrorIsReported(t *testing.T) {
	for line, want := range map[string]string{
		"version":                 "weir: writing the versions: no space left on device\n",
		"version --json":          "weir: writing the versions: no space left on device\n",
		"drivers":                 "weir: writing the drivers: no space left on device\n",
		"drivers chan --json":     "weir: writing the drivers: no space left on device\n",
		"drivers chan --markdown": "weir: writing the drivers: no space left on device\n",
		"completion bash":         "weir: writing the script: no space left on device\n",
		"internal complete ru":    "",
	} {
		t.Run(line, func(t *testing.T) {
			stderr := &watch{}
			code := Main(t.Context(), World{
				Args: strings.Fields(line), Stdout: full{}, Stderr: stderr, Drivers: all.Definitions(), Env: func(string) (string, bool) { return "", false },
			})
			if code != int(Failed) || stderr.String() != want {
				t.Errorf("exit code %d, said %q; want %d, %q", code, stderr, Failed, want)
			}
		})
	}
	t.Run("doctor", func(t *testing.T) {
		stderr := &watch{}
		e := &env{World: World{Stdout: full{}, Stderr: stderr, Env: func(string) (string, bool) { return "", false }, Dir: t.TempDir()}}
		code := (&doctorCommand{}).diagnose(t.Context(), e, func(context.Context, host.CheckTarget) []host.Finding { return examined() })
		if code != Failed || stderr.String() != "weir: writing the findings: no space left on device\n" {
			t.Errorf("exit code %d, said %q", code, stderr)
		}
	})
}
