package engine

import (
	"slices"
	"sync"
)

// mostBlocks bounds the Blocks of a worker.
const mostBlocks = 64

// A Block is a period in which the system answered but accepted no messages from at least one
// producer.
type Block struct {
	From, To int64  // ns since the epoch
	Why      string // as the system states it
	Open     bool   // still blocked at the end of the drain
}

// blocks collects a worker's Blocks. Its methods may be called concurrently.
type blocks struct {
	mu   sync.Mutex
	held map[string]string // why each producer is blocked now
	all  []Block
}

// set records why the system accepts none of who's messages from now on; "" ends the block. It
// reports whether that is new.
func (b *blocks) set(now int64, who, why string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.held[who]
	if why == before {
		return false
	}
	delete(b.held, who)
	if before != "" && !b.any(before) {
		for i := range b.all {
			if x := &b.all[i]; x.Open && x.Why == before {
				x.To, x.Open = now, false
			}
		}
	}
	if why == "" {
		return true
	}
	if !b.any(why) {
		if last := len(b.all) - 1; last+1 < mostBlocks {
			b.all = append(b.all, Block{From: now, Why: why, Open: true})
		} else { // merge into one block, with the gap
			b.all[last].Why, b.all[last].Open = why, true
		}
	}
	if b.held == nil {
		b.held = map[string]string{}
	}
	b.held[who] = why
	return true
}

// any reports whether any producer is blocked for that reason. mu must be held.
func (b *blocks) any(why string) bool {
	for _, w := range b.held {
		if w == why {
			return true
		}
	}
	return false
}

// open reports whether any producer is blocked now.
func (b *blocks) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held) > 0
}

// until returns the blocks so far.
func (b *blocks) until(now int64) []Block {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.all)
	for i := range all {
		if all[i].Open {
			all[i].To = now
		}
	}
	return all
}

// block implements driver.Run.Block.
func (r *run) block(who, why string) {
	switch at := r.since(); {
	case !r.blocks.set(at, who, why):
	case why == "":
		r.event("unblocked", who)
	default:
		r.event("blocked", who+": "+why)
	}
}
