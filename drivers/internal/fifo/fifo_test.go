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
	if x, ok := q.Take(); x != 0 || !ok {
		t.Fatalf("took %d, %t; want 0", x, ok)
	}
	want := 1
	for x := range q.All() {
		if x != want {
			t.Fatalf("took %d; want %d", x, want)
		}
		want++
	}
	if want != n {
		t.Errorf("took %d of %d", want, n)
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
