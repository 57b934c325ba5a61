package engine

import (
	"sync/atomic"

	"github.com/weirmq/weir/driver"
)

// keyRoom is the space for a key in decimal.
const keyRoom = 20

// A slot holds one message from hand-over to completion. Its bytes are filled once; per message
// only the header and the key are rewritten, and the body if its content differs from the slot's
// last.
type slot struct {
	msg    driver.Message
	turn   uint64        // number of hand-overs; owned by the sender
	done   atomic.Uint64 // number of completions: turn-1 while the driver has it
	due    int64
	start  int64
	late   int64 // ns, of its hand-over
	seq    uint64
	stream uint32
	wired  bool // its kernel instants are sampled

	awaited atomic.Uint64 // with Config.Received: the message to be received, 0: none
	halves  atomic.Int32  // how many of confirmation and delivery are still to come
	bytes   []byte        // the largest message, then keyRoom for the key
	crcs    []uint32      // of the body, for each size of the plan; nil for Contents

	// For Contents, what the bytes behind the header are: from where, and up to which message size.
	content source
	filled  int
}

// A freeList is a stack of slot numbers that any goroutine pushes to and one pops from: the slot
// freed last is still in the cache. With a single popper the ABA problem cannot occur: no other
// goroutine pops between its two looks at the top.
type freeList struct {
	next []uint32      // number+1 of the one below, 0 for none
	_    [64]byte      // keeps other producers' lists off the line of head
	head atomic.Uint64 // length <<32 | number+1 of the top
	_    [64]byte
}

// newFreeList returns the list of all n numbers, 0 on top.
func newFreeList(n int) *freeList {
	f := &freeList{next: make([]uint32, n)}
	for i := range n - 1 {
		f.next[i] = uint32(i + 2)
	}
	f.head.Store(uint64(n)<<32 | uint64(min(n, 1)))
	return f
}

// emptyFreeList returns a list with room for n numbers and none in it.
func emptyFreeList(n int) *freeList { return &freeList{next: make([]uint32, n)} }

// len returns the number of free slots.
func (f *freeList) len() int { return int(f.head.Load() >> 32) }

func (f *freeList) push(i uint32) {
	for {
		h := f.head.Load()
		f.next[i] = uint32(h)
		if f.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(i+1)) {
			return
		}
	}
}

func (f *freeList) pop() (uint32, bool) {
	for {
		h := f.head.Load()
		top := uint32(h)
		if top == 0 {
			return 0, false
		}
		if f.head.CompareAndSwap(h, (h>>32-1)<<32|uint64(f.next[top-1])) {
			return top - 1, true
		}
	}
}
