package schedule

import (
	"math"
	"strings"
	"testing"
)

func TestRatesAreReadExactly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want Rate
		out  string
	}{
		{"20000/s", PerSecond(20000), "20000/s"},
		{"0.5/s", oneASecond / 2, "0.5/s"},
		{"1.50/s", oneASecond * 3 / 2, "1.5/s"},
		{"100/m", 100 * oneAMinute, "100/m"},
		{"30/m", oneASecond / 2, "0.5/s"},
		{"3/h", 3 * oneAnHour, "3/h"},
		{"0.000001/h", 1, "0.000001/h"},
		{"0.0009765625/s", 3515625, "3.515625/h"},
		{"1000000000/s", MaxRate, "1000000000/s"},
		{"999999999.999999999/s", 0, ""},
		{"0.5/m", 30 * oneAnHour, "30/h"},
		{"007.0/s", PerSecond(7), "7/s"},
		{"20000", PerSecond(20000), "20000/s"},
		{"1,000/s", PerSecond(1000), "1000/s"},
		{"1,000", PerSecond(1000), "1000/s"},
		{"1,234/s", PerSecond(1234), "1234/s"},
		{"100,500", 0, ""},
		{"10_000/s", PerSecond(10_000), "10000/s"},
		{"10k/s", PerSecond(10_000), "10000/s"},
		{"2 K / s", 0, ""},
		{"2K/s", PerSecond(2000), "2000/s"},
		{"1M/s", PerSecond(1_000_000), "1000000/s"},
		{"1.5k", PerSecond(1500), "1500/s"},
		{"1e4/s", PerSecond(10_000), "10000/s"},
		{"10000/sec", PerSecond(10_000), "10000/s"},
		{"60/min", PerSecond(1), "1/s"},
		{"3/hour", 3 * oneAnHour, "3/h"},
		{"10000rps", PerSecond(10_000), "10000/s"},
		{"10k tps", PerSecond(10_000), "10000/s"},
		{"500 msg/s", PerSecond(500), "500/s"},
		{"500 messages per second", PerSecond(500), "500/s"},
		{" 1/s", PerSecond(1), "1/s"},
		{".5/s", oneASecond / 2, "0.5/s"},
	} {
		got, err := ParseRate(tc.in)
		if tc.want == 0 {
			if err == nil {
				t.Errorf("ParseRate(%q) = %v; want an error", tc.in, got)
			}
			continue
		}
		if err != nil || got != tc.want || got.String() != tc.out {
			t.Errorf("ParseRate(%q) = %d (%v), %v; want %d (%s)", tc.in, got, got, err, tc.want, tc.out)
		}
	}
}

func TestInvalidRateErrorNamesAllowedRange(t *testing.T) {
	t.Parallel()
	const (
		bounds = "rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond)"
		form   = "a rate is a number of messages per second, minute or hour, such as 20000/s, 10k/s, 0.5/s, 100/m or 3/h"
		whole  = "a rate must be a whole number of millionths of a message per hour: use fewer decimals, or /m or /h"
	)
	for in, why := range map[string]string{
		"-5/s": bounds, "0/s": bounds, "0.0/h": bounds, "-0.5/m": bounds, "1000000001/s": bounds,
		"1000000000.5/s": bounds, "99999999999999999999999/h": bounds, "18446744073709551615/s": bounds,
		"": form, "/s": form, "20000/": form, "20000/d": form, "+1/s": form, "--1/s": form,
		"5./s": form, "1.2.3/s": form, "1/s/s": form, "max": form, "1,00/s": form, "10m/s": form, "5 MB/s": form,
		"0.0000000001/s": whole, "0.3333333/h": whole, "0.0000000000000000000000000000001/s": whole,
	} {
		_, err := ParseRate(in)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+why) {
			t.Errorf("ParseRate(%q): %v; want %s", in, err, why)
		}
	}
}

func TestOverflowingRateStaysAboveMaximum(t *testing.T) {
	t.Parallel()
	if got := PerSecond(math.MaxUint64); got <= MaxRate {
		t.Errorf("PerSecond(2^64-1) = %d; want more than MaxRate", got)
	}
	if got, want := PerSecond(3).PerSecond(), 3.0; got != want {
		t.Errorf("PerSecond(3).PerSecond() = %v; want %v", got, want)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"20000/s", "0.5/s", "100/m", "3/h", "-1/s", "0.0009765625/s"} {
		f.Add(s, uint64(17))
	}
	f.Fuzz(func(t *testing.T, s string, n uint64) {
		if r, err := ParseRate(s); err == nil && (r == 0 || r > MaxRate) {
			t.Errorf("ParseRate(%q) = %d, which is out of bounds", s, r)
		}
		want := Rate(n%uint64(MaxRate) + 1)
		if got, err := ParseRate(want.String()); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", want, got, err, want)
		}
	})
}
