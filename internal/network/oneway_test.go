package network

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"
)

// run sends n packets of size bytes, gap apart, and returns their numbers and delays in order of
// arrival.
func run(c Conditions, n, size int, gap time.Duration) (l *oneWay, numbers []int, took []time.Duration) {
	l = newOneWay(c, 7)
	arrive := func(until time.Duration) {
		for {
			at, any := l.next()
			if !any || at > until {
				return
			}
			b := l.arrive(at)
			i := int(binary.BigEndian.Uint32(b))
			numbers, took = append(numbers, i), append(took, at-time.Duration(i)*gap)
			l.done(b)
		}
	}
	for i := range n {
		at := time.Duration(i) * gap
		arrive(at)
		b := make([]byte, size)
		binary.BigEndian.PutUint32(b, uint32(i))
		l.take(at, b)
	}
	arrive(math.MaxInt64)
	return l, numbers, took
}

// around checks that a count of n draws of probability p is within 5 standard deviations.
func around(t *testing.T, what string, got int64, n int, p float64) {
	t.Helper()
	mean := float64(n) * p
	if d := 5 * math.Sqrt(mean*(1-p)); math.Abs(float64(got)-mean) > d {
		t.Errorf("%s: %d of %d; want %.0f ± %.0f", what, got, n, mean, d)
	}
}

func TestUnconditionedDirectionForwardsAtOnce(t *testing.T) {
	l, numbers, took := run(Conditions{}, 1000, 100, time.Microsecond)
	if len(numbers) != 1000 || !slices.IsSorted(numbers) || slices.Max(took) != 0 {
		t.Errorf("%d packets, in order: %v, slowest %v", len(numbers), slices.IsSorted(numbers), slices.Max(took))
	}
	if want := (Counts{Packets: 1000, Bytes: 100_000}); l.counts != want {
		t.Errorf("counted %+v; want %+v", l.counts, want)
	}
	if l.bytes != 0 {
		t.Errorf("%d bytes are still held", l.bytes)
	}
}

func TestPacketSharesMatchConditions(t *testing.T) {
	const n = 100_000
	l, numbers, _ := run(Conditions{Latency: 20 * time.Millisecond, Loss: 0.1, Duplicate: 0.05, Reorder: 0.02}, n, 40, time.Millisecond)
	around(t, "lost", l.counts.Lost, n, 0.1)
	around(t, "duplicated", l.counts.Duplicated, n-int(l.counts.Lost), 0.05)
	around(t, "reordered", l.counts.Reordered, n-int(l.counts.Lost), 0.02)
	if want := n - l.counts.Lost + l.counts.Duplicated; int64(len(numbers)) != want {
		t.Errorf("%d arrived; want %d, by the counts", len(numbers), want)
	}
	early, most := 0, -1
	for _, i := range numbers {
		if i < most {
			early++
		}
		most = max(most, i)
	}
	if early == 0 {
		t.Error("no packet was overtaken")
	}
}

func TestACorruptedPacketHasOneBitChanged(t *testing.T) {
	l := newOneWay(Conditions{Corrupt: 1}, 1)
	l.take(0, make([]byte, 50))
	ones := 0
	for _, b := range l.arrive(0) {
		for ; b > 0; b &= b - 1 {
			ones++
		}
	}
	if ones != 1 || l.counts.Corrupted != 1 {
		t.Errorf("%d bits are changed, %d packets counted; want 1 and 1", ones, l.counts.Corrupted)
	}
}

func TestJitterHasItsDistribution(t *testing.T) {
	const n, j = 50_000, 5 * time.Millisecond
	for _, x := range []struct {
		of                      Distribution
		mean, deviation         float64 // of the jitter, in units of J
		lower, median, quartile float64
	}{
		{Uniform, 0, 1 / math.Sqrt(3), -0.5, 0, 0.5},
		{Normal, 0, 1, -0.6745, 0, 0.6745},
		{Exponential, 1, 1, 0.2877, 0.6931, 1.3863},
		{Pareto, 0, 1, -0.4612, -0.2772, 0.1009},
	} {
		c := Conditions{Latency: 50 * time.Millisecond, Jitter: j, Distribution: x.of}
		// Far enough apart that no packet waits for the one before it.
		_, _, took := run(c, n, 40, time.Hour)
		slices.Sort(took)
		sum, squares := 0.0, 0.0
		for _, d := range took {
			v := float64(d-c.Latency) / float64(j)
			sum, squares = sum+v, squares+v*v
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		at := func(p float64) float64 { return float64(took[int(p*n)]-c.Latency) / float64(j) }
		for _, y := range []struct {
			what      string
			got, want float64
			off       float64
		}{
			{"mean", mean, x.mean, 6 / math.Sqrt(n)},
			{"standard deviation", deviation, x.deviation, 0.15}, // pareto: its fourth moment is not finite
			{"lower quartile", at(0.25), x.lower, 0.04},
			{"median", at(0.5), x.median, 0.04},
			{"upper quartile", at(0.75), x.quartile, 0.04},
		} {
			if math.Abs(y.got-y.want) > y.off {
				t.Errorf("%s: %s %.3f; want %.3f", x.of, y.what, y.got, y.want)
			}
		}
		if x.of == Uniform && (took[0] < 45*time.Millisecond || took[n-1] > 55*time.Millisecond) || x.of == Exponential && took[0] < c.Latency {
			t.Errorf("%s: %v to %v", x.of, took[0], took[n-1])
		}
	}
}

func TestJitterDoesNotReorder(t *testing.T) {
	_, numbers, _ := run(Conditions{Latency: 10 * time.Millisecond, Jitter: 10 * time.Millisecond}, 10_000, 40, 100*time.Microsecond)
	if !slices.IsSorted(numbers) {
		t.Error("packets overtook each other")
	}
}

func TestBandwidthSpacesPackets(t *testing.T) {
	// 1000 bytes at 8 Mbit/s take 1 ms.
	_, numbers, took := run(Conditions{Bandwidth: 8_000_000}, 100, 1000, 0)
	if len(numbers) != 100 || took[0] != time.Millisecond || took[99] != 100*time.Millisecond {
		t.Errorf("%d packets, the first after %v, the last after %v; want 100, 1ms, 100ms", len(numbers), took[0], took[len(took)-1])
	}
	// The queue holds a quarter of a second.
	l, numbers, _ := run(Conditions{Bandwidth: 8_000_000}, 1000, 1000, 0)
	if len(numbers) < 250 || len(numbers) > 252 || l.counts.Queue != int64(1000-len(numbers)) {
		t.Errorf("%d of 1000 at once arrived, %d dropped; want 251 and the rest", len(numbers), l.counts.Queue)
	}
}

func TestAPartitionLetsNothingThrough(t *testing.T) {
	l := newOneWay(Conditions{Latency: time.Millisecond}, 1)
	l.take(0, []byte("before"))
	l.cut = true
	l.take(1, []byte("within"))
	l.cut = false
	l.take(2, []byte("after"))
	var got []string
	for b := l.arrive(time.Second); b != nil; b = l.arrive(time.Second) {
		got = append(got, string(b))
	}
	if want := []string{"before", "after"}; !slices.Equal(got, want) || l.counts.Cut != 1 {
		t.Errorf("%q arrived, %d were cut; want %q and 1", got, l.counts.Cut, want)
	}
}

func TestDirectionBufferIsBounded(t *testing.T) {
	l := newOneWay(Conditions{Latency: time.Hour}, 1)
	packet := make([]byte, mtu)
	for range maxHeldBytes/mtu + 10 {
		l.take(0, packet)
	}
	if l.bytes > maxHeldBytes || l.counts.Overflow < 9 {
		t.Errorf("%d bytes are held, %d packets dropped; want %d at the most, and 9 or more", l.bytes, l.counts.Overflow, maxHeldBytes)
	}
}

func TestForwardingPacketDoesNotAllocate(t *testing.T) {
	l := newOneWay(Conditions{Latency: time.Millisecond, Jitter: time.Millisecond / 2}, 1)
	packet, now := make([]byte, 1000), time.Duration(0)
	pass := func() {
		now += 10 * time.Microsecond
		l.take(now, packet)
		for b := l.arrive(now); b != nil; b = l.arrive(now) {
			l.done(b)
		}
	}
	for range 10_000 {
		pass()
	}
	if n := testing.AllocsPerRun(10_000, pass); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

func TestInvalidConditionsAreRejected(t *testing.T) {
	const ms = time.Millisecond
	for _, x := range []struct {
		c    Conditions
		fine bool
	}{
		{Conditions{}, true},
		{Conditions{Latency: 10 * ms, Jitter: 10 * ms}, true},
		{Conditions{Jitter: ms}, false},
		{Conditions{Jitter: ms, Distribution: Exponential}, true},
		{Conditions{Latency: 10 * ms, Jitter: 6 * ms, Distribution: Normal}, false},
		{Conditions{Latency: ms, Distribution: Normal}, false},
		{Conditions{Reorder: 0.1}, false},
		{Conditions{Loss: 1}, false},
	} {
		if err := x.c.Check(); (err == nil) != x.fine {
			t.Errorf("%+v: %v", x.c, err)
		}
	}
}
