package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// again redelivers what its consumer takes, that long after it came.
func (f *fake) again(after time.Duration, drop func(n int) bool) {
	f.feed = func(ctx context.Context, sink driver.Sink) error {
		f.mu.Lock()
		var in chan []byte
		for _, subs := range f.subs {
			for _, ch := range subs {
				in = ch
			}
		}
		f.mu.Unlock()
		var held [][]byte
		second := time.NewTimer(after)
		defer second.Stop()
		for n := 0; ; {
			select {
			case b := <-in:
				if held = append(held, b); !drop(n) {
					_ = sink.Deliver([]driver.Delivery{{Payload: b, Partition: -1}})
				}
				n++
			case <-second.C:
				for _, b := range held {
					_ = sink.Deliver([]driver.Delivery{{Payload: b, Partition: -1, Redelivered: true}})
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// A delivery after the end of the drain is late, or a duplicate, and never lost. It is in no
// distribution.
func TestLateDeliveriesAreCountedWhileListening(t *testing.T) {
	for _, c := range []struct {
		name             string
		listen, stop     time.Duration
		late, duplicated uint64
		listened         time.Duration
	}{
		{name: "for long enough", listen: 35 * time.Second, late: 55, duplicated: 55, listened: 35 * time.Second},
		{name: "not at all"},
		{name: "for too short", listen: time.Second, listened: time.Second},
		{name: "until Ctrl-C", listen: time.Hour, stop: 33 * time.Second, late: 55, duplicated: 55, listened: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				f := &fake{backlog: func() (uint64, error) { return 55, nil }}
				f.again(30*time.Second, func(n int) bool { return n%2 == 1 })
				cfg := config(f, 100)
				cfg.AfterDrain = c.listen
				stop := make(chan struct{})
				if c.stop > 0 {
					time.AfterFunc(c.stop, func() { close(stop) })
				}
				raw := must.Get(Run(t.Context(), stop, cfg))(t)
				balanced(t, raw, 1)
				expect(t, "delivered", raw.All.Delivered, 55)
				expect(t, "late", raw.All.Late, c.late)
				expect(t, "duplicated", raw.All.Duplicated, c.duplicated)
				expect(t, "redelivered", raw.All.Redelivered, c.late+c.duplicated)
				expect(t, "pending", raw.All.Pending, 55-c.late)
				expect(t, "lost", raw.All.Lost, 0)
				if c.listened >= 0 {
					expect(t, "listened", raw.Listened, c.listened)
				} else if raw.Listened < 20*time.Second || raw.Listened > 33*time.Second {
					t.Errorf("listened for %v after a drain that ended before 7 s; stopped at %v", raw.Listened, c.stop)
				}
			})
		})
	}
}

// A message counted as lost that arrives after all shows that the subscription was not dry: other
// missing messages are pending.
func TestLateDeliveryIsNotLost(t *testing.T) {
	virtual(t, func(t *testing.T) {
		f := &fake{}
		f.again(30*time.Second, func(n int) bool { return n >= 50 })
		cfg := config(f, 100)
		cfg.AfterDrain = 35 * time.Second
		raw := do(t, cfg)
		expect(t, "late", raw.All.Late, 60)
		expect(t, "lost", raw.All.Lost, 0)
		expect(t, "dry", raw.Dry[0], false)
	})
}

// stuck is a driver with one call that never returns, whatever its context.
type stuck struct {
	*fake
	at      string
	release chan struct{}
}

func (s *stuck) hang(at string) {
	if s.at == at {
		<-s.release
	}
}

func (s *stuck) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	_, err := s.fake.Open(ctx, run)
	s.hang("Open")
	return s, err
}

func (s *stuck) Declare(ctx context.Context, ds ...driver.Destination) error {
	s.hang("Declare")
	return s.fake.Declare(ctx, ds...)
}

func (s *stuck) Delete(ctx context.Context, ds ...driver.Destination) error {
	s.hang("Delete")
	return s.fake.Delete(ctx, ds...)
}

func (s *stuck) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	s.hang("Producer")
	return s.fake.Producer(ctx, spec, done)
}

func (s *stuck) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	s.hang("Consumer")
	return s.fake.Consumer(ctx, spec)
}

func (s *stuck) Facts(ctx context.Context) (driver.Facts, error) {
	s.hang("Facts")
	return s.fake.Facts(ctx)
}

func (s *stuck) Backlog(context.Context, string, []string) (uint64, error) {
	s.hang("Backlog")
	return 0, nil
}

func (s *stuck) Close(context.Context) error {
	s.hang("Close")
	return nil
}

// A driver that hangs anywhere must not block a user who aborts: every wait of setup, questions and
// closing is bounded.
func TestHungDriverDoesNotBlockRun(t *testing.T) {
	for _, at := range []string{"Open", "Declare", "Consumer", "Producer", "Facts", "Backlog", "Delete", "Close"} {
		for _, by := range []string{"ctx", "stop"} {
			t.Run(at+"/"+by, func(t *testing.T) {
				virtual(t, func(t *testing.T) {
					s := &stuck{fake: &fake{copies: func(_, n int) int { return n & 1 }}, at: at, release: make(chan struct{})}
					cfg := config(s.fake, 100)
					cfg.Options, cfg.Plan.Producers, cfg.Consumers = s, 40, 2
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					stop := make(chan struct{})
					const after = 1500 * time.Millisecond
					if by == "ctx" {
						time.AfterFunc(after, cancel)
					} else {
						time.AfterFunc(after, func() { close(stop) })
					}
					began := time.Now()
					raw, err := Run(ctx, stop, cfg)
					took := time.Since(began)
					setup := at == "Open" || at == "Declare" || at == "Consumer" || at == "Producer" || at == "Facts"
					if setup != errors.Is(err, context.Canceled) || setup != (raw == nil) {
						t.Errorf("Run: %v, %v", raw != nil, err)
					}
					// Ctrl-C twice ends at once; once gives the drain and each step of closing
					// their time.
					limit := 5 * time.Second
					if by == "stop" && !setup {
						limit = cfg.Drain + 3*closeLimit
					}
					if took > after+limit {
						t.Errorf("gone %v after it was told to", took-after)
					}
					close(s.release)
					time.Sleep(time.Second)
				})
			})
		}
	}
}
