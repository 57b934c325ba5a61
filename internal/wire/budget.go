package wire

import "time"

// Shares of this process's processor time.
const (
	Share    = 0.02 // that recording may take by default
	patience = 1.4  // times that, until recording stops waiting for messages
)

// A window begins when what it will probably cost is there. Measured on a host with two cores.
const (
	costWindow = 300_000   // ns, of one that records nothing: it attaches the programs and looks for connections
	aimCost    = 1_000_000 // ns, of what a window records
)

// A budget decides when a window of sampling may begin, how long it is, and how long it may wait for
// messages, so that recording never takes more than its share of the processor time.
type budget struct {
	share  float64
	cost   int64         // ns so far
	length time.Duration // of the next window
	next   int64         // ns that it will probably cost
}

func newBudget(share float64) budget {
	return budget{share: share, length: firstWindow, next: costWindow + aimCost}
}

// lacks returns the processor time, ns, that this process must still use before the next window; busy is
// what it has used.
func (b *budget) lacks(busy int64) int64 {
	return max(0, int64(float64(b.cost+b.next)/b.share)-busy)
}

// pause returns how long to wait before the next window if the process continues as in the time that has
// passed. A forecast for longer than that is not worth much.
func (b *budget) pause(passed time.Duration, busy int64) time.Duration {
	pause := float64(b.lacks(busy)) / float64(max(busy, 1)) * float64(passed)
	return max(time.Duration(min(pause, float64(max(passed, longest/5)), float64(20*longest))), longest/50)
}

// left returns what recording may cost until the present window ends.
func (b *budget) left(busy int64) int64 { return int64(patience*b.share*float64(busy)) - b.cost }

// spend records what a window passed and cost, and plans the next one.
func (b *budget) spend(in load, cost int64) {
	b.cost += cost
	recorded := max(cost-costWindow, 1)
	fits := min(aim/float64(max(in.number, 1)), aimRoom/float64(max(in.room, 1)), aimCost/float64(recorded))
	length := min(max(time.Duration(fits*float64(b.length)), shortest), longest, 4*b.length)
	b.next = costWindow + int64(float64(recorded)*float64(length)/float64(b.length))
	b.length = length
}
