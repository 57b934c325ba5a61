package ring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// variants runs f on every kind of queue.
func variants(t *testing.T, f func(t *testing.T, padded bool)) {
	t.Run("padded", func(t *testing.T) { f(t, true) })
	t.Run("unpadded", func(t *testing.T) { f(t, false) })
}

func TestConcurrentClientsMoveEachMessageOnce(t *testing.T) {
	variants(t, func(t *testing.T, padded bool) {
		const producers, consumers, each = 8, 8, 2000
		q := newQueue(16, 16, padded)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var put, take sync.WaitGroup
		for p := range producers {
			put.Go(func() {
				var m [16]byte
				for i := range each {
					binary.LittleEndian.PutUint64(m[:], uint64(p))
					binary.LittleEndian.PutUint64(m[8:], uint64(i))
					if err := q.Put(ctx, m[:]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var mu sync.Mutex
		seen := map[[2]uint64]int{}
		for range consumers {
			take.Go(func() {
				var last [producers]uint64 // per producer, plus one
				buf := make([]byte, 16)
				for {
					n, err := q.Take(ctx, buf)
					if err != nil {
						return
					}
					k := [2]uint64{binary.LittleEndian.Uint64(buf), binary.LittleEndian.Uint64(buf[8:])}
					if n != 16 || k[0] >= producers || k[1] < last[k[0]] {
						t.Errorf("%d bytes, message %d of producer %d after %d", n, k[1], k[0], last[k[0]])
						return
					}
					last[k[0]] = k[1] + 1
					mu.Lock()
					seen[k]++
					done := len(seen) == producers*each
					mu.Unlock()
					if done {
						cancel()
					}
				}
			})
		}
		put.Wait()
		take.Wait()
		if len(seen) != producers*each {
			t.Errorf("%d messages of %d", len(seen), producers*each)
		}
		for k, n := range seen {
			if n != 1 {
				t.Fatalf("message %d of producer %d came %d times", k[1], k[0], n)
			}
		}
	})
}

func TestFullRingHoldsCapacityInOrder(t *testing.T) {
	variants(t, func(t *testing.T, padded bool) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(4, 8, padded)
			buf := make([]byte, 8)
			for round := range 3 { // across the wraparound
				for i := range 4 {
					must.Do(t, q.Put(t.Context(), []byte{byte(i)}))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if err := q.Put(ctx, []byte{9}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("round %d: a fifth message: %v", round, err)
				}
				cancel()
				for i := range 4 {
					if n, err := q.Take(t.Context(), buf); err != nil || n != 1 || buf[0] != byte(i) {
						t.Errorf("round %d: message %d is %v, %v", round, i, buf[:n], err)
					}
				}
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				if _, err := q.Take(ctx, buf); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("round %d: took from an empty ring: %v", round, err)
				}
				cancel()
			}
		})
	})
}

func TestPaddingKeepsWritersApart(t *testing.T) {
	if n := unsafe.Sizeof(slot{}); n != slotSize {
		t.Errorf("a slot has %d bytes, the stride counts on %d", n, slotSize)
	}
	distance := func(a, b unsafe.Pointer) uintptr {
		return max(uintptr(a), uintptr(b)) - min(uintptr(a), uintptr(b))
	}
	for _, tc := range []struct {
		padded          bool
		positions, cell uintptr
	}{{true, apart, apart}, {false, 8, slotSize}} {
		q := newQueue(4, 8, tc.padded)
		if d := distance(unsafe.Pointer(q.in), unsafe.Pointer(q.out)); d != tc.positions {
			t.Errorf("padded %v: the positions lie %d bytes apart", tc.padded, d)
		}
		first, _ := q.at(0)
		second, _ := q.at(1)
		if d := distance(unsafe.Pointer(first), unsafe.Pointer(second)); d != tc.cell {
			t.Errorf("padded %v: the slots lie %d bytes apart", tc.padded, d)
		}
	}
}

func TestAMessageAllocatesNothing(t *testing.T) {
	variants(t, func(t *testing.T, padded bool) {
		q := newQueue(4, 64, padded)
		payload, buf := make([]byte, 64), make([]byte, 64)
		n := testing.AllocsPerRun(1000, func() {
			_ = q.Put(t.Context(), payload)
			_, _ = q.Take(t.Context(), buf)
		})
		if n != 0 {
			t.Errorf("%v allocations a message", n)
		}
	})
}

func TestValidateRefuses(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "a capacity that is not a power of two", Set: []string{"capacity", "1000"}, Option: "capacity"},
		trial.Mistake{Name: "more memory than a process should take", Set: []string{"cell", "1GiB"}},
	)
}

// BenchmarkMove repeats the experiment of "So You Wanna Go Fast?": a Go channel against a lock-free
// ring, padded and not, between one producer and one consumer, and between 100 and 100; with -cpu
// 1,8 on one processor and on eight. An operation is one message of 64 bytes, put and taken.
func BenchmarkMove(b *testing.B) {
	const size, capacity = 64, 1024
	for _, parties := range []int{1, 100} {
		b.Run(fmt.Sprintf("channel/%dx%d", parties, parties), func(b *testing.B) {
			c := make(chan [size]byte, capacity)
			move(b, parties, func() { c <- [size]byte{} }, func(buf []byte) {
				m := <-c
				copy(buf, m[:])
			})
		})
		for _, padded := range []bool{true, false} {
			b.Run(fmt.Sprintf("ring/padded=%v/%dx%d", padded, parties, parties), func(b *testing.B) {
				q := newQueue(capacity, size, padded)
				ctx := context.Background()
				payload := make([]byte, size)
				move(b, parties, func() { _ = q.Put(ctx, payload) }, func(buf []byte) { _, _ = q.Take(ctx, buf) })
			})
		}
	}
}

// move runs parties goroutines that put b.N messages and as many that take them, each into its own
// buffer of 64 bytes.
func move(b *testing.B, parties int, put func(), take func(buf []byte)) {
	b.ReportAllocs()
	share := func(i int) int { return b.N*(i+1)/parties - b.N*i/parties }
	var all sync.WaitGroup
	for i := range parties {
		all.Go(func() {
			for range share(i) {
				put()
			}
		})
		all.Go(func() {
			buf := make([]byte, 64)
			for range share(i) {
				take(buf)
			}
		})
	}
	all.Wait()
}
