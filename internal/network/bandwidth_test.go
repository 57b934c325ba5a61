package network

import "testing"

func TestBandwidthRoundTrip(t *testing.T) {
	for text, want := range map[string]int64{
		"100Mbit": 100_000_000, "1.5 Mbit/s": 1_500_000, "512kbps": 512_000, "10Gbit": MostBits, "9mbit": 9_000_000, "8000bit": LeastBits,
	} {
		got, err := ParseBandwidth(text)
		if err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
		if again, err := ParseBandwidth(FormatBandwidth(got)); again != got || err != nil {
			t.Errorf("%q is written %q, which is %d, %v", text, FormatBandwidth(got), again, err)
		}
	}
	for _, text := range []string{"", "fast", "100", "100MB", "1bit", "11Gbit", "-1Mbit", "1 Mbit/h"} {
		if got, err := ParseBandwidth(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
