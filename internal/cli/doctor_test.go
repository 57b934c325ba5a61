package cli

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view"
)

// examined is a host with something bad, something unknown and a warning.
func examined() []host.Finding {
	return []host.Finding{{Health: host.Healthy}, {Health: host.Bad}, {Health: host.Unknown}, {Health: host.Warn}}
}

func TestDoctorsExitCode(t *testing.T) {
	warned := examined()
	warned[1].Health = host.Warn
	for _, c := range []struct {
		name     string
		findings []host.Finding
		strict   bool
		want     Code
	}{
		{"a finding is not a failure", examined(), false, OK},
		{"strictly, what is bad is", examined(), true, Invalid},
		{"strictly, a warning is not", warned, true, OK},
		{"strictly, what is not known is not", examined()[2:3], true, OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := &watch{}
			e := &env{World: World{Stdout: out, Stderr: &watch{}, Env: func(string) (string, bool) { return "", false }, Dir: t.TempDir()}}
			got := (&doctorCommand{Strict: c.strict, JSON: true}).diagnose(t.Context(), e, func(context.Context, host.CheckTarget) []host.Finding { return c.findings })
			var d view.Diagnosis
			must.Do(t, json.Unmarshal([]byte(out.String()), &d))
			if got != c.want || d.Schema != "weir.doctor/v1" || len(d.Findings) != len(c.findings) {
				t.Errorf("exit code %d; want %d\n%s", got, c.want, out)
			}
		})
	}
}

func TestDoctorCanBeInterrupted(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	out := &watch{}
	e := &env{World: World{Stdout: out, Stderr: &watch{}, Env: func(string) (string, bool) { return "", false }, Signals: signals}}
	code := (&doctorCommand{}).diagnose(t.Context(), e, func(ctx context.Context, _ host.CheckTarget) []host.Finding {
		<-ctx.Done()
		return nil
	})
	if code != Interrupted || out.String() != "" {
		t.Errorf("exit code %d, printed %q", code, out)
	}
}
