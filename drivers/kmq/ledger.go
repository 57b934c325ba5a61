package kmq

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// compactAt is how many ended start markers a ledger keeps before it compacts the rest.
const compactAt = 1024

// A ledger records, from the markers of one partition, which messages are being processed.
type ledger struct {
	next  int64           // offset after the last marker read; -1: none
	open  map[int64]state // by message offset
	order []started       // start markers read, live from head on; some have ended
	head  int

	// Messages that were due at asOf are redelivered when all markers before until have been read,
	// because their end markers may be among them.
	asked       bool
	asOf, until int64
}

// A state describes a message that is being processed.
type state struct {
	marker  int64 // offset of its last start marker
	tick    int64 // when that marker was read
	sending bool  // being redelivered, which ends it
}

// A started is a start marker.
type started struct{ offset, marker int64 }

func newLedger() *ledger { return &ledger{next: -1, open: map[int64]state{}} }

// take reads a marker; it returns false if the record is not a marker.
func (l *ledger) take(r *kgo.Record, tick int64) bool {
	l.next = r.Offset + 1
	m, ok := readMarker(r)
	switch {
	case !ok:
		return false
	case !m.start:
		delete(l.open, m.offset)
		return true
	}
	// A message that was started twice counts from the second start.
	l.open[m.offset] = state{marker: r.Offset, tick: tick}
	l.order = append(l.order, started{m.offset, r.Offset})
	return true
}

// first returns the oldest start marker without an end; false for none.
func (l *ledger) first() (started, bool) {
	for ; l.head < len(l.order); l.head++ {
		s := l.order[l.head]
		if o, ok := l.open[s.offset]; ok && o.marker == s.marker {
			if l.head >= compactAt {
				l.order, l.head = slices.Delete(l.order, 0, l.head), 0
			}
			return s, true
		}
	}
	l.order, l.head = l.order[:0], 0
	return started{}, false
}

// position returns where a new reader of the markers must begin; -1 if nothing was read.
func (l *ledger) position() int64 {
	if s, ok := l.first(); ok {
		return s.marker
	}
	return l.next
}

// due reports whether a message has not ended ticks after its start, and is not being redelivered.
func (l *ledger) due(now, ticks int64) bool {
	if _, ok := l.first(); !ok {
		return false
	}
	for _, s := range l.order[l.head:] {
		o, ok := l.open[s.offset]
		switch {
		case !ok || o.marker != s.marker || o.sending:
		case now-o.tick >= ticks:
			return true
		default:
			return false // later ones are younger
		}
	}
	return false
}

// overdue returns the messages that were due at the time of asking, once every marker before until
// has been read, sorted by offset.
func (l *ledger) overdue(ticks int64) []int64 {
	if !l.asked || l.next < l.until {
		return nil
	}
	l.asked = false
	var offsets []int64
	for _, s := range l.order[l.head:] {
		o, ok := l.open[s.offset]
		if !ok || o.marker != s.marker || o.sending || l.asOf-o.tick < ticks {
			continue
		}
		o.sending = true
		l.open[s.offset] = o
		offsets = append(offsets, s.offset)
	}
	slices.Sort(offsets)
	return offsets
}

// failed makes messages whose redelivery failed due again.
func (l *ledger) failed(offsets []int64) {
	for _, offset := range offsets {
		if o, ok := l.open[offset]; ok {
			o.sending = false
			l.open[offset] = o
		}
	}
}
