package pace

import (
	"runtime"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/needs"
)

// A thread works and then sleeps; the times must tell which was which. Bounds are wide: the host is
// shared.
func TestThreadTimeBreakdown(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	th, err := WatchThread()
	if err != nil {
		needs.Host(t, "schedstat", err)
	}
	defer th.Close()
	c := NewClock()
	before := th.Read(c)
	for x := th.Read(c); x.CPU-before.CPU < int64(20*time.Millisecond); x = th.Read(c) {
	}
	worked := th.Read(c)
	d, slept := worked.Since(before)
	if d.CPU < int64(20*time.Millisecond) || slept > d.At/2 || d.Queued > d.At {
		t.Errorf("a thread that works: %+v, slept %v", d, time.Duration(slept))
	}
	for try := 1; ; try++ { // on a crowded host the thread also queues
		before := th.Read(c)
		time.Sleep(50 * time.Millisecond)
		d, slept = th.Read(c).Since(before)
		if slept >= int64(30*time.Millisecond) && d.CPU <= int64(30*time.Millisecond) {
			break
		}
		if try == 20 {
			t.Fatalf("a thread that sleeps: %+v, slept %v", d, time.Duration(slept))
		}
	}
	if n := testing.AllocsPerRun(100, func() { th.Read(c) }); n != 0 {
		t.Errorf("a reading allocates %v times", n)
	}
}

// With more working threads than cores, the kernel makes some of them wait; the time in which they
// neither ran nor queued is small.
func TestThreadWaitingForCoreIsQueued(t *testing.T) {
	n := 2 * runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n + 1))
	c := NewClock()
	sums := make(chan ThreadTime, n)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			th, err := WatchThread()
			if err != nil {
				sums <- ThreadTime{At: -1}
				return
			}
			defer th.Close()
			before := th.Read(c)
			x := before
			for ; x.CPU-before.CPU < int64(40*time.Millisecond); x = th.Read(c) {
			}
			d, slept := x.Since(before)
			if slept > d.At/2 {
				t.Errorf("a thread that works slept %v of %+v", time.Duration(slept), d)
			}
			sums <- d
		}()
	}
	var queued int64
	for range n {
		d := <-sums
		if d.At < 0 {
			needs.Host(t, "schedstat", "no account of a thread")
		}
		queued += d.Queued
	}
	if queued == 0 {
		t.Errorf("%d threads at work on %d cores, and none waited for one", n, runtime.NumCPU())
	}
}

func BenchmarkThread(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	th, err := WatchThread()
	if err != nil {
		needs.Host(b, "schedstat", err)
	}
	defer th.Close()
	c := NewClock()
	for b.Loop() {
		th.Read(c)
	}
}
