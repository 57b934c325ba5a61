package rabbitmq

import (
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
)

// Bounds of what counts as lasting refusals.
const (
	looks       = 4  // at the refusals, within reopen-after
	leastRefuse = 3  // refusals in a row
	mostLooks   = 32 // of patience: eight times reopen-after
)

// A streak is the refusals of one destination's messages since one of them was last
// confirmed. A channel of a server may refuse for ever what the cluster would take:
// after the leader of a quorum queue was killed, say.
type streak struct {
	refused  int // messages
	known    int // of them, those that the latest look found
	looks    int // that found more
	patience int // looks until the channel is given up
}

// A refusing is why a channel was given up.
type refusing struct {
	destination string
	refused     int
	span        time.Duration
}

func (r *refusing) Error() string {
	return fmt.Sprintf("%v: channel given up after nothing but refusals", driver.ErrDisconnected)
}

// Unwrap says that what was in flight is lost with the channel.
func (r *refusing) Unwrap() error { return driver.ErrDisconnected }

// fated notes what the server said of a message to a destination. mu is held.
func (o *outlet) fated(destination string, refused bool) {
	if !refused {
		if len(o.streaks) > 0 {
			delete(o.streaks, destination)
		}
		return
	}
	s := o.streaks[destination]
	if s == nil {
		s = &streak{patience: looks}
		o.streaks[destination] = s
	}
	s.refused++
}

// look returns why to give the channel up: the server has refused every message of a
// destination for as many looks as its streak has patience. It is nil where there is no
// such destination. span lies between two looks.
func (o *outlet) look(span time.Duration) *refusing {
	o.mu.Lock()
	defer o.mu.Unlock()
	for d, s := range o.streaks {
		if s.refused == s.known {
			continue // no message was answered
		}
		s.known = s.refused
		if s.looks++; s.looks >= s.patience && s.refused >= leastRefuse {
			return &refusing{destination: d, refused: s.refused, span: span * time.Duration(s.looks)}
		}
	}
	return nil
}

// inherit takes over from the outlet before it how long to be patient: if the refusals go
// on, the next channel is opened later. A queue that is full refuses too.
func (o *outlet) inherit(before *outlet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before.mu.Lock()
	defer before.mu.Unlock()
	for d, s := range before.streaks {
		if s.looks >= s.patience {
			s.patience = min(2*s.patience, mostLooks)
		}
		o.streaks[d] = &streak{patience: s.patience}
	}
}
