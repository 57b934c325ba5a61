package host

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleOf returns a sample of the given second with figures of n.
func sampleOf(second int64, n uint64) Sample {
	return Sample{
		FromNS: second * 1e9, ToNS: (second + 1) * 1e9,
		Host: HostSample{UserS: new(float64(n) / 100), ContextSwitches: new(n), DiskReads: new(uint64(1)), PageCacheBytes: new(n)},
		Processes: []ProcessSample{
			{Name: ProcessWeir, Processes: 1, UserS: new(0.25), SystemS: new(0.25)},
			{Name: "s", Node: 1, Processes: 1, UserS: new(float64(n) / 100), SystemS: new(0.0), WrittenBytes: new(2 * n), RSSBytes: new(n), DiskBytes: new(n), Pids: []int{int(n)}},
		},
	}
}

func TestMergeSamples(t *testing.T) {
	a, b := sampleOf(1, 10), sampleOf(2, 4)
	b.Host.DiskReads = nil // not reported in that second
	b.Processes = append(b.Processes, ProcessSample{Name: "t", Processes: 1, UserS: new(0.5)})
	a.Processes[0].WrittenBytes = new(uint64(1))
	before := cmp.Diff(a, sampleOf(1, 10))
	want := Sample{
		FromNS: 1e9, ToNS: 3e9, Host: HostSample{UserS: new(0.14), ContextSwitches: new(uint64(14)), PageCacheBytes: new(uint64(4))},
		Processes: []ProcessSample{
			{Name: ProcessWeir, Processes: 1, UserS: new(0.5), SystemS: new(0.5)},
			{Name: "s", Node: 1, Processes: 1, UserS: new(0.14), SystemS: new(0.0), WrittenBytes: new(uint64(28)), RSSBytes: new(uint64(10)), DiskBytes: new(uint64(4)), Pids: []int{4}},
			{Name: "t", Processes: 1, UserS: new(0.5)},
		},
	}
	sum := a.Then(b)
	if d := cmp.Diff(want, sum); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if cmp.Diff(a, sampleOf(1, 10)) != before {
		t.Error("a sample is changed by being added to")
	}
	if c := sum.Cores(&sum.Processes[1]); c == nil || *c != 0.07 {
		t.Errorf("cores %v", c)
	}
	if c := sum.Cores(&sum.Processes[2]); c != nil {
		t.Errorf("without system time: cores %v", *c)
	}
}

func TestAbsentProcessUsesNothing(t *testing.T) {
	a, gone, back := sampleOf(1, 10), sampleOf(2, 4), sampleOf(3, 1)
	gone.Processes[1] = ProcessSample{Name: "s", Node: 1}
	p := a.Then(gone).Processes[1]
	if *p.WrittenBytes != 20 || p.Processes != 0 || p.Pids != nil {
		t.Errorf("it has gone: %+v", p)
	}
	p = a.Then(gone).Then(back).Processes[1]
	if *p.WrittenBytes != 22 || p.Processes != 1 {
		t.Errorf("it came back: %+v", p)
	}
	if p = gone.Then(back).Processes[1]; *p.WrittenBytes != 2 {
		t.Errorf("it came: %+v", p)
	}
}

// TestSeriesBoundedWithoutLoss adds the seconds of nine hours.
func TestSeriesBoundedWithoutLoss(t *testing.T) {
	var s Series
	sum, most := uint64(0), uint64(0)
	random := rand.New(rand.NewPCG(1, 2))
	const seconds = 9 * 3600
	for i := range int64(seconds) {
		n := random.Uint64N(1000)
		sum, most = sum+n, max(most, n)
		if s.Add(sampleOf(i, n)); len(s.samples) > mostSamples {
			t.Fatalf("%d samples", len(s.samples))
		}
	}
	x := s.Between(0, seconds*1e9)
	if x.FromNS != 0 || x.ToNS != seconds*1e9 || *x.Host.ContextSwitches != sum || *x.Processes[1].WrittenBytes != 2*sum || *x.Processes[1].RSSBytes != most {
		t.Errorf("the sum is %+v; want %d, and at most %d", x, sum, most)
	}
	for i := 1; i < len(s.samples); i++ {
		if s.samples[i].FromNS != s.samples[i-1].ToNS {
			t.Fatalf("sample %d begins at %d, the one before ends at %d", i, s.samples[i].FromNS, s.samples[i-1].ToNS)
		}
	}
}

func TestWindowUsesNearestReadings(t *testing.T) {
	var s Series
	for i := range int64(10) {
		s.Add(sampleOf(i, 1))
	}
	for _, c := range []struct{ from, to, first, last int64 }{
		{2e9, 5e9, 2, 5}, {2.4e9, 4.6e9, 2, 5}, {2.6e9, 4.4e9, 3, 4}, {-9e9, 99e9, 0, 10}, {4.1e9, 4.2e9, 0, 0},
	} {
		x := s.Between(c.from, c.to)
		switch {
		case c.first == c.last:
			if x != nil {
				t.Errorf("%v: %+v", c, x)
			}
		case x == nil || x.FromNS != c.first*1e9 || x.ToNS != c.last*1e9 || *x.Host.DiskReads != uint64(c.last-c.first):
			t.Errorf("%v: %+v", c, x)
		}
	}
}

func TestTakeReturnsUntilAcknowledged(t *testing.T) {
	var s Series
	for i := range int64(10) {
		s.Add(sampleOf(i, 1))
	}
	if got := s.Take(0, 3, 100); len(got) != 3 || got[0].FromNS != 0 {
		t.Errorf("the first: %v", got)
	}
	if got := s.Take(0, 3, 100); len(got) != 3 || got[0].FromNS != 0 {
		t.Errorf("an answer that was lost is not given again: %v", got)
	}
	if got := s.Take(3e9, 8, 5); len(got) != 2 || got[0].FromNS != 3e9 {
		t.Errorf("of two processes each, for five: %v", got)
	}
	if got := s.Take(9e9, 8, 1); len(got) != 1 || got[0].FromNS != 9e9 {
		t.Errorf("one is always told: %v", got)
	}
	if got := s.Take(10e9, 8, 1); len(got) != 0 || len(s.samples) != 0 {
		t.Errorf("after the last: %v", got)
	}
}
