package local_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/drivers/internal/local"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/drivers/ring"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs f over both drivers built on the package, with a capacity of 4 messages, in virtual
// time.
func each(t *testing.T, f func(t *testing.T, conn driver.Conn)) {
	for _, def := range []driver.Definition{channel.Definition(), ring.Definition()} {
		t.Run(def.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := def.New()
				must.Do(t, driver.SetOption(cfg, "capacity", "4"))
				conn := must.Get(driver.Open(t.Context(), def, cfg, driver.Run{ID: "r"}))(t)
				f(t, conn)
				if err := conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// last returns the outcome of the last completed message.
func last(l *trial.Log) error {
	l.Lock()
	defer l.Unlock()
	if len(l.Errs) == 0 {
		return errors.New("no completion")
	}
	return l.Errs[len(l.Errs)-1]
}

// pause gives all goroutines time to make progress, in virtual time: longer than the longest sleep
// of a queue.
func pause() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func destinations(n int) (names []string, ds []driver.Destination) {
	for i := range n {
		names = append(names, fmt.Sprintf("d%d", i))
		ds = append(ds, driver.Destination{Name: names[i], Partitions: 1, Replicas: 1})
	}
	return names, ds
}

func none(names ...string) driver.ConsumerSpec {
	return driver.ConsumerSpec{Subscription: "s", Destinations: names, Settle: driver.SettleNone}
}

func TestAConsumerServesSeveralDestinations(t *testing.T) {
	each(t, func(t *testing.T, conn driver.Conn) {
		names, ds := destinations(3)
		must.Do(t, conn.Declare(t.Context(), ds...))
		c := must.Get(conn.Consumer(t.Context(), none(names...)))(t)
		ctx, cancel := context.WithCancel(t.Context())
		var alone sync.Mutex
		s := trial.NewLog()
		s.OnDeliver = func([]driver.Delivery) error {
			if !alone.TryLock() {
				t.Error("two goroutines deliver at once")
				return nil
			}
			defer alone.Unlock()
			return nil
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, s) }()
		f := trial.NewLog()
		p := trial.Produce(t, conn, f, names...)
		const n = 100
		for i := range n {
			p.Publish(t.Context(), &driver.Message{Destination: names[i%3], Payload: fmt.Appendf(nil, "m%d", i)})
		}
		pause()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if len(s.Distinct()) != n || !s.IsReady() || len(s.Faults) > 0 || s.Settlements > 0 {
			t.Errorf("%d of %d messages, ready %v, faults %v, %d settled", len(s.Distinct()), n, s.IsReady(), s.Faults, s.Settlements)
		}
	})
}

func TestDeletingDestinationWakesWaiters(t *testing.T) {
	each(t, func(t *testing.T, conn driver.Conn) {
		names, ds := destinations(2)
		must.Do(t, conn.Declare(t.Context(), ds...))
		c := must.Get(conn.Consumer(t.Context(), none(names...)))(t)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context(), trial.NewLog()) }()
		// Another subscription without a reader blocks a publisher.
		must.Get(conn.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "idle", Destinations: names, Settle: driver.SettleNone}))(t)
		f := trial.NewLog()
		p := must.Get(conn.Producer(t.Context(), driver.ProducerSpec{}, f))(t)
		published := make(chan struct{})
		go func() {
			defer close(published)
			for range 5 {
				p.Publish(t.Context(), &driver.Message{Destination: "d0", Payload: []byte("x")})
			}
		}()
		pause()
		must.Do(t, conn.Delete(t.Context(), ds[0]))
		<-published
		if err := last(f); !errors.Is(err, local.ErrGone) {
			t.Errorf("the blocked message completed with %v", err)
		}
		if err := <-ended; !errors.Is(err, local.ErrGone) {
			t.Errorf("Run returned %v", err)
		}
		p.Publish(t.Context(), &driver.Message{Destination: "d0", Payload: []byte("x")})
		if last(f) == nil {
			t.Error("a message to a deleted destination was confirmed")
		}
		p.Publish(t.Context(), &driver.Message{Destination: "d1", Payload: []byte("x")})
		if err := last(f); err != nil {
			t.Errorf("a message to the other destination: %v", err)
		}
		must.Do(t, conn.Declare(t.Context(), ds[0]))
		p.Publish(t.Context(), &driver.Message{Destination: "d0", Payload: []byte("x")})
		if err := last(f); err != nil {
			t.Errorf("a message to the destination made again: %v", err)
		}
	})
}

func TestADestinationWithoutSubscriptionsDiscards(t *testing.T) {
	each(t, func(t *testing.T, conn driver.Conn) {
		names, ds := destinations(1)
		must.Do(t, conn.Declare(t.Context(), ds...))
		f := trial.NewLog()
		p := trial.Produce(t, conn, f, names...)
		for range 100 { // of capacity 4
			p.Publish(t.Context(), &driver.Message{Destination: "d0", Payload: []byte("x")})
			must.Do(t, last(f))
		}
	})
}

func TestUndeclaredDestinationIsRejected(t *testing.T) {
	each(t, func(t *testing.T, conn driver.Conn) {
		if _, err := conn.Consumer(t.Context(), none("nowhere")); err == nil {
			t.Error("a consumer of a destination that was not declared")
		}
		f := trial.NewLog()
		p := must.Get(conn.Producer(t.Context(), driver.ProducerSpec{}, f))(t)
		p.Publish(t.Context(), &driver.Message{Destination: "nowhere"})
		if last(f) == nil {
			t.Error("a message to a destination that was not declared was confirmed")
		}
		must.Do(t, p.Close(t.Context()))
		p.Publish(t.Context(), &driver.Message{Destination: "nowhere"})
		if err := last(f); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		must.Do(t, conn.Close(t.Context()))
		_, ds := destinations(1)
		if err := conn.Declare(t.Context(), ds...); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Declare after Close: %v", err)
		}
	})
}
