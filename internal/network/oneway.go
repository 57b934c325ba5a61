package network

import (
	"math/rand/v2"
	"time"
)

// Counts counts what a direction did with packets since it was created.
type Counts struct {
	Packets    int64 `json:"packets"` // received
	Bytes      int64 `json:"bytes"`
	Lost       int64 `json:"lost"`       // as configured
	Duplicated int64 `json:"duplicated"` // as configured
	Reordered  int64 `json:"reordered"`  // skipped the latency, as configured
	Corrupted  int64 `json:"corrupted"`  // as configured
	Cut        int64 `json:"cut"`        // dropped by a partition
	Queue      int64 `json:"queue"`      // dropped because the bandwidth queue was full
	Overflow   int64 `json:"overflow"`   // dropped because the link could not hold or carry more: not configured
}

// minus returns the difference from an earlier reading.
func (c Counts) minus(b Counts) Counts {
	return Counts{
		c.Packets - b.Packets, c.Bytes - b.Bytes, c.Lost - b.Lost, c.Duplicated - b.Duplicated, c.Reordered - b.Reordered,
		c.Corrupted - b.Corrupted, c.Cut - b.Cut, c.Queue - b.Queue, c.Overflow - b.Overflow,
	}
}

// A held packet is in flight until due.
type held struct {
	due  time.Duration // on the caller's clock
	data []byte
}

// A queue holds packets in order of their due times.
type queue struct {
	all  []held
	head int
}

func (q *queue) empty() bool { return q.head == len(q.all) }

func (q *queue) push(h held) {
	if q.head > 0 && len(q.all) == cap(q.all) { // reuse space before allocating
		q.all = q.all[:copy(q.all, q.all[q.head:])]
		q.head = 0
	}
	q.all = append(q.all, h)
}

func (q *queue) pop() held {
	h := q.all[q.head]
	q.all[q.head] = held{}
	if q.head++; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return h
}

// A oneWay is one direction of a link. Packets keep their order except those picked by Reorder: jitter does not
// make packets overtake each other, as on a single path of routers. It is not safe for concurrent use.
type oneWay struct {
	Conditions
	counts Counts
	cut    bool // a partition is active

	random   *rand.Rand
	busy     time.Duration // when the bandwidth is next free
	last     time.Duration // when the last in-order packet is due
	bytes    int           // bytes held
	wait     queue         // in-order packets
	overtake queue         // packets that skip the latency
	spare    [][]byte      // free buffers
}

func newOneWay(c Conditions, seed uint64) *oneWay {
	return &oneWay{Conditions: c, random: rand.New(rand.NewPCG(seed, 0x6e65747765697221))}
}

// hit draws an event of probability p.
func (l *oneWay) hit(p float64) bool { return p > 0 && l.random.Float64() < p }

// limit returns how long a packet may wait for bandwidth.
func (l *oneWay) limit() time.Duration {
	return max(queueTime, time.Duration(float64(leastQueue)*8/float64(l.Bandwidth)*float64(time.Second)))
}

// take accepts a packet that has just arrived, and copies it.
func (l *oneWay) take(now time.Duration, packet []byte) {
	l.counts.Packets++
	l.counts.Bytes += int64(len(packet))
	switch {
	case l.cut:
		l.counts.Cut++
		return
	case l.hit(l.Loss):
		l.counts.Lost++
		return
	}
	leaves := now
	if l.Bandwidth > 0 {
		if l.busy-now > l.limit() {
			l.counts.Queue++
			return
		}
		l.busy = max(l.busy, now) + time.Duration(float64(len(packet))*8/float64(l.Bandwidth)*float64(time.Second))
		leaves = l.busy
	}
	copies := 1
	if l.hit(l.Duplicate) {
		l.counts.Duplicated++
		copies = 2
	}
	hasty := l.hit(l.Reorder)
	if hasty {
		l.counts.Reordered++
	}
	corrupt := l.hit(l.Corrupt)
	if corrupt {
		l.counts.Corrupted++
	}
	for range copies {
		if l.bytes+len(packet) > maxHeldBytes {
			l.counts.Overflow++
			return
		}
		h := held{due: leaves, data: append(l.buffer(), packet...)}
		if corrupt {
			bit := l.random.IntN(8 * len(packet))
			h.data[bit/8] ^= 1 << (bit % 8)
		}
		l.bytes += len(packet)
		if hasty {
			l.overtake.push(h)
			continue
		}
		h.due = max(l.last, leaves+l.delay(l.random.Float64()))
		l.last = h.due
		l.wait.push(h)
	}
}

// buffer returns an empty buffer.
func (l *oneWay) buffer() []byte {
	if n := len(l.spare); n > 0 {
		b := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return b[:0]
	}
	return make([]byte, 0, mtu)
}

// mostSpare is how many buffers are kept for reuse.
const mostSpare = 4096

// done returns a buffer for reuse.
func (l *oneWay) done(b []byte) {
	l.bytes -= len(b)
	if len(l.spare) < mostSpare {
		l.spare = append(l.spare, b)
	}
}

// next returns when the next packet is due; false if there is none.
func (l *oneWay) next() (time.Duration, bool) {
	switch {
	case l.wait.empty() && l.overtake.empty():
		return 0, false
	case l.overtake.empty():
		return l.wait.all[l.wait.head].due, true
	case l.wait.empty():
		return l.overtake.all[l.overtake.head].due, true
	}
	return min(l.wait.all[l.wait.head].due, l.overtake.all[l.overtake.head].due), true
}

// arrive returns the next packet that is due by now, or nil. The caller returns it with done.
func (l *oneWay) arrive(now time.Duration) []byte {
	from := &l.wait
	if at, any := l.next(); !any || at > now {
		return nil
	} else if !l.overtake.empty() && l.overtake.all[l.overtake.head].due == at {
		from = &l.overtake
	}
	return from.pop().data
}
