package pace

import (
	"strings"
	"testing"
	"testing/synctest"
)

func TestPrecedenceRequiresMostlySleeping(t *testing.T) {
	for _, c := range []struct {
		name          string
		pacers, cores int
		margin        int64
		perSecond     float64
		why           string // "": FIFO is used
	}{
		{"few waits", 1, 2, 30_000, 1_000, ""},
		{"half of a core", 1, 2, 50_000, 10_000, ""},
		{"over half of a core", 1, 2, 50_000, 10_001, "spins 50µs of each of 10001 waits a second"},
		{"many waits", 1, 8, 5_000, 1_000_000, "over half of the time"},
		{"a margin below what is spun anyhow", 1, 2, 0, 200_000, "spins 5µs of each of 200000 waits"},
		{"without margin", 1, 2, 0, 100_000, ""},
		{"a rate that is not known", 1, 8, 5_000, 0, "not known how often"},
		{"the last core", 1, 1, 5_000, 1_000, "1 pacer would take the last of 1 core"},
		{"all cores", 2, 2, 5_000, 1_000, "2 pacers would take the last of 2 cores"},
		{"pacers of many cores", 4, 16, 20_000, 20_000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			why := barred(c.pacers, c.cores, c.perSecond)
			if why == "" {
				why = Calibration{Margin: c.margin}.tooBusy(c.perSecond)
			}
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("why not: %q, want %q", why, c.why)
			}
		})
	}
}

func TestPrecedenceRefusalHasReason(t *testing.T) {
	for rate, want := range map[float64]string{0: "takes no precedence (SCHED_FIFO), as ", 1e9: "takes no precedence (SCHED_FIFO), as "} {
		cal := CalibrateFIFO(1, rate)
		if cal.FIFO || !strings.Contains(cal.Why, want) {
			t.Errorf("%v waits a second: FIFO %v, why %q; want none, and %q", rate, cal.FIFO, cal.Why, want)
		}
		if cal.Samples == 0 {
			t.Errorf("%v waits a second: measured nothing", rate)
		}
	}
}

func TestVirtualWaitersTakeNoPrecedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := CalibrateFIFO(1, 1000); got != Virtual() {
			t.Errorf("CalibrateFIFO = %+v, want %+v", got, Virtual())
		}
	})
}
