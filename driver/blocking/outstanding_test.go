package blocking

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutstandingWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutstanding()
		for range 3 { // a stale token may be left
			o.Add(5)
			var waited sync.WaitGroup
			left := 5
			waited.Go(func() {
				for range 5 {
					time.Sleep(time.Second)
					left--
					o.Done(1)
				}
			})
			if err := o.Wait(context.Background()); err != nil || left != 0 {
				t.Errorf("Wait returned %v with %d left", err, left)
			}
			waited.Wait()
		}
	})
}

func TestOutstandingWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutstanding()
		if err := o.Wait(context.Background()); err != nil {
			t.Errorf("with nothing published: %v", err)
		}
		o.Add(2)
		o.Done(1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := o.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a message open: %v", err)
		}
		o.Done(1)
		if err := o.Wait(context.Background()); err != nil {
			t.Errorf("with none open any more: %v", err)
		}
	})
}

func TestOutstandingAllocatesNothing(t *testing.T) {
	o := NewOutstanding()
	if n := testing.AllocsPerRun(100, func() {
		o.Add(3)
		o.Done(1)
		o.Done(2)
		_ = o.Wait(context.Background())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOutstanding(b *testing.B) {
	o := NewOutstanding()
	b.ReportAllocs()
	for b.Loop() {
		o.Add(1)
		o.Done(1)
	}
}

func TestProducerCloseWaitsTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutstanding()
		o.Add(1)
		start := time.Now()
		if err := o.WaitLast(context.Background()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		o.Done(1)
		if err := o.WaitLast(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
