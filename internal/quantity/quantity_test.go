package quantity

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"
)

func TestParseInteger(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]uint64{
		"0": 0, "7": 7, "1,000": 1000, "1,000,000": 1e6, "10_000": 10_000, "1_2_3": 123, "1e4": 10_000, "1E+4": 10_000,
		"1.5e3": 1500, "100k": 100_000, "100K": 100_000, "1M": 1e6, "1.5M": 1_500_000, "2G": 2e9, "2 k": 2000, "007": 7, "10,050": 10_050, "1,234,000": 1_234_000, "100,500,000": 100_500_000, "1,234k": 1_234_000,
		"18446744073709551615": 1<<64 - 1, "1.0": 1,
	} {
		if got, ok := Whole(in); !ok || got != want {
			t.Errorf("Whole(%q) = %d, %v; want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{
		"", "k", "-5", "+5", "1,00", "1,0000", ",100", "1000,000", "1__0", "_1", "1_", "1.5", "1e-1", "5m", "5x", "1e400", "1 000", "100,500", "64,256", "1,234,567", "18446744073709551616", "5.", "1..5",
	} {
		if got, ok := Whole(in); ok {
			t.Errorf("Whole(%q) = %d; want it refused", in, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"0": 0, "5s": 5 * time.Second, "1m30s": 90 * time.Second, ".5s": 500 * time.Millisecond, "-5s": -5 * time.Second,
		"1min": time.Minute, "90sec": 90 * time.Second, "90 seconds": 90 * time.Second, "2d": 48 * time.Hour, "1.5d": 36 * time.Hour,
		"8 min 20 s": 500 * time.Second, "8min20s": 500 * time.Second, "1 hour": time.Hour, "250 msec": 250 * time.Millisecond, "1,000ms": time.Second,
		"+2 days": 48 * time.Hour, "3 µs": 3 * time.Microsecond,
	} {
		if got, err := Duration(in); err != nil || got != want {
			t.Errorf("Duration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "+", "5", "1,000", "s", "5 parsecs", "5S", "2D", "5s 3", "1e3s", "-2d", "999999999d", "1min,30s", "1,00ms", "  5s"} {
		if got, err := Duration(in); err == nil {
			t.Errorf("Duration(%q) = %v; want it refused", in, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"64": 64, "64B": 64, "64 b": 64, "1k": 1024, "1K": 1024, "1kb": 1000, "1KB": 1000, "1kib": 1024, "1Kib": 1024, "1KiB": 1024,
		"1M": 1 << 20, "1MB": 1e6, "1mib": 1 << 20, "1.5KiB": 1536, "0.5K": 512, "1,024": 1024, "2g": 2 << 30, "1T": 1 << 40, "64,256B": 64_256, "1,500 KiB": 1500 << 10, "+64": 64,
	} {
		if got, err := Size(in); err != nil || got != want {
			t.Errorf("Size(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "B", "-1", "1.5", "1.0001KiB", "1kibi", "1 x", "9e18", "99999999T", "64,256", "1kk", "50%"} {
		if got, err := Size(in); err == nil {
			t.Errorf("Size(%q) = %d; want it refused", in, got)
		}
	}
}

func TestNumberWithCommasMayBeList(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"100,500": "100500", "64,256": "64256", "+64,256": "64256", "1,234,567": "1234567", "1,500.5": "1500.5",
		"": "", "1000": "", "1,000": "", "10,000": "", "1,024": "", "100,500,000": "", "100,500/s": "", "1,500B": "", "64,25": "", "64,256,1024": "", "1,234k": "",
	} {
		if got := MayBeList(in); got != want {
			t.Errorf("MayBeList(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestParseSwitch(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "True": true, "YES": true, "on": true, "0": false, "false": false, "no": false, "Off": false} {
		if got, err := Switch(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := Switch("2"); err == nil || err.Error() != `"2" is neither on nor off (1, 0, true, false)` {
		t.Error(err)
	}
}

func TestSharesArePercentages(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]float64{"0": 0, "0%": 0, "5%": 0.05, "2.5 %": 0.025, "99%": 0.99} {
		if got, ok := Share(in); !ok || got != want {
			t.Errorf("Share(%q) = %v, %v; want %v", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "%", "5", "0.05", "-1%", "100%", "NaN%", "x%"} {
		if got, ok := Share(in); ok {
			t.Errorf("Share(%q) = %v; want none", in, got)
		}
	}
}

// FuzzForms shows that the forms for the schema take all that the readers take, and
// that no text makes a reader panic.
func FuzzForms(f *testing.F) {
	for _, s := range []string{"1,000", "10_000k", "1e4", "5s", "8 min 20 s", "2d", "1.5KiB", "1K", "+3 h", ".5s", "1.s", "100,500", "+64,256", "1,500.5", "1,234e5", "100,500,000", "1,500.s", "1_500ms", " 1h"} {
		f.Add(s)
	}
	whole := regexp.MustCompile(`^` + NumberForm + ThousandsForm + `$`)
	duration := regexp.MustCompile(`^(0|` + DurationForm + `)$`)
	size := regexp.MustCompile(`^` + SizeForm + `$`)
	list := regexp.MustCompile(`^` + ListForm + `$`)
	f.Fuzz(func(t *testing.T, s string) {
		if may := MayBeList(s) != ""; may != list.MatchString(s) {
			t.Errorf("%q may be a list: %v, and the form says otherwise", s, may)
		}
		if _, ok := Whole(s); ok && !whole.MatchString(s) {
			t.Errorf("Whole reads %q, and its form does not", s)
		}
		if d, err := Duration(s); err == nil && d > 0 && !duration.MatchString(s) {
			t.Errorf("Duration reads %q, and its form does not", s)
		}
		if _, err := Size(s); err == nil && !size.MatchString(s) {
			t.Errorf("Size reads %q, and its form does not", s)
		}
	})
}

func TestParsePercentile(t *testing.T) {
	for text, want := range map[string][]float64{"50,99,99.9": {50, 99, 99.9}, "p50, 99.9%,50": {50, 99.9}} {
		if got, err := Percentiles(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	many := "0.5"
	for i := range MostPercentiles {
		many += fmt.Sprintf(",%d", i+1)
	}
	for _, text := range []string{"", "0", "100", "-1", "99.1234567", "1e1", "99,,50", many} {
		if got, err := Percentiles(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
