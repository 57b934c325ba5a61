package blocking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ driver.Producer = (*Pool)(nil)

// fates records completions.
type fates struct {
	mu  sync.Mutex
	all map[*driver.Message][]error
}

func (f *fates) Complete(m *driver.Message, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*driver.Message][]error{}
	}
	f.all[m] = append(f.all[m], err)
}

func (f *fates) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, errs := range f.all {
		n += len(errs)
	}
	return n
}

func (f *fates) of(t *testing.T, m *driver.Message) error {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.all[m]); n != 1 {
		t.Errorf("message %d was completed %d times", m.Token, n)
		return nil
	}
	return f.all[m][0]
}

func some(n int) []*driver.Message {
	ms := make([]*driver.Message, n)
	for i := range ms {
		ms[i] = &driver.Message{Token: uint64(i)}
	}
	return ms
}

func publish(ctx context.Context, p *Pool, ms []*driver.Message) {
	for _, m := range ms {
		p.Publish(ctx, m)
	}
}

func TestOneWorkerKeepsTheOrder(t *testing.T) {
	var f fates
	var sent []uint64
	p := New(1, 4, func(_ context.Context, _ int, m *driver.Message) error { sent = append(sent, m.Token); return nil }, &f)
	publish(t.Context(), p, some(1000))
	must.Do(t, p.Close(t.Context()))
	if len(sent) != 1000 || !slices.IsSorted(sent) {
		t.Errorf("%d messages were sent, in order: %v", len(sent), slices.IsSorted(sent))
	}
}

func TestCallErrorIsMessageOutcome(t *testing.T) {
	var f fates
	odd := errors.New("odd")
	p := New(3, 8, func(_ context.Context, _ int, m *driver.Message) error {
		if m.Token%2 == 1 {
			return odd
		}
		return nil
	}, &f)
	ms := some(100)
	publish(t.Context(), p, ms)
	must.Do(t, p.Flush(t.Context()))
	for _, m := range ms {
		if err := f.of(t, m); (m.Token%2 == 1) != errors.Is(err, odd) {
			t.Errorf("message %d completed with %v", m.Token, err)
		}
	}
	must.Do(t, p.Close(t.Context()))
}

func TestWorkersAreNumberedAndSequential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fates
		var busy [4]atomic.Bool
		var used [4]atomic.Int64
		p := New(4, 0, func(_ context.Context, worker int, _ *driver.Message) error {
			if !busy[worker].CompareAndSwap(false, true) {
				t.Errorf("worker %d has two calls", worker)
			}
			time.Sleep(time.Millisecond)
			used[worker].Add(1)
			busy[worker].Store(false)
			return nil
		}, &f)
		start := time.Now()
		publish(t.Context(), p, some(400))
		must.Do(t, p.Close(t.Context()))
		// 400 calls of 1 ms, four at a time.
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("took %v of virtual time", d)
		}
		for i := range used {
			if used[i].Load() == 0 {
				t.Errorf("worker %d was never used", i)
			}
		}
	})
}

func TestFlushMeansAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fates
		p := New(2, 64, func(context.Context, int, *driver.Message) error { time.Sleep(time.Second); return nil }, &f)
		for round := range 3 {
			publish(t.Context(), p, some(10))
			must.Do(t, p.Flush(t.Context()))
			if n := f.count(); n != 10*(round+1) {
				t.Errorf("Flush returned with %d completions in round %d", n, round)
			}
		}
		publish(t.Context(), p, some(10))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush whose context ended first returned %v", err)
		}
		must.Do(t, p.Close(t.Context()))
	})
}

func TestPublishWaitsUntilContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fates
		release := make(chan struct{})
		p := New(1, 2, func(context.Context, int, *driver.Message) error { <-release; return nil }, &f)
		ms := some(4)
		publish(t.Context(), p, ms[:3]) // one with the worker, two in the queue
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		p.Publish(ctx, ms[3])
		if d := time.Since(start); d != time.Second {
			t.Errorf("Publish returned after %v", d)
		}
		if err := f.of(t, ms[3]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("completed with %v", err)
		}
		close(release)
		must.Do(t, p.Close(t.Context()))
		for _, m := range ms[:3] {
			if err := f.of(t, m); err != nil {
				t.Errorf("message %d: %v", m.Token, err)
			}
		}
	})
}

func TestCanceledQueuedMessageIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fates
		var sent atomic.Int64
		p := New(1, 8, func(ctx context.Context, _ int, _ *driver.Message) error {
			sent.Add(1)
			<-ctx.Done() // a client that respects its context
			return ctx.Err()
		}, &f)
		ctx, cancel := context.WithCancel(t.Context())
		ms := some(5)
		publish(ctx, p, ms)
		synctest.Wait()
		cancel()
		must.Do(t, p.Flush(t.Context()))
		for _, m := range ms {
			if err := f.of(t, m); !errors.Is(err, context.Canceled) {
				t.Errorf("message %d: %v", m.Token, err)
			}
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("%d calls were made", n)
		}
		must.Do(t, p.Close(t.Context()))
	})
}

func TestCanceledCloseCompletesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fates
		p := New(2, 8, func(ctx context.Context, _ int, _ *driver.Message) error { <-ctx.Done(); return ctx.Err() }, &f)
		ms := some(10)
		publish(context.Background(), p, ms)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		for _, m := range ms {
			if err := f.of(t, m); !errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrAbandoned) {
				t.Errorf("message %d: %v", m.Token, err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("the second Close: %v", err)
		}
		late := some(1)
		publish(t.Context(), p, late)
		if err := f.of(t, late[0]); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("published after Close: %v", err)
		}
	})
}

func TestCloseAbandonsCallsIgnoringContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fates
		release := make(chan struct{})
		p := New(2, 8, func(context.Context, int, *driver.Message) error { <-release; return nil }, &f)
		ms := some(6)
		publish(t.Context(), p, ms)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, driver.ErrAbandoned) {
			t.Errorf("Close returned %v", err)
		}
		abandoned := 0
		for _, m := range ms {
			err := f.of(t, m)
			if !errors.Is(err, driver.ErrClosed) {
				t.Errorf("message %d: %v", m.Token, err)
			}
			if errors.Is(err, driver.ErrAbandoned) {
				abandoned++
			}
		}
		if abandoned != 2 {
			t.Errorf("%d messages were abandoned, two were with the client", abandoned)
		}
		close(release)
		synctest.Wait()
		if n := f.count(); n != len(ms) {
			t.Errorf("%d completions when the calls returned in the end", n)
		}
	})
}

type ignore struct{}

func (ignore) Complete(*driver.Message, error) {}

func TestAMessageAllocatesNothing(t *testing.T) {
	p := New(2, 64, func(context.Context, int, *driver.Message) error { return nil }, ignore{})
	ctx, m := t.Context(), &driver.Message{}
	n := testing.AllocsPerRun(10_000, func() { p.Publish(ctx, m) })
	must.Do(t, p.Close(ctx))
	if n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func BenchmarkPool(b *testing.B) {
	for _, workers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			p := New(workers, 1024, func(context.Context, int, *driver.Message) error { return nil }, ignore{})
			m := &driver.Message{}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				p.Publish(ctx, m)
			}
			must.Do(b, p.Close(ctx))
		})
	}
}

// pooled is a driver whose client has only a blocking call: the contract applies to it as to any
// other.
type pooled struct{ queue int }

func (c *pooled) Validate() error { return nil }
func (c *pooled) Open(context.Context, driver.Run) (driver.Conn, error) {
	return pooledConn{c.queue}, nil
}

type pooledConn struct{ queue int }

func (pooledConn) Declare(_ context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		if d.Partitions > 1 || d.Replicas > 1 {
			return driver.ErrUnsupported
		}
	}
	return nil
}
func (pooledConn) Delete(context.Context, ...driver.Destination) error { return nil }
func (c pooledConn) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return New(4, c.queue, func(ctx context.Context, _ int, _ *driver.Message) error {
		return ctx.Err()
	}, done), nil
}

func (pooledConn) Consumer(context.Context, driver.ConsumerSpec) (driver.Consumer, error) {
	return nil, driver.ErrUnsupported
}

func (pooledConn) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{Name: "pooled", Version: "1", Confirms: driver.Confirms{Guarantee: driver.Buffered}}, nil
}
func (pooledConn) Close(context.Context) error { return nil }

func TestPooledDriverKeepsContract(t *testing.T) {
	for _, queue := range []int{8, 1024} {
		t.Run(fmt.Sprintf("queue of %d", queue), func(t *testing.T) {
			def := driver.Definition{
				Name: "pooled",
				Capabilities: driver.Capabilities{
					InProcess: true, PublishBlocks: queue < 1024, Guarantees: []driver.Guarantee{driver.Buffered},
				},
				New: func() driver.Config { return &pooled{queue} },
			}
			drivertest.Run(t, def, drivertest.Harness{Quiet: 20 * time.Millisecond, Expect: 12})
		})
	}
}

func TestAtLeastOneWorker(t *testing.T) {
	var f fates
	p := New(0, -1, func(context.Context, int, *driver.Message) error { return nil }, &f)
	ms := some(3)
	publish(t.Context(), p, ms)
	must.Do(t, p.Close(t.Context()))
	golden.Equal(t, 3, f.count(), "")
}
