// Package meshtest has what the tests of drivers without a server share: a Conn with one
// destination, and a consumer that stands still until it is released.
package meshtest

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// Open connects with options, name and value in turns, and declares the destination d.
func Open(t testing.TB, def driver.Definition, options ...string) driver.Conn {
	t.Helper()
	c, err := trial.Open(t, def, driver.Run{ID: "r"}, nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if err := c.Declare(t.Context(), driver.Destination{Name: "d"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Spec is a consumer of the destination d.
func Spec(subscription string, index int) driver.ConsumerSpec {
	return driver.ConsumerSpec{Subscription: subscription, Index: index, Destinations: []string{"d"}, Settle: driver.SettleNone}
}

// A Sink counts what a consumer yields. It waits in Deliver until Release.
type Sink struct {
	driver.Sink
	Release func() // lets it go on; once is enough
	End     func() // ends its consumer, as the end of the test does
	gate    chan struct{}
	mu      sync.Mutex
	count   int
}

// Ready implements driver.Sink.
func (s *Sink) Ready() {}

// Deliver implements driver.Sink.
func (s *Sink) Deliver([]driver.Delivery) error {
	<-s.gate
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return nil
}

// Has returns how many messages were delivered.
func (s *Sink) Has() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Consume runs a consumer until End or the end of the test.
func Consume(t testing.TB, c driver.Conn, spec driver.ConsumerSpec) *Sink {
	t.Helper()
	s := &Sink{gate: make(chan struct{})}
	s.Release = sync.OnceFunc(func() { close(s.gate) })
	_, end := trial.Run(t, c, spec, s)
	s.End = sync.OnceFunc(func() {
		s.Release()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.End)
	return s
}

// Publish sends n messages of so many bytes to the destination d.
func Publish(t testing.TB, p driver.Producer, n, size int) {
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, size)})
	}
}

// Backlog asks for that of the destination d.
func Backlog(t testing.TB, c driver.Conn, subscription string) uint64 {
	t.Helper()
	n, err := c.(driver.Backlogger).Backlog(t.Context(), subscription, []string{"d"})
	if err != nil {
		t.Error(err)
	}
	return n
}

// MessageAllocs returns how many allocations a message of 64 bytes takes that is sent and
// received on the destination d.
func MessageAllocs(t testing.TB, c driver.Conn, rounds int) float64 {
	t.Helper()
	s := Consume(t, c, Spec("s", 0))
	s.Release()
	p, f := trial.Producer(t, c, "d")
	m, ctx := &driver.Message{Destination: "d", Payload: make([]byte, 64)}, t.Context()
	return Allocs(rounds, func() {
		want := s.Has() + 1
		p.Publish(ctx, m)
		<-f
		for s.Has() < want {
			time.Sleep(time.Microsecond)
		}
	})
}

// Allocs is the least of a few counts: what else the process does adds to one.
func Allocs(rounds int, f func()) float64 {
	least := testing.AllocsPerRun(rounds, f)
	for range 3 {
		least = min(least, testing.AllocsPerRun(rounds, f))
	}
	return least
}

// Version checks that the version that a driver states of a module is that of go.mod.
func Version(t testing.TB, module, stated string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != stated {
		t.Errorf("go.mod has %s, the driver says %s", got, stated)
	}
}
