package measure

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// MostSlow is how many of the slowest messages are kept.
const MostSlow = 20

// A Slow is one of the slowest messages. Instants are ns since the run's epoch.
type Slow struct {
	Due    int64 // in a closed loop Start
	Start  int64
	At     int64 // when it was confirmed, delivered or answered
	Stream uint32
	Seq    uint64
}

// Latency is its response, in a closed loop its service.
func (s Slow) Latency() int64 { return s.At - s.Due }

// Slowest returns the MostSlow slowest of all, the slowest first. It sorts all.
func Slowest(all []Slow) []Slow {
	slices.SortFunc(all, func(a, b Slow) int {
		return cmp.Or(cmp.Compare(b.Latency(), a.Latency()), cmp.Compare(a.Due, b.Due), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Seq, b.Seq))
	})
	return all[:min(len(all), MostSlow)]
}

// A Podium keeps the MostSlow slowest messages that it is offered. Any goroutine may offer
// one. A message that is not among them costs a load and a comparison. The others take a
// lock, which only those share.
type Podium struct {
	least atomic.Int64 // a message has to take longer to be kept
	mu    sync.Mutex
	n     int
	all   [MostSlow]Slow
}

// Offer keeps a message if it is one of the slowest. It allocates nothing.
func (p *Podium) Offer(x Slow) {
	if x.Latency() > p.least.Load() {
		p.keep(x)
	}
}

func (p *Podium) keep(x Slow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n < MostSlow {
		p.all[p.n] = x
		if p.n++; p.n < MostSlow {
			return
		}
	} else {
		at, least := p.last()
		if x.Latency() <= least {
			return // another came first
		}
		p.all[at] = x
	}
	_, least := p.last()
	p.least.Store(least)
}

// last is the fastest of those that are kept.
func (p *Podium) last() (at int, least int64) {
	least = p.all[0].Latency()
	for i := 1; i < MostSlow; i++ {
		if l := p.all[i].Latency(); l < least {
			at, least = i, l
		}
	}
	return at, least
}

// Kept returns those that it keeps, in no order.
func (p *Podium) Kept() []Slow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all[:p.n])
}

// Timed offers a confirmed message to the slowest of the measured window.
func (s *Sender) Timed(due, start, at int64, stream uint32, seq uint64) {
	if s.closed {
		due = start
	}
	if at-due > s.slow.least.Load() && due >= s.from {
		s.slow.keep(Slow{due, start, at, stream, seq})
	}
}

// Timed offers a message that was delivered for the first time to the slowest of the
// measured window.
func (s *Receiver) Timed(due, start, at int64, stream uint32, seq uint64) {
	if s.closed {
		due = start
	}
	if at-due > s.slow.least.Load() && due >= s.from {
		s.slow.keep(Slow{due, start, at, stream, seq})
	}
}

// Slowest returns the slowest messages of a kind, SendResponse, E2EResponse or
// RTTResponse, the slowest first. In a closed loop they are those of the service.
func (r *Recorder) Slowest(k Kind) []Slow {
	var all []Slow
	response := SendResponse
	if r.cfg.Replied {
		response = RTTResponse
	}
	if k == response {
		for i := range r.senders {
			all = append(all, r.senders[i].slow.Kept()...)
		}
	}
	for shards, of := range map[*[]Receiver]Kind{&r.receivers: E2EResponse, &r.repliers: RTTResponse} {
		for i := range *shards {
			if of == k {
				all = append(all, (*shards)[i].slow.Kept()...)
			}
		}
	}
	return Slowest(all)
}
