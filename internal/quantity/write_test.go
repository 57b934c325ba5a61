package quantity

import (
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

func TestDistantIntervalEndHasOwnUnit(t *testing.T) {
	for _, x := range []struct {
		end, value int64
		want       string
	}{
		{119_000, 187_000, "119"},
		{567_804_000, 187_000, "568 ms"},
		{0, 1_080_000_000, "0"},
		{250_000, 1_080_000_000, "250 µs"},
		{120_000_000, 1_080_000_000, "0.120"},
		{3_121_000, 916_000, "3,121"},
	} {
		if got := TimeBeside(x.end, x.value); got != x.want {
			t.Errorf("%d ns beside %d ns is %q, want %q", x.end, x.value, got, x.want)
		}
	}
}
