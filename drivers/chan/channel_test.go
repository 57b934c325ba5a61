package channel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestFullQueueHoldsCapacityInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(4, 8)
		for i := range 4 {
			must.Do(t, q.Put(t.Context(), []byte{byte(i)}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Put(ctx, []byte{9}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a fifth message: %v", err)
		}
		buf := make([]byte, 8)
		for i := range 4 {
			if n, err := q.Take(t.Context(), buf); err != nil || n != 1 || buf[0] != byte(i) {
				t.Errorf("message %d is %v, %v", i, buf[:n], err)
			}
		}
		if _, err := q.Take(ctx, buf); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("took from an empty queue: %v", err)
		}
	})
}

func TestAMessageAllocatesNothing(t *testing.T) {
	q := newQueue(4, 64)
	payload, buf := make([]byte, 64), make([]byte, 64)
	n := testing.AllocsPerRun(1000, func() {
		_ = q.Put(t.Context(), payload)
		_, _ = q.Take(t.Context(), buf)
	})
	if n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func TestValidateRefuses(t *testing.T) {
	trial.Refuses(t, Definition(), nil, trial.Mistake{Name: "more memory than a process should take", Set: []string{"cell", "1GiB"}})
}

// BenchmarkMove puts and takes one message of 64 bytes, with as many producers as consumers.
// BenchmarkMove in package ring includes the bare channel for comparison.
func BenchmarkMove(b *testing.B) {
	for _, parties := range []int{1, 100} {
		b.Run(fmt.Sprintf("%dx%d", parties, parties), func(b *testing.B) {
			b.ReportAllocs()
			q := newQueue(1024, 64)
			ctx := context.Background()
			var all sync.WaitGroup
			for i := range parties {
				share := b.N*(i+1)/parties - b.N*i/parties
				all.Go(func() {
					payload := make([]byte, 64)
					for range share {
						_ = q.Put(ctx, payload)
					}
				})
				all.Go(func() {
					buf := make([]byte, 64)
					for range share {
						_, _ = q.Take(ctx, buf)
					}
				})
			}
			all.Wait()
		})
	}
}
