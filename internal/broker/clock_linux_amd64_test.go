package broker

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// apart returns the offset between a fake server's wall clock and that of this process.
func apart(t *testing.T, address string) time.Duration {
	t.Helper()
	c := must.Get(net.Dial("tcp", address))(t)
	defer func() { _ = c.Close() }()
	var word string
	var nodes int
	var seconds int64
	must.Get(fmt.Fscan(c, &word, &nodes, &seconds))(t)
	return -time.Since(time.Unix(seconds, 0)).Round(time.Minute)
}

func TestTheClockOfAServerSteps(t *testing.T) {
	self := must.Get(os.Executable())(t)
	if err := clockstep.Check(self); err != nil {
		needs.Host(t, "ptrace", err)
	}
	r := up(t, serving(t, "fake", 2))
	order := func(do Order, by time.Duration) {
		t.Helper()
		must.Get(r.Order(t.Context(), do, by, "server-1"))(t)
	}
	want := func(first time.Duration) {
		t.Helper()
		must.Until(t, fmt.Sprintf("the clock of the first server is %v apart", first), func() bool { return apart(t, r.Address[0]) == first })
		if got := apart(t, r.Address[1]); got != 0 {
			t.Errorf("the clock of the second server is %v apart", got)
		}
	}
	want(0)
	order(OrderClock, -time.Hour)
	if got := apart(t, r.Address[0]); got != -time.Hour {
		t.Errorf("when the order is done, the clock is %v apart", got)
	}
	want(-time.Hour)
	order(OrderClock, 2*time.Hour) // from the host's clock, not from the previous step
	want(2 * time.Hour)
	order(OrderCorrect, 0)
	if got := apart(t, r.Address[0]); got != 0 {
		t.Errorf("when it is undone, the clock is %v apart", got)
	}
	want(0)

	// A server restarted meanwhile is stepped too, and restored with the others.
	order(OrderClock, time.Hour)
	order(OrderKill, 0)
	order(OrderStart, 0)
	must.Until(t, "the server answers", func() bool {
		c, err := net.Dial("tcp", r.Address[0])
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	want(time.Hour)
	order(OrderCorrect, 0)
	want(0)
	if _, err := r.Order(t.Context(), OrderClock, time.Hour, "server-7"); err == nil {
		t.Error("the clock of a server that is not there")
	}
}
