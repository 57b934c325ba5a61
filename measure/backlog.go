package measure

import (
	"cmp"
	"slices"
	"sort"
)

// A Backlog is what waits for the consumers of each subscription: confirmed messages that may still
// come. Lost messages, dead letters and messages that the system refused do not wait. A message
// that a consumer nacked waits until one accepts it or it becomes a dead letter.
//
// Dead letters leave the backlog when they reach their receiver. Lost messages are known during the
// run only as far as Behind.Passed tells: Waiting gives that figure, for a live view, for
// Prometheus, and for a pause that ends at a number of waiting messages. Once the drain has shown
// which messages are lost, Net leaves out all of them, from the instant at which each was due.
// Every figure of a finished run comes from Net.
type Backlog []Behind

// Behind is how far a subscription is behind.
type Behind struct {
	Missing uint64 // confirmed, and neither delivered nor dead letters

	// Passed is how many of the missing messages a lone consumer has been passed over with, having
	// received later messages of the same stream, in a system that sends nothing twice. Other
	// systems redeliver, or deliver to several consumers, so that such a message may still come;
	// there it is 0.
	Passed uint64
}

// less returns Missing less gone.
func (b Behind) less(gone uint64) uint64 { return b.Missing - min(b.Missing, gone) }

// Waiting returns how many messages wait for the subscription that is furthest behind, as far as
// known during the run.
func (b Backlog) Waiting() (most uint64) {
	for _, x := range b {
		most = max(most, x.less(x.Passed))
	}
	return most
}

// Net returns how many messages waited at the instant at for the subscription that was furthest
// behind. lost holds what each subscription lost; a subscription that it does not cover, or with
// nil, has lost what it was passed over with.
func (b Backlog) Net(at int64, lost []*Lost) (most uint64) {
	for sub, x := range b {
		gone := x.Passed
		if sub < len(lost) && lost[sub] != nil {
			gone = lost[sub].By(at)
		}
		most = max(most, x.less(gone))
	}
	return most
}

// Lost holds the due instants of one subscription's lost messages. The zero value is empty.
type Lost struct {
	at     []lostAt
	sorted bool // by due, and n counts all up to it
}

type lostAt struct {
	due int64
	n   uint64
}

// Add adds n messages that were due by an instant. Add must not follow By.
func (l *Lost) Add(due int64, n uint64) { l.at = append(l.at, lostAt{due, n}) }

// By returns how many of the messages were due by an instant.
func (l *Lost) By(at int64) uint64 {
	if !l.sorted {
		slices.SortFunc(l.at, func(a, b lostAt) int { return cmp.Compare(a.due, b.due) })
		for i := 1; i < len(l.at); i++ {
			l.at[i].n += l.at[i-1].n
		}
		l.sorted = true
	}
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i].due > at })
	if i == 0 {
		return 0
	}
	return l.at[i-1].n
}
