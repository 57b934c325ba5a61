package beanstalkd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func open(t testing.TB, run driver.Run, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	return trial.Opened(t, Definition(), run, system, options...)
}

func produce(t testing.TB, c driver.Conn, destinations ...string) (*producer, trial.Fates) {
	t.Helper()
	p, f := trial.Producer(t, c, destinations...)
	return p.(*producer), f
}

// put sends one message, and returns its outcome.
func put(t testing.TB, p *producer, f trial.Fates, destination, text string) error {
	t.Helper()
	p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(text)})
	return f.Next(t)
}

// A sink knows its consumer.
type sink struct {
	*trial.Log
	consumer driver.Consumer
}

// stir sends something on the consumer's connection.
func (s *sink) stir(t testing.TB) {
	for _, f := range s.consumer.(blocking.Feeds) {
		if err := f.(*feed).Link.Do(t.Context(), func(k *client.Conn) error { _, err := k.Stats(); return err }); err != nil {
			t.Error(err)
		}
	}
}

// has returns the numbers of deliveries and settlements.
func (s *sink) has() (delivered, settled int) {
	s.Lock()
	defer s.Unlock()
	return len(s.Got), s.Settlements + len(s.Unsettled)
}

// consume runs a consumer until the test ends.
func consume(t testing.TB, c driver.Conn, deliver func(), destinations ...string) *sink {
	t.Helper()
	s := &sink{Log: trial.NewLog()}
	s.OnDeliver = func([]driver.Delivery) error { deliver(); return nil }
	s.consumer, _ = trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: destinations}, s)
	s.WaitReady(t)
	return s
}

func TestUnknownSyncIsNotPersisted(t *testing.T) {
	k := (&Config{Fsync: -1}).Known(driver.Servers{})
	k["server.binlog"] = "yes"
	if got := page.Confirmations.Of(k); got != (driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}) {
		t.Errorf("%+v", got)
	}
}

func TestTooLargeMessage(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, driver.Run{ID: "large"}, s.Options)
	spec := driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1, Largest: 65536}
	_, err := c.Producer(t.Context(), spec, nil)
	if want := "message too large: 64KiB, the server's max-job-size is 65535B"; !errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), want) {
		t.Errorf("a producer of larger messages: %v", err)
	}
	p, f := produce(t, c, "d")
	if err := put(t, p, f, "d", strings.Repeat("x", 65535)); err != nil {
		t.Errorf("the largest message: %v", err)
	}
	if err := put(t, p, f, "d", strings.Repeat("x", 65536)); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a larger one: %v", err)
	}
	p.tubes.Limit(0, "") // refused by the server
	if err := put(t, p, f, "d", strings.Repeat("x", 65536)); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a larger one, sent: %v", err)
	}
	if err := put(t, p, f, "d", "small"); err != nil {
		t.Errorf("the next: %v", err)
	}
}

func TestDrainingServerRejectsMessages(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	p, f := produce(t, open(t, driver.Run{ID: "drain"}, s.Options), "d")
	must.Do(t, syscall.Kill(s.Pids[0], syscall.SIGUSR1))
	var err error
	if !trial.Eventually(func() bool { err = put(t, p, f, "d", "x"); return err != nil }) || !errors.Is(err, driver.ErrBlocked) {
		t.Errorf("%v", err)
	}
}

// TestTimeToRun processes a message for longer than its time-to-run.
func TestTimeToRun(t *testing.T) {
	s := shared.Up(t, 1)
	for touch, want := range map[string]int{"0s": 2, "200ms": 1} {
		t.Run("touch "+touch, func(t *testing.T) {
			// Without the guard, so that stir reaches the consumers' connections.
			cfg := must.Get(trial.Configure(Definition(), s.Options, "ttr", "1s", "touch", touch))(t)
			c := must.Get(cfg.Open(t.Context(), driver.Run{ID: "ttr-" + touch}))(t)
			t.Cleanup(func() {
				_ = c.Delete(context.Background(), driver.Destination{Name: "d"})
				_ = c.Close(context.Background())
			})
			var held atomic.Bool
			ctx, release := context.WithCancel(t.Context()) // ends before the cleanup
			slow := func() {
				if held.CompareAndSwap(false, true) {
					<-ctx.Done()
				}
			}
			first, second := consume(t, c, slow, "d"), consume(t, c, slow, "d")
			delivered := func() int {
				a, _ := first.has()
				b, _ := second.has()
				return a + b
			}
			p, f := produce(t, c, "d")
			must.Do(t, put(t, p, f, "d", "slow"))
			if want > 1 {
				trial.Eventually(func() bool {
					first.stir(t) // otherwise the server may ignore the time-to-run (page.md)
					second.stir(t)
					return delivered() == want
				})
			} else {
				time.Sleep(2 * time.Second)
			}
			release()
			if n := delivered(); n != want {
				t.Errorf("%d deliveries, want %d", n, want)
			}
			trial.Eventually(func() bool { _, a := first.has(); _, b := second.has(); return a+b == want })
			refused := len(first.Unsettled) + len(second.Unsettled)
			if refused != want-1 {
				t.Errorf("%d settlements were refused, want %d", refused, want-1)
			}
		})
	}
}

func TestExistingTubes(t *testing.T) {
	s := shared.Up(t, 1)
	const tube = "orders/(new)"
	k := must.Get(client.Dial("tcp", s.Address[0]))(t)
	defer func() { _ = k.Close() }()
	c := open(t, driver.Run{ID: "existing", Existing: true}, s.Options)
	p, f := produce(t, c, tube)
	must.Do(t, put(t, p, f, tube, "mine"))
	_ = c.Close(t.Context())
	id, body, err := client.NewTubeSet(k, tube).Reserve(time.Second)
	if err != nil || string(body) != "mine" {
		t.Errorf("%q, %v", body, err)
	}
	_ = k.Delete(id)
	for _, bad := range []string{"-begins", "with space", strings.Repeat("x", 200), "line\r\nquit"} {
		_, err := open(t, driver.Run{ID: "existing", Existing: true}, s.Options).Producer(t.Context(), driver.ProducerSpec{Destinations: []string{bad}}, nil)
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestDeleteRemovesRemainingJobs has more jobs than one keeper call deletes, plus one that a
// consumer does not give back.
func TestDeleteRemovesRemainingJobs(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "delete"}, s.Options)
	p, f := produce(t, c, "d")
	const n = drainers*drainBurst + 100
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
		if i >= 1000 {
			<-f
		}
	}
	d := driver.Destination{Name: "d"}
	if err := c.Delete(t.Context(), d); err != nil {
		t.Error(err)
	}
	if left, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); left > 0 || err != nil {
		t.Errorf("%d jobs are left, %v", left, err)
	}
	for range 1000 {
		<-f
	}
	x := consume(t, c, func() { <-t.Context().Done() }, "d") // ends before the cleanup
	must.Do(t, put(t, p, f, "d", "held"))
	trial.Eventually(func() bool { n, _ := x.has(); return n > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Delete(ctx, d); err == nil {
		t.Error("a job that a consumer holds was deleted")
	}
}

func TestASilentServerIsUnreachable(t *testing.T) {
	trial.Refuses(t, Definition(), nil, trial.Mistake{Name: "silence", Set: []string{"address", trial.Silent(t), "timeout", "3s"}, Is: driver.ErrUnreachable})
}

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }
