package cli

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/layout"
)

// examined is a host with something of everything.
func examined() []host.Finding {
	return []host.Finding{
		{Name: "cores", Health: host.Healthy, Found: "8 cores", Why: "everything shares them"},
		{Name: "clock source", Health: host.Bad, Found: "hpet", Why: "each reading is a system call", Do: "Take the processor's own counter.", Commands: []string{
			"sudo dmesg | grep -i tsc", "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
		}},
		{Name: "turbo", Health: host.Unknown, Found: "the host does not show it", Why: "the clock varies"},
		{Name: "other work", Health: host.Warn, Found: "12.0 % of all cores, a 1.00 cores, " + strings.Repeat("bb ", 30) + "1.00 cores", Why: "what else runs takes cores", Do: "Stop it."},
	}
}

func TestDoctorShowsTheWorstFirst(t *testing.T) {
	d := diagnosis{Host: host.Facts{Hostname: "h", OS: "linux", Kernel: "6.1", Arch: "amd64", CPUModel: "X 9000"}, Findings: examined()}
	p := new(layout.Page)
	d.show(p)
	plain := layout.Text{Width: 80, Fold: true}.Page(p)
	expected(t, "doctor.txt", plain)
	painted := layout.Text{Width: 80, Fold: true, Colour: true}.Page(p)
	if bare := unpainted(painted); bare != plain || painted == plain {
		t.Errorf("colour changes the text, or is none (-plain +painted)\n%s", cmp.Diff(plain, bare))
	}
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
			got := (&doctorCommand{Strict: c.strict, JSON: true}).diagnose(t.Context(), e, func(context.Context, host.Patient) []host.Finding { return c.findings })
			var d diagnosis
			if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
				t.Fatal(err)
			}
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
	code := (&doctorCommand{}).diagnose(t.Context(), e, func(ctx context.Context, _ host.Patient) []host.Finding {
		<-ctx.Done()
		return nil
	})
	if code != Interrupted || out.String() != "" {
		t.Errorf("exit code %d, printed %q", code, out)
	}
}
