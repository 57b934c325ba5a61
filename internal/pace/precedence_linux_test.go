package pace

import (
	"bytes"
	"errors"
	"math"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// mayPrecede skips the test if the host does not permit real-time priority, unless it was declared
// to.
func mayPrecede(t *testing.T) {
	t.Helper()
	err := CheckFIFO()
	if err == nil {
		return
	}
	if !errors.Is(err, ErrNoFIFO) {
		t.Fatalf("CheckFIFO: %v, want nil or %v", err, ErrNoFIFO)
	}
	needs.Host(t, "fifo", err)
}

func policy(t *testing.T) uint32 {
	t.Helper()
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatalf("ask for the thread's policy: %v", err)
	}
	return a.Policy
}

// first returns a waiter with real-time priority, and its clock.
func first() (*Waiter, *Clock) {
	c := NewClock()
	return NewWaiter(c, Calibration{Spin: true, Margin: 20_000, FIFO: true}), c
}

func TestFIFOLastsWhileThreadIsLocked(t *testing.T) {
	mayPrecede(t)
	defer lockThread()() // so that all below looks at one thread
	before := must.Get(unix.SchedGetAttr(0, 0))(t)
	w, _ := first()
	unlock := w.Lock()
	a := must.Get(unix.SchedGetAttr(0, 0))(t)
	if a.Policy != unix.SCHED_FIFO || a.Priority != fifoPriority || a.Flags&unix.SCHED_FLAG_RESET_ON_FORK == 0 {
		t.Errorf("locked: policy %d, priority %d, flags %x; want SCHED_FIFO, %d, and that it is not inherited", a.Policy, a.Priority, a.Flags, fifoPriority)
	}
	unlock()
	after := must.Get(unix.SchedGetAttr(0, 0))(t)
	if *after != *before {
		t.Errorf("unlocked: %+v, want what was there before, %+v", *after, *before)
	}
	unlock()
	w.Observe(math.MaxInt64 - 1)
	if got := policy(t); got != before.Policy {
		t.Errorf("unlocked twice: policy %d, want %d", got, before.Policy)
	}
	if NewWaiter(NewClock(), Calibration{Spin: true}).Lock(); policy(t) != before.Policy {
		t.Error("a waiter that does not ask for precedence has it")
	}
}

func TestNothingInheritsFIFO(t *testing.T) {
	mayPrecede(t)
	w, _ := first()
	defer w.Lock()()
	if got := policy(t); got != unix.SCHED_FIFO {
		t.Fatalf("policy %d, want SCHED_FIFO", got)
	}
	// Field 41 of stat is the policy (proc(5)); fields starts after the name, field 2.
	out, err := exec.Command("cat", "/proc/self/stat").Output()
	if err != nil {
		t.Fatalf("run a child: %v", err)
	}
	fields := bytes.Fields(out[bytes.LastIndexByte(out, ')')+1:])
	if got := string(fields[41-3]); got != "0" {
		t.Errorf("a child has the policy %s, want 0", got)
	}
	// Nor do threads that the runtime starts while this one has it.
	other := make(chan uint32)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		other <- policy(t)
	}()
	if got := <-other; got != unix.SCHED_NORMAL {
		t.Errorf("another thread has the policy %d, want 0", got)
	}
}

// await waits until the waiter's thread has the policy, calling between meanwhile.
func await(t *testing.T, want uint32, between func()) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); policy(t) != want; {
		if time.Now().After(end) {
			t.Fatalf("the policy is not %d after 30 s", want)
		}
		between()
	}
}

// A waiter that is behind, and so never sleeps, does not keep its priority for long, and gets it
// back when it is on time.
func TestSleeplessWaiterGivesUpFIFO(t *testing.T) {
	mayPrecede(t)
	for name, busy := range map[string]func(w *Waiter, c *Clock){
		"behind, waiting for what has passed": func(w *Waiter, c *Clock) { w.Until(c.Now() - 1) },
		"at work, waiting for nothing":        func(w *Waiter, c *Clock) { w.Observe(c.Now()) },
		"spinning for what is near":           func(w *Waiter, c *Clock) { w.Until(c.Now() + sleepCost) },
	} {
		t.Run(name, func(t *testing.T) {
			w, c := first()
			defer w.Lock()()
			if w.Yielded() != 0 {
				t.Fatalf("gave up %d times before anything", w.Yielded())
			}
			await(t, unix.SCHED_NORMAL, func() { busy(w, c) })
			if w.Yielded() != 1 {
				t.Errorf("gave up %d times, want once", w.Yielded())
			}
			for range 1000 {
				w.Until(c.Now() - 1)
			}
			await(t, unix.SCHED_FIFO, func() { w.Until(c.Now() + 5_000_000) })
		})
	}
}

// A blocked thread uses no core: it keeps its priority, however late.
func TestWaiterWokenLateKeepsFIFO(t *testing.T) {
	mayPrecede(t)
	w, c := first()
	defer w.Lock()()
	due := c.Now()
	for range 5 {
		time.Sleep(2 * time.Duration(fifoWindow))
		w.Until(due)
	}
	if got := policy(t); got != unix.SCHED_FIFO || w.Yielded() != 0 {
		t.Errorf("policy %d, given up %d times; want SCHED_FIFO, never", got, w.Yielded())
	}
}

func TestYieldGivesUpFIFOUntilUnlock(t *testing.T) {
	mayPrecede(t)
	w, c := first()
	unlock := w.Lock()
	w.Yield()
	if got := policy(t); got != unix.SCHED_NORMAL {
		t.Errorf("policy %d after Yield, want 0", got)
	}
	w.Until(c.Now() + 2*fifoWindow)
	w.Until(c.Now() + 1)
	if got := policy(t); got != unix.SCHED_NORMAL {
		t.Errorf("policy %d on time after Yield, want 0", got)
	}
	unlock()
	defer w.Lock()()
	if got := policy(t); got != unix.SCHED_FIFO {
		t.Errorf("policy %d when locked again, want SCHED_FIFO", got)
	}
}

func TestFIFOAllocatesNothing(t *testing.T) {
	mayPrecede(t)
	w, c := first()
	defer w.Lock()()
	if n := testing.AllocsPerRun(50, func() { w.look(c.Now(), true) }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
	if n := testing.AllocsPerRun(50, func() {
		if w.turn.p.give() != nil || w.turn.p.take() != nil {
			t.Error("refused")
		}
	}); n != 0 {
		t.Errorf("giving and taking allocate %v times", n)
	}
}

func TestCalibrationUnderFIFO(t *testing.T) {
	mayPrecede(t)
	defer lockThread()()
	before := policy(t)
	pacers, rate := 1, 1000.0
	cal := CalibrateFIFO(pacers, rate)
	if want := barred(pacers, Cores(), rate) == ""; cal.FIFO != want {
		t.Errorf("FIFO %v, want %v: %s", cal.FIFO, want, cal.Why)
	}
	if cal.FIFO && !strings.HasSuffix(cal.Why, "; takes precedence over all else (SCHED_FIFO)") {
		t.Errorf("why = %q", cal.Why)
	}
	if cal.Samples == 0 {
		t.Error("measured nothing")
	}
	if got := policy(t); got != before {
		t.Errorf("leaves the policy %d, want %d", got, before)
	}
	t.Logf("%+v", cal)
}
