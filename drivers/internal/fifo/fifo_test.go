package fifo

import (
	"testing"
)

func TestAQueueKeepsTheOrder(t *testing.T) {
	const n = 10_000
	q := New[int]()
	go func() {
		for i := range n {
			q.Put(i)
		}
		q.Close()
	}()
	for want := range n {
		if x, ok := q.Take(); x != want || !ok {
			t.Fatalf("took %d, %t; want %d", x, ok, want)
		}
	}
	for range 2 {
		if x, ok := q.Take(); ok {
			t.Errorf("took %d of a closed and empty queue", x)
		}
	}
}

func TestAQueueInUseAllocatesNothing(t *testing.T) {
	q := New[*int]()
	x := new(int)
	if n := testing.AllocsPerRun(1000, func() {
		for range 3 {
			q.Put(x)
		}
		for range 3 {
			q.Take()
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
