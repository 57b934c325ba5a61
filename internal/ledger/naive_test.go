package ledger

import (
	"cmp"
	"slices"
)

// A naive ledger keeps every event and computes the books from them with maps, following their
// definitions literally.
type naive struct {
	subs     int
	messages []message  // in the order of sending
	index    map[id]int // of messages
	waiting  []arrival  // received, not merged
	merged   []arrival
	foreign  []uint64 // by subscription
	boundary map[uint32]uint64
	process  func(consumer int) int // a consumer's process; nil: all are in one process
	adopted  []adoption
}

// An adoption records that a process learned what arrived elsewhere, after that many arrivals had
// been merged.
type adoption struct {
	process, sub, merged int
	what                 map[id]bool
}

type id struct {
	stream uint32
	seq    uint64
}

type message struct {
	id
	due, start int64
	fate       Fate
}

type arrival struct {
	sub, consumer int
	Event
}

func newNaive(subs int) *naive {
	return &naive{subs: subs, index: map[id]int{}, foreign: make([]uint64, subs), boundary: map[uint32]uint64{}}
}

func (v *naive) sent(m message) {
	v.index[m.id] = len(v.messages)
	m.fate = FateUnconfirmed
	v.messages = append(v.messages, m)
}

// settle gives a message its fate; the first decides.
func (v *naive) settle(m id, f Fate) {
	if p := &v.messages[v.index[m]].fate; *p == FateUnconfirmed {
		*p = f
	}
}

// merge takes what was received, in order of At, then of the consumers.
func (v *naive) merge() {
	slices.SortStableFunc(v.waiting, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.consumer, b.consumer))
	})
	v.merged = append(v.merged, v.waiting...)
	v.waiting = nil
}

func (v *naive) measured(m id) bool {
	b, ok := v.boundary[m.stream]
	return ok && m.seq >= b
}

// firsts returns the first delivery of each message at a subscription.
func (v *naive) firsts(sub int) map[id]*arrival {
	first := map[id]*arrival{}
	for i := range v.merged {
		a := &v.merged[i]
		m := id{a.Stream, a.Seq}
		if a.sub == sub && first[m] == nil {
			first[m] = a
		}
	}
	return first
}

// firstsOf returns the first delivery of each message at a subscription, of each
// process that had one.
func (v *naive) firstsOf(sub int) map[id]map[int]*arrival {
	type here struct {
		process int
		id
	}
	first, known, adopted := map[id]map[int]*arrival{}, map[here]bool{}, v.adopted
	for i := range v.merged {
		for ; len(adopted) > 0 && adopted[0].merged <= i; adopted = adopted[1:] {
			for m := range adopted[0].what {
				known[here{adopted[0].process, m}] = known[here{adopted[0].process, m}] || adopted[0].sub == sub
			}
		}
		a := &v.merged[i]
		m := id{a.Stream, a.Seq}
		if a.sub != sub {
			continue
		}
		if first[m] == nil {
			first[m] = map[int]*arrival{}
		}
		if p := v.at(a); first[m][p] == nil && !known[here{p, m}] {
			first[m][p] = a
		}
	}
	return first
}

// at returns the process that received a.
func (v *naive) at(a *arrival) int {
	if v.process == nil {
		return 0
	}
	return v.process(a.consumer)
}

// damaged reports whether a message arrived, and corrupted wherever it was the
// first of its process.
func damaged(firsts map[int]*arrival) bool {
	for _, a := range firsts {
		if !a.Corrupted {
			return false
		}
	}
	return len(firsts) > 0
}

// twice returns the definition of Joined.Twice.
func (v *naive) twice(sub int) (all, window Twice) {
	for m, firsts := range v.firstsOf(sub) { // never empty: an adoption only contains what some process received
		t := Twice{Deliveries: uint64(len(firsts) - 1)}
		for _, a := range firsts {
			if !a.Corrupted {
				t.Good++
			}
		}
		t.Good = max(t.Good, 1) - 1
		all.plus(t)
		if v.measured(m) {
			window.plus(t)
		}
	}
	return all, window
}

func (v *naive) book(sub int) (all, window Book) {
	first, firstOf := v.firsts(sub), v.firstsOf(sub)
	count := func(m id, f func(*Book)) {
		f(&all)
		if v.measured(m) {
			f(&window)
		}
	}
	for _, m := range v.messages {
		got := first[m.id]
		count(m.id, func(b *Book) {
			b.Sent++
			damaged := damaged(firstOf[m.id])
			switch m.fate {
			case FateConfirmed:
				b.Confirmed++
				switch {
				case got == nil:
					b.Missing++
				case damaged:
					b.Corrupted++
				default:
					b.Delivered++
				}
			case FateFailed:
				b.Failed++
				if got != nil {
					b.FailedDelivered++
				}
			case FateUnconfirmed:
				b.Unconfirmed++
				if got != nil {
					b.UnconfirmedDelivered++
				}
			}
			if damaged && m.fate != FateConfirmed {
				b.CorruptedUnconfirmed++
			}
		})
	}
	type place struct {
		consumer  int
		stream    uint32
		partition int32
	}
	highest := map[place]uint64{}
	for i := range v.merged {
		a := &v.merged[i]
		if a.sub != sub {
			continue
		}
		m := id{a.Stream, a.Seq}
		at := place{a.consumer, a.Stream, a.Partition}
		high, seen := highest[at]
		count(m, func(b *Book) {
			if a.Redelivered {
				b.Redelivered++
			}
			if first[m] != a {
				b.Duplicated++
			}
			if firstOf[m][v.at(a)] == a && seen && a.Seq < high && !a.Redelivered {
				b.Reordered++
			}
		})
		highest[at] = max(high, a.Seq)
	}
	all.Foreign = v.foreign[sub]
	return all, window
}

// missing returns how many confirmed messages the subscription has not received.
func (v *naive) missing(sub int) uint64 {
	all, _ := v.book(sub)
	return all.Missing
}

// backlog returns the definition of Ledger.behind.
func (v *naive) backlog() uint64 {
	most := 0
	for sub := range v.subs {
		confirmed := 0
		for _, m := range v.messages {
			if m.fate == FateConfirmed {
				confirmed++
			}
		}
		most = max(most, confirmed-len(v.firsts(sub)))
	}
	return uint64(most)
}

// A kind is a fate in a phase.
type kind struct {
	fate     Fate
	measured bool
}

// instants are the dues, or starts, of messages by kind, in order.
type instants map[kind][]int64

func (in instants) sorted() instants {
	for _, list := range in {
		slices.Sort(list)
	}
	return in
}

// undelivered returns the dues and starts of what Ledger.Undelivered visits.
func (v *naive) undelivered(sub int) (dues, starts instants) {
	first := v.firstsOf(sub)
	return v.pick(func(m message) bool { return first[m.id] == nil || damaged(first[m.id]) })
}

// unsuccessful returns the dues and starts of what Ledger.Unsuccessful visits.
func (v *naive) unsuccessful() (dues, starts instants) {
	return v.pick(func(m message) bool { return m.fate != FateConfirmed })
}

func (v *naive) pick(in func(message) bool) (dues, starts instants) {
	dues, starts = instants{}, instants{}
	for _, m := range v.messages {
		if in(m) {
			k := kind{m.fate, v.measured(m.id)}
			dues[k] = append(dues[k], m.due)
			starts[k] = append(starts[k], m.start)
		}
	}
	return dues.sorted(), starts.sorted()
}
