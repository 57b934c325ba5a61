package engine

import (
	"slices"
	"sync"
)

// mostBlocks bounds the Blocks of a part.
const mostBlocks = 64

// A Block is a time in which the system answered, and took none of the messages of at
// least one producer.
type Block struct {
	From, To int64  // ns since the epoch
	Why      string // in the system's words
	Open     bool   // it had not ended when the drain did
}

// blocks collects a part's Blocks. Its methods may be called concurrently.
type blocks struct {
	mu   sync.Mutex
	held map[string]string // the reason for which each is blocked now
	all  []Block
}

// set says why the system takes none of who's messages from now on; "": it takes them. It
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
		} else { // one from here on, with what lay between
			b.all[last].Why, b.all[last].Open = why, true
		}
	}
	if b.held == nil {
		b.held = map[string]string{}
	}
	b.held[who] = why
	return true
}

// any reports whether somebody is blocked for a reason. mu is held.
func (b *blocks) any(why string) bool {
	for _, w := range b.held {
		if w == why {
			return true
		}
	}
	return false
}

// open reports whether the system takes none of somebody's messages now.
func (b *blocks) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held) > 0
}

// until returns the blocks until now.
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
