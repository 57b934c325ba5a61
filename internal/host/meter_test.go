package host

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weirmq/weir/internal/pace"
)

func TestReadJiffies(t *testing.T) {
	for _, c := range []struct {
		name, stat string
		want       jiffies
	}{
		{"a guest", "cpu  100 10 50 800 30 1 2 7 5 1\ncpu0 1 1 1 1 1 1 1 1 0 0\n", jiffies{busy: 163, steal: 7, total: 1000, cores: 1, ok: true}},
		{"an old kernel without steal", "cpu  100 10 50 800 30 1 2\n", jiffies{}},
		{"a sandbox that shows zeros", "cpu  0 0 0 0 0 0 0 0 0 0\n", jiffies{}},
		{"nonsense", "cpu  1 2 3 4 5 6 7 x\n", jiffies{}},
		{"another file", "MemTotal: 1 2 3 4 5 6 7 8 9\n", jiffies{}},
		{"nothing", "", jiffies{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := readJiffies(files(map[string]string{"proc/stat": c.stat})); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestUsageIsDifferenceOfReadings(t *testing.T) {
	known := func(n uint64) counter { return counter{n, true} }
	second := int64(time.Second)
	for _, c := range []struct {
		name      string
		then, now Reading
		want      Usage
	}{
		{
			"all is told",
			Reading{
				At: 5 * second, cores: 2,
				process:     process{known(600_000_000), known(400_000_000), known(3), known(100), known(7)},
				jiffies:     jiffies{busy: 100, steal: 10, total: 1000, ok: true},
				swapIn:      known(4096),
				swapOut:     known(0),
				throttledNS: known(1_000), throttledPeriods: known(1),
			},
			Reading{
				At: 7 * second, cores: 2,
				process:     process{known(1_300_000_000), known(700_000_000), known(3), known(140), known(9)},
				jiffies:     jiffies{busy: 200, steal: 20, total: 1400, ok: true},
				swapIn:      known(8192),
				swapOut:     known(0),
				throttledNS: known(500_001_000), throttledPeriods: known(6),
			},
			Usage{
				SpanS: 2, Cores: 2, CPUSeconds: new(1.0), CPUShare: new(0.25), MajorFaults: new(uint64(0)), VoluntarySwitches: new(uint64(40)),
				InvoluntarySwitches: new(uint64(2)), HostBusyShare: new(0.25), StealShare: new(0.025), SwapInBytes: new(uint64(4096)),
				SwapOutBytes: new(uint64(0)), ThrottledS: new(0.5), ThrottledPeriods: new(uint64(5)),
			},
		},
		{"nothing is told", Reading{cores: 4}, Reading{At: second, cores: 4}, Usage{SpanS: 1, Cores: 4}},
		{
			"told only the second time",
			Reading{cores: 1},
			Reading{At: second, cores: 1, swapIn: known(4096), jiffies: jiffies{total: 10, ok: true}},
			Usage{SpanS: 1, Cores: 1},
		},
		{
			"counters that went back",
			Reading{cores: 1, swapIn: known(9), jiffies: jiffies{busy: 5, steal: 9, total: 100, ok: true}},
			Reading{At: second, cores: 1, swapIn: known(1), jiffies: jiffies{busy: 55, steal: 8, total: 200, ok: true}},
			Usage{SpanS: 1, Cores: 1, HostBusyShare: new(0.5)},
		},
		{
			// A run of 1,000 messages a second: weir and the server used 0.72 of a core.
			"threads that slept at every tick are in no column",
			Reading{cores: 2, jiffies: jiffies{busy: 1000, total: 100_000, cores: 2, ok: true}},
			Reading{At: 10 * second, cores: 2, jiffies: jiffies{busy: 1079, total: 101_279, cores: 2, ok: true}},
			Usage{SpanS: 10, Cores: 2, HostBusyShare: new(0.4), StealShare: new(0.0)},
		},
		{
			"columns that hold more than the time between",
			Reading{cores: 2, jiffies: jiffies{busy: 1000, total: 100_000, cores: 2, ok: true}},
			Reading{At: 10 * second, cores: 2, jiffies: jiffies{busy: 1505, total: 102_020, cores: 2, ok: true}},
			Usage{SpanS: 10, Cores: 2, HostBusyShare: new(0.25), StealShare: new(0.0)},
		},
		{
			"no time between",
			Reading{cores: 1, process: process{userNS: known(2), systemNS: known(3)}},
			Reading{cores: 1, process: process{userNS: known(2), systemNS: known(3)}},
			Usage{Cores: 1, CPUSeconds: new(0.0)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.now.Since(c.then)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMeterReadsAHost(t *testing.T) {
	root := files(map[string]string{
		"proc/stat":              "cpu  100 10 50 800 30 1 2 7 0 0\n",
		"proc/vmstat":            "nr_free_pages 5\npswpin 3\npswpout 4\n",
		"proc/self/cgroup":       "0::/\n",
		"proc/self/mountinfo":    mountV2,
		"sys/fs/cgroup/cpu.max":  "50000 100000\n",
		"sys/fs/cgroup/cpu.stat": "nr_throttled 2\nthrottled_usec 9\n",
	})
	m := startMeter(pace.NewClock(), root)
	m.pageSz = 4096
	r := m.Read()
	if r.cores != 0.5 {
		t.Errorf("%v cores, want the quota of 0.5", r.cores)
	}
	if want := (counter{3 * 4096, true}); r.swapIn != want {
		t.Errorf("swapped in %v, want %v", r.swapIn, want)
	}
	if want := (counter{4 * 4096, true}); r.swapOut != want {
		t.Errorf("swapped out %v, want %v", r.swapOut, want)
	}
	if want := (counter{9000, true}); r.throttledNS != want {
		t.Errorf("throttled %v ns, want %v", r.throttledNS, want)
	}
	if want := (counter{2, true}); r.throttledPeriods != want {
		t.Errorf("throttled in %v periods, want %v", r.throttledPeriods, want)
	}
	if !r.jiffies.ok {
		t.Error("ticks are unknown")
	}
}

func TestMeterReadsThisHost(t *testing.T) {
	m := StartMeter(pace.NewClock())
	a := m.Read()
	b := m.Read()
	u := b.Since(a)
	if b.At <= a.At || u.SpanS <= 0 {
		t.Errorf("readings at %d and %d", a.At, b.At)
	}
	if (runtime.GOOS == "linux" || runtime.GOOS == "darwin") && (u.CPUSeconds == nil || u.InvoluntarySwitches == nil) {
		t.Errorf("what the process used is unknown: %+v", u)
	}
	for name, share := range map[string]*float64{"busy": u.HostBusyShare, "steal": u.StealShare} {
		if share != nil && (*share < 0 || *share > 1) {
			t.Errorf("%s share %v", name, *share)
		}
	}
}

func BenchmarkMeterRead(b *testing.B) {
	m := StartMeter(pace.NewClock())
	for b.Loop() {
		m.Read()
	}
}

func BenchmarkGCEvents(b *testing.B) {
	g := NewGCEvents()
	for b.Loop() {
		g.Next()
	}
}

// TestOtherProcessesUsageIsBounded: ten seconds on two cores. Threads of the process also wait for
// each other.
func TestOtherProcessesUsageIsBounded(t *testing.T) {
	const s = uint64(1e9)
	for name, tt := range map[string]struct {
		waited, own, busy, steal uint64 // s; busy is of the whole host
		want                     float64
	}{
		"alone on its cores":      {30, 20, 20, 0, 0},
		"beside a busy process":   {5, 10, 20, 0, 5},
		"it waited for others":    {12, 9, 15, 0, 6},
		"and for the hypervisor":  {12, 9, 15, 2, 8},
		"others had idle cores":   {0, 5, 15, 0, 0},
		"no more than there were": {50, 19, 40, 0, 1},
	} {
		before := Reading{waitedNS: known(int64(0)), process: process{userNS: known(int64(0)), systemNS: known(int64(0))}, jiffies: jiffies{total: 1, ok: true}}
		after := Reading{
			At: int64(10 * s), cores: 2, waitedNS: known(int64(tt.waited * s)), process: process{userNS: known(int64(tt.own * s)), systemNS: known(int64(0))},
			jiffies: jiffies{busy: tt.busy * ticksPerSecond, steal: tt.steal * ticksPerSecond, total: 4000 + 1, ok: true},
		}
		u := after.Since(before)
		if u.TakenS == nil || *u.TakenS < tt.want-1e-6 || *u.TakenS > tt.want+1e-6 {
			t.Errorf("%s: %v core-seconds were taken; want %v", name, u.TakenS, tt.want)
		}
	}
}
