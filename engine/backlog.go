package engine

import "sync/atomic"

// An item is a message that is due and waits for its producer.
type item struct {
	index uint64
	due   int64
	ready int64
	held  int64 // part of ready - due that the pacer cannot have caused
}

// laneBacklog is how many items may wait in one pacer, over all its producers (DESIGN 3). Beyond
// that the pacer itself waits, and reports it.
const pacerBacklog = 1 << 20

// chunkItems makes a chunk 2 KiB.
const chunkItems = 63

type chunk struct {
	items [chunkItems]item
	next  uint32
}

// A chunkPool is a pacer's memory for waiting items, in one allocation; only used pages become
// resident. The pacer takes chunks, and the goroutine that works off a backlog returns them.
type chunkPool struct {
	chunks []chunk
	fresh  int // chunks[fresh:] are unused so far
	free   *freeList
}

func newChunkPool(producers int) *chunkPool {
	n := pacerBacklog/chunkItems + producers
	return &chunkPool{chunks: make([]chunk, n), free: emptyFreeList(n)}
}

func (p *chunkPool) take() (uint32, bool) {
	if i, ok := p.free.pop(); ok {
		return i, true
	}
	if p.fresh == len(p.chunks) {
		return 0, false
	}
	p.fresh++
	return uint32(p.fresh - 1), true
}

// A backlog is the FIFO queue of one producer's waiting items, with one goroutine that puts (the
// pacer) and one that takes, which may be the same.
type backlog struct {
	pool    *chunkPool
	started bool   // has a chunk
	tail    uint32 // putter's
	tailPos int
	count   atomic.Uint64 // items put; written after the item
	head    uint32        // taker's
	headPos int
	taken   atomic.Uint64
}

// put adds it and reports whether there was room.
func (b *backlog) put(it item) bool {
	if !b.started {
		c, ok := b.pool.take()
		if !ok {
			return false
		}
		b.head, b.tail, b.started = c, c, true
	} else if b.tailPos == chunkItems {
		c, ok := b.pool.take()
		if !ok {
			return false
		}
		b.pool.chunks[b.tail].next = c
		b.tail, b.tailPos = c, 0
	}
	b.pool.chunks[b.tail].items[b.tailPos] = it
	b.tailPos++
	b.count.Store(b.count.Load() + 1)
	return true
}

// len is exact for the taker while nothing is put, and never too large for it.
func (b *backlog) len() int { return int(b.count.Load() - b.taken.Load()) }

// take removes the oldest item. The backlog must not be empty.
func (b *backlog) take() item {
	if b.headPos == chunkItems {
		old := b.head
		b.head, b.headPos = b.pool.chunks[old].next, 0
		b.pool.free.push(old)
	}
	it := b.pool.chunks[b.head].items[b.headPos]
	b.headPos++
	b.taken.Store(b.taken.Load() + 1)
	return it
}

// peek returns the i-th oldest item, which must exist, without removing it.
func (b *backlog) peek(i int) item {
	c, pos := b.head, b.headPos+i
	for pos >= chunkItems {
		c, pos = b.pool.chunks[c].next, pos-chunkItems
	}
	return b.pool.chunks[c].items[pos]
}

// unsent accounts for what still waits when everything has stopped.
func (r *run) unsent() {
	for _, s := range r.senders {
		for s.queue.len() > 0 {
			s.shard.Unsent(s.queue.take().due)
		}
	}
}
