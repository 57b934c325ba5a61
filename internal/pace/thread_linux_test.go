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
	type account struct {
		d     ThreadTime
		slept int64
		err   error
	}
	sums := make(chan account, n)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			th, err := WatchThread()
			if err != nil {
				sums <- account{err: err}
				return
			}
			defer th.Close()
			before := th.Read(c)
			x := before
			for ; x.CPU-before.CPU < int64(40*time.Millisecond); x = th.Read(c) {
			}
			d, slept := x.Since(before)
			sums <- account{d, slept, nil}
		}()
	}
	var queued int64
	asleep := 0 // of a crowded virtual machine some threads stand still with the whole host
	for range n {
		a := <-sums
		if a.err != nil {
			needs.Host(t, "schedstat", a.err)
		}
		queued += a.d.Queued
		if a.slept > a.d.At/2 {
			asleep++
		}
	}
	if asleep == n {
		t.Error("threads that only work slept most of the time")
	}
	if queued == 0 {
		t.Errorf("%d threads at work on %d cores, and none waited for one", n, runtime.NumCPU())
	}
}

func TestNewThreadHasAnAccount(t *testing.T) {
	for range 300 {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			th, err := WatchThread()
			if err == nil {
				th.Close()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			needs.Host(t, "schedstat", err)
		}
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
