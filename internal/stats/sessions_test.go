package stats

import (
	"math"
	"testing"
)

// By mpmath 1.3 with 40 digits.
func TestSessions(t *testing.T) {
	for _, tt := range []struct {
		p        float64
		messages uint64
		want     float64
	}{
		{99, 100, 0.633967658726770495},
		{99, 1, 0.01},
		{99.9, 1000, 0.632304575229035955},
		{99.9999, 1_000_000, 0.632120742768354906},
		{99.999, 3, 0.000029999700001},
		{50, 64, 1},
		{99.9999, 1, 1e-6},
		{99, 0, 0},
		{100, 1_000_000, 0},
		{0, 1, 1},
	} {
		// 100 - p loses precision because of the double nearest to 99.9999: some 1e-11 of it.
		if got := SessionShare(tt.p, tt.messages); !near(got, tt.want, 1e-9) {
			t.Errorf("SessionShare(%v, %d) = %v; want %v", tt.p, tt.messages, got, tt.want)
		}
	}
	for _, tt := range []struct {
		share    float64
		messages uint64
		want     float64
	}{
		{0.5, 100, 99.3092495437035902},
		{0.01, 1_000_000, 99.9999989949664197},
		{0.99, 10, 63.0957344480193249},
		{0, 5, 100},
		{0.5, 0, 100},
		{1, 5, 0},
	} {
		if got := SessionPercentile(tt.share, tt.messages); math.Abs(got-tt.want) > 1e-11 {
			t.Errorf("SessionPercentile(%v, %d) = %v; want %v", tt.share, tt.messages, got, tt.want)
		}
	}
}

func TestSessionsBackAndForth(t *testing.T) {
	for _, p := range []float64{1, 50, 99, 99.9, 99.999, 99.9999} {
		for _, n := range []uint64{1, 7, 1000} {
			share := SessionShare(p, n)
			if share > 1-1e-9 {
				continue // nearly all sessions do, so the inverse is undetermined
			}
			if got := SessionPercentile(share, n); math.Abs(got-p) > 1e-9 {
				t.Errorf("p%v of %d messages: back as %v", p, n, got)
			}
			if got := SessionMessages(p, share); !near(got, float64(n), 1e-6) {
				t.Errorf("p%v of %d messages: back as %v messages", p, n, got)
			}
		}
	}
	for _, tt := range []struct{ p, share, want float64 }{
		{99, 0, 0}, {100, 0.5, math.Inf(1)}, {99, 1, math.Inf(1)}, {0, 0.5, 1}, {99, 0.5, 68.967563936528},
	} {
		if got := SessionMessages(tt.p, tt.share); !near(got, tt.want, 1e-12) {
			t.Errorf("SessionMessages(%v, %v) = %v; want %v", tt.p, tt.share, got, tt.want)
		}
	}
}
