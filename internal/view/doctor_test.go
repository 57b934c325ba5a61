package view

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/view/layout"
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
	d := Diagnose("devel", host.Facts{Hostname: "h", OS: "linux", Kernel: "6.1", Arch: "amd64", CPUModel: "X 9000"}, examined())
	p := new(layout.Page)
	d.Show(p)
	plain := layout.Text{Width: 80, Fold: true}.Page(p)
	golden.File(t, filepath.Join("testdata", "doctor.txt"), plain)
	painted := layout.Text{Width: 80, Fold: true, Colour: true}.Page(p)
	if bare := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(painted, ""); bare != plain || painted == plain {
		t.Errorf("colour changes the text, or is none (-plain +painted)\n%s", cmp.Diff(plain, bare))
	}
}

func TestTheWorstFindingIsTheHealth(t *testing.T) {
	for _, c := range []struct {
		from, to int
		want     host.Health
	}{{0, 4, host.Bad}, {2, 4, host.Warn}, {2, 3, host.Healthy}, {0, 0, host.Healthy}} {
		if got := host.Worst(examined()[c.from:c.to]); got != c.want {
			t.Errorf("of findings %d to %d: %v; want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestTheFindingsFitASmallTerminal(t *testing.T) {
	const small = 40
	p := new(layout.Page)
	Diagnose("devel", host.Facts{}, examined()).Show(p)
	text := layout.Terminal(small, false).Page(p)
	for line := range strings.Lines(text) {
		if copied := strings.Contains(line, " $ "); !copied && utf8.RuneCountInString(line) > small {
			t.Errorf("%q is too wide for %d columns", line, small)
		}
	}
	golden.File(t, filepath.Join("testdata", "doctor-40.txt"), text)
}
