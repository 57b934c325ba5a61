package rabbitmq

import (
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
)

// Thresholds for persistent refusals.
const (
	looks       = 4  // checks within reopen-after
	leastRefuse = 3  // consecutive refusals
	mostLooks   = 32 // maximum patience: eight times reopen-after
)

// A streak counts the refusals of a destination's messages since the last confirmation. A server's
// channel may refuse forever what the cluster would accept, for example after the leader of a
// quorum queue was killed.
type streak struct {
	refused  int // number of messages
	known    int // number at the latest check
	looks    int // checks that found more
	patience int // checks until the channel is given up
}

// A refusing is the reason for giving up a channel.
type refusing struct {
	destination string
	refused     int
	span        time.Duration
}

func (r *refusing) Error() string {
	return fmt.Sprintf("%v: channel given up after nothing but refusals", driver.ErrDisconnected)
}

// Unwrap returns driver.ErrDisconnected: messages in flight are lost with the channel.
func (r *refusing) Unwrap() error { return driver.ErrDisconnected }

// fated records the server's answer to a message for a destination. mu is held.
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

// look returns why to give up the channel: the server has refused every message of a destination
// for as many checks as its streak has patience. It returns nil if there is no such destination.
// span is the time between two checks.
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

// inherit takes over the patience of the previous outlet: if the refusals continue, the next
// channel is opened later. A full queue refuses, too.
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
