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

// Latency returns its response time, in a closed loop its service time.
func (s Slow) Latency() int64 { return s.At - s.Due }

// Slowest returns the MostSlow slowest of all, slowest first. It sorts all.
func Slowest(all []Slow) []Slow {
	slices.SortFunc(all, func(a, b Slow) int {
		return cmp.Or(cmp.Compare(b.Latency(), a.Latency()), cmp.Compare(a.Due, b.Due), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Seq, b.Seq))
	})
	return all[:min(len(all), MostSlow)]
}

// slowRoom is a power of two with room for MostSlow.
const slowRoom = 32

// A slowRing keeps the MostSlow slowest messages offered, for one goroutine at a time. It allocates
// nothing.
//
// Its ring is sorted, fastest first. When a system falls behind, each message is the slowest yet:
// then the fastest drops out at one end and the new one enters at the other, and nothing else
// moves.
type slowRing struct {
	least int64 // a message has to take longer to be kept
	low   uint  // place of the fastest, modulo slowRoom
	n     int
	ring  [slowRoom]Slow
}

// at returns the i-th message kept, the fastest being the first.
func (p *slowRing) at(i int) *Slow { return &p.ring[(p.low+uint(i))%slowRoom] }

// keep inserts a message that takes longer than p.least.
func (p *slowRing) keep(due, start, at int64, stream uint32, seq uint64) {
	if p.n == MostSlow {
		p.low++
		p.n--
	}
	i := p.n
	for ; i > 0 && p.at(i-1).Latency() > at-due; i-- {
		*p.at(i) = *p.at(i - 1)
	}
	*p.at(i) = Slow{due, start, at, stream, seq}
	if p.n++; p.n == MostSlow {
		p.least = p.at(0).Latency()
	}
}

// kept returns the messages kept, fastest first.
func (p *slowRing) kept() []Slow {
	all := make([]Slow, p.n)
	for i := range all {
		all[i] = *p.at(i)
	}
	return all
}

// A TopN keeps the MostSlow slowest messages offered, by any goroutine. A message that is not among
// them costs a load and a comparison; the others take a lock.
type TopN struct {
	least atomic.Int64 // as of slowRing
	mu    sync.Mutex
	slowRing
}

// Offer keeps a message if it is one of the slowest. It allocates nothing.
func (p *TopN) Offer(x Slow) {
	if x.Latency() > p.least.Load() {
		p.keep(x.Due, x.Start, x.At, x.Stream, x.Seq)
	}
}

func (p *TopN) keep(due, start, at int64, stream uint32, seq uint64) {
	p.mu.Lock()
	if at-due > p.slowRing.least { // no other came first
		p.slowRing.keep(due, start, at, stream, seq)
		p.least.Store(p.slowRing.least)
	}
	p.mu.Unlock()
}

// Kept returns the messages kept, fastest first.
func (p *TopN) Kept() []Slow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept()
}

// Timed offers a message to the slowest of the measured window, if Confirmed reported it as slow.
func (s *Sender) Timed(due, start, at int64, stream uint32, seq uint64) {
	if s.closed {
		due = start
	}
	if due >= s.from && at-due > s.slow.least.Load() {
		s.slow.keep(due, start, at, stream, seq)
	}
}

// Timed offers a message to the slowest of the measured window, if Delivered reported it as slow.
func (s *Receiver) Timed(due, start, at int64, stream uint32, seq uint64) {
	if s.closed {
		due = start
	}
	if due >= s.from && at-due > s.slow.least {
		s.slow.keep(due, start, at, stream, seq)
	}
}

// Slowest returns the slowest messages of a kind (SendResponse, E2EResponse or RTTResponse),
// slowest first; in a closed loop by service time. Call it when recording has stopped.
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
				all = append(all, (*shards)[i].slow.kept()...)
			}
		}
	}
	return Slowest(all)
}
