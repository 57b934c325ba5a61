//go:build unix

package broker

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
)

func TestServersAreOrdered(t *testing.T) {
	var reported eventLog
	s := serving(t, "fake", 2)
	s.OnEvent = reported.take
	r := up(t, s)
	order := func(do Order, servers ...string) {
		t.Helper()
		before := hostNow()
		took, err := r.Order(t.Context(), do, 0, servers...)
		if err != nil || took.BeganNS < before || took.EndedNS < took.BeganNS || took.EndedNS > hostNow() {
			t.Errorf("%s %q took %+v, from %d on: %v", do, servers, took, before, err)
		}
	}
	refused := func(why string, do Order, servers ...string) {
		t.Helper()
		if _, err := r.Order(t.Context(), do, 0, servers...); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s %q: %v; want %q", do, servers, err, why)
		}
	}
	state := func(pid int) string { return procState(t, pid) }

	first, second := r.Pids[0], r.Pids[1]
	order(OrderStop, "server-2")
	got := state(second)
	for end := time.Now().Add(20 * time.Second); !noProc() && got != "T" && time.Now().Before(end); got = state(second) {
		time.Sleep(5 * time.Millisecond) // each thread stops when it reaches the signal
	}
	if !noProc() && got != "T" {
		t.Errorf("stopped, it is in state %s", got)
	}
	order(OrderContinue, "server-2")
	if got := state(second); !noProc() && got == "T" {
		t.Error("it does not continue")
	}
	order(OrderKill, "server-1", "server-2") // all servers, and the system is still there
	for _, pid := range []int{first, second} {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	refused("server-1 does not run", OrderStop, "server-1")
	select {
	case <-r.Done():
		t.Fatal("the system ended with the servers that a fault killed")
	case <-time.After(300 * time.Millisecond):
	}
	order(OrderStart, "server-2")
	refused("server-2 runs", OrderStart, "server-2")
	order(OrderStart, "server-1")
	order(OrderRestart, "server-2")
	refused("server-7 does not run", OrderKill, "server-7")
	refused(`"burn" is not an order`, "burn", "server-1")
	refused("too long", OrderKill, strings.Repeat("x", orderBytes))
	var events []string
	for _, e := range reported.texts() {
		if before, _, ok := strings.Cut(e, " (pid "); ok {
			_, after, _ := strings.Cut(e, ") ")
			events = append(events, before+" "+after)
		}
	}
	want := []string{
		"server-1 on node 1 ended: killed by a fault", "server-2 on node 2 ended: killed by a fault",
		"server-2 on node 2 was started again", "server-1 on node 1 was started again",
		"server-2 on node 2 ended: ended by a fault", "server-2 on node 2 was started again",
	}
	if fmt.Sprint(events) != fmt.Sprint(want) {
		t.Errorf("told %q; want %q", events, want)
	}
	// The processes have changed since; the end of the test checks for the current ones.
	must.Do(t, r.Restart(t.Context()))
}

func TestAStoppedServerEndsWithItsSystem(t *testing.T) {
	r := up(t, serving(t, "fake", 2)) // its cleanup checks for leftovers
	must.Get(r.Order(t.Context(), OrderStop, 0, "server-1", "server-2"))(t)
}

func TestEmbeddedSystemRejectsOrders(t *testing.T) {
	if _, err := (&Running{}).Order(t.Context(), OrderKill, 0, "server-1"); !errors.Is(err, ErrNoOrders) {
		t.Errorf("%v", err)
	}
}

func TestServerCrashAfterFaultIsReported(t *testing.T) {
	var reported eventLog
	s := serving(t, "fake", 2)
	s.OnEvent = reported.take
	r := up(t, s)
	for _, do := range []Order{OrderKill, OrderStart} {
		must.Get(r.Order(t.Context(), do, 0, "server-1"))(t)
	}
	all := reported.texts()
	var pid int
	if _, err := fmt.Sscanf(all[len(all)-1], "server-1 on node 1 (pid %d) was started again", &pid); err != nil {
		t.Fatalf("%q: %v", all, err)
	}
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	reported.want(t, append(all, fmt.Sprintf("server-1 on node 1 (pid %d) ended: signal: killed", pid))...)
}

// procState returns the state of a process from /proc, or "" if there is none.
func procState(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}
