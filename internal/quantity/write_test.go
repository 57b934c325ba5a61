package quantity

import (
	"strings"
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	for ns, want := range map[int64]string{
		0: "0 ns", 1: "1 ns", 999: "999 ns", 1000: "1.00 µs", 1234: "1.23 µs", 12_345: "12.3 µs", 123_456: "123 µs",
		999_499: "999 µs", 999_500: "1.00 ms", 9_996_000: "10.0 ms", 99_960_000: "100 ms", 1_500_000_000: "1.50 s",
		61_000_000_000: "61.0 s", 3_600_000_000_000: "60.0 min", -1500: "-1.50 µs",
	} {
		if got := Time(ns); got != want {
			t.Errorf("Time(%d) = %q; want %q", ns, got, want)
		}
	}
	for r, want := range map[float64]string{0: "0/s", 0.5: "0.500/s", 49.98: "50.0/s", 1000: "1,000/s", 5.2e6: "5,200,000/s"} {
		if got := Rate(r); got != want {
			t.Errorf("Rate(%v) = %q; want %q", r, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		500 * time.Second: "8 min 20 s", 10_000 * time.Second: "2 h 47 min", 12 * time.Second: "12 s", 250 * time.Millisecond: "250 ms",
		time.Minute: "1 min", 100 * time.Hour: "4 d 4 h", 5 * time.Second: "5 s",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %q; want %q", d, got, want)
		}
	}
	if got := ByteRate(1_024_000); got != "1.02 MB/s" {
		t.Errorf("ByteRate(1024000) = %q; want 1.02 MB/s", got)
	}
}

func TestTyped(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"0s", "1ms", "90s", "1m", "1m30s", "2h", "2h0m1s", "2h1m", "-1h", "10m"} {
		d, err := Duration(strings.TrimPrefix(want, "-"))
		if strings.HasPrefix(want, "-") {
			d = -d
		}
		if got := Typed(d); err != nil || got != strings.Replace(want, "90s", "1m30s", 1) {
			t.Errorf("%s is written %q, %v", want, got, err)
		}
	}
}

func TestRange(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	for _, x := range []struct {
		lo, hi *int64
		want   string
	}{
		{nil, nil, ""},
		{nil, ns(322e3), "<= 322 µs"},
		{ns(1720e3), nil, ">= 1.72 ms"},
		{ns(1540e3), ns(1650e3), "1.54 to 1.65 ms"},
		{ns(452e3), ns(1054e3), "452 µs to 1.05 ms"},
		{ns(1e6), ns(1e6), "1.00 ms"},
	} {
		if got := TimeRange(x.lo, x.hi); got != x.want {
			t.Errorf("%q; want %q", got, x.want)
		}
	}
	if got, want := Range("-81.0 %", "+1,897 %"), "-81.0 to +1,897 %"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
