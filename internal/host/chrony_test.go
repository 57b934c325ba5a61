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

	"github.com/weirmq/weir/internal/must"
)

// chronyc puts a script of that name first in PATH.
func chronyc(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "chronyc"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestChronyParsesChronycOutput(t *testing.T) {
	chronyc(t, `[ "$*" = "-n -c tracking" ] || exit 9
echo 7F000001,127.0.0.1,4,1795297056.268988074,-0.000001148,0.000000067,0.000000087,0.006,0.001,0.024,0.000004567,0.000001213,1.0,Normal`)
	got, err := Chrony(t.Context())
	if err != nil || got.Source != "127.0.0.1" || got.Offset != -1148 || got.Bound() != 1148+1213+4567/2 {
		t.Errorf("Chrony = %+v, %v", got, err)
	}
}

func TestChronyExplainsMissingTracking(t *testing.T) {
	t.Run("no daemon", func(t *testing.T) {
		chronyc(t, "echo 506 Cannot talk to daemon; exit 1")
		if got, err := Chrony(t.Context()); err == nil || !strings.Contains(err.Error(), "506 Cannot talk to daemon") {
			t.Errorf("Chrony = %+v, %v; want chronyc's words", got, err)
		}
	})
	t.Run("not synchronised", func(t *testing.T) {
		chronyc(t, "echo 00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised")
		if got, err := Chrony(t.Context()); !errors.Is(err, ErrUnsynchronised) {
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

// Outputs of chronyc 4.3.
const (
	tracking       = "7F000001,127.0.0.1,4,1795297056.268988074,-0.000001148,0.000000067,0.000000087,0.006,0.001,0.024,0.000004567,0.000001213,1.0,Normal\n"
	localTracking  = "7F7F0101,,3,1795297027.048702487,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,0.000000000,0.000000000,0.0,Normal\n"
	noneTracking   = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised\n"
	manualTracking = "CB00710F,foo.example.net,3,1485510557.0,0.000006523,-0.000006747,0.000035822,-3.225,-0.000,0.129,0.013639022,0.001100737,64.2,Normal\n" // the manual's example
)

func TestParseTracking(t *testing.T) {
	got, err := ParseTracking(tracking)
	want := Tracking{Source: "127.0.0.1", Stratum: 4, Offset: -1148, RootDelay: 4567, RootDispersion: 1213, Leap: "Normal"}
	if err != nil || got != want {
		t.Errorf("ParseTracking = %+v, %v; want %+v", got, err, want)
	}
	if got.Bound() != 1148+1213+4567/2 {
		t.Errorf("bound %d, want the offset, the dispersion and half the delay", got.Bound())
	}

	got, err = ParseTracking(manualTracking)
	want = Tracking{
		Source: "foo.example.net", Stratum: 3, Offset: 6523 * time.Nanosecond, // slow: must be added
		RootDelay: 13_639_022 * time.Nanosecond, RootDispersion: 1_100_737 * time.Nanosecond, Leap: "Normal",
	}
	if err != nil || got != want {
		t.Errorf("ParseTracking = %+v, %v; want %+v", got, err, want)
	}
}

func TestParseTrackingNamesAReferenceClock(t *testing.T) {
	got, err := ParseTracking(strings.Replace(tracking, "7F000001,127.0.0.1", "50505300,PPS", 1))
	if err != nil || got.Source != "PPS" {
		t.Errorf("ParseTracking = %+v, %v; want PPS", got, err)
	}
	got, err = ParseTracking(strings.Replace(tracking, "7F000001,127.0.0.1", "50505300,", 1))
	if err != nil || got.Source != "50505300" {
		t.Errorf("ParseTracking = %+v, %v; want the identifier of a source without a name", got, err)
	}
}

func TestParseTrackingReportsUnsynchronised(t *testing.T) {
	for name, output := range map[string]string{"nothing followed": noneTracking, "its own clock": localTracking} {
		if got, err := ParseTracking(output); !errors.Is(err, ErrUnsynchronised) {
			t.Errorf("%s: %+v, %v; want ErrUnsynchronised", name, got, err)
		}
	}
}

func TestParseTrackingRejectsUnknownOutput(t *testing.T) {
	for output, want := range map[string]string{
		"":                          "1 fields of 14",
		"506 Cannot talk to daemon": "1 fields of 14",
		tracking + tracking:         "fields of 14",
		strings.Replace(tracking, ",4,", ",four,", 1):               `stratum "four"`,
		strings.Replace(tracking, ",4,", ",-4,", 1):                 `stratum "-4"`,
		strings.Replace(tracking, "-0.000001148", "NaN", 1):         `system time "NaN"`,
		strings.Replace(tracking, "-0.000001148", "", 1):            `system time ""`,
		strings.Replace(tracking, "0.000004567", "-1", 1):           `root delay "-1"`,
		strings.Replace(tracking, "0.000001213", "+Inf", 1):         `root dispersion "+Inf"`,
		strings.Replace(tracking, "0.000001213", "99999999999", 1):  `root dispersion "99999999999"`,
		strings.Replace(tracking, "0.000001213", "0.000001213s", 1): `root dispersion "0.000001213s"`,
	} {
		got, err := ParseTracking(output)
		if err == nil || !strings.Contains(err.Error(), want) || got != (Tracking{}) {
			t.Errorf("ParseTracking(%.60q) = %+v, %v; want an error with %s", output, got, err, want)
		}
	}
}

func FuzzParseTracking(f *testing.F) {
	for _, s := range []string{tracking, localTracking, noneTracking, manualTracking, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, output string) {
		got, err := ParseTracking(output)
		if err != nil && got != (Tracking{}) {
			t.Errorf("%+v beside an error", got)
		}
		if err == nil && (got.Bound() < 0 || got.Source == "" && !strings.HasPrefix(strings.TrimSpace(output), ",,")) {
			t.Errorf("%+v: a bound below zero, or no source", got)
		}
	})
}
