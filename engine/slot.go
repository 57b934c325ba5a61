package engine

import (
	"sync/atomic"

	"github.com/weirmq/weir/driver"
)

// keyRoom is what a key written in decimal needs.
const keyRoom = 20

// A slot is one message's place from hand-over to completion. Its bytes are
// filled once; per message only the stamp and the key are rewritten, and the
// body where it is another content than the slot's last.
type slot struct {
	msg    driver.Message
	turn   uint64        // how often it was handed over; the sender's
	done   atomic.Uint64 // how often it was completed: turn-1 while the driver has it
	due    int64
	start  int64
	late   int64 // ns, of its hand-over
	seq    uint64
	stream uint32

	awaited atomic.Uint64 // with Config.Received: the message that is to be received, 0: none
	halves  atomic.Int32  // of confirmation and delivery, those that are to come
	bytes   []byte        // the largest message, then keyRoom for the key
	crcs    []uint32      // of the body, for each size of the plan; nil for Contents

	// What the bytes behind the stamp are, for Contents: from where, and up to which size
	// of a message.
	content source
	filled  int
}

// A freeList is a stack of slot numbers that any goroutine pushes to and one pops from:
// the slot freed last is still in the cache. With one popper the ABA case cannot be:
// between its two looks at the top no other goroutine removes it.
type freeList struct {
	next []uint32      // number+1 of the one below, 0 for none
	head atomic.Uint64 // how many there are <<32 | number+1 of the top
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

// len is how many there are.
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
