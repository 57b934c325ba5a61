package ledger

// A Joined is the books of a run that several processes shared. Its methods mean the same as those
// of a single Ledger with all events, except as described at Join. One goroutine at a time may call
// them.
type Joined struct {
	l      *Ledger
	twice  [][2]Twice // by subscription and phase
	shared [][]uint32 // by subscription, the streams that several processes received
}

// Twice counts what several processes each counted as the first delivery of a message at a
// subscription.
type Twice struct {
	// Deliveries is how many there are beyond one per message. They are in Book.Duplicated.
	Deliveries uint64
	// Good is how many good ones there are beyond one per message: the excess of first deliveries
	// reported by Merge over messages that arrived.
	Good uint64
}

func (t *Twice) plus(o Twice) {
	t.Deliveries += o.Deliveries
	t.Good += o.Good
}

// Book is as Ledger.Book.
func (j *Joined) Book(sub int) (all, window Book) { return j.l.Book(sub) }

// Senders is as Ledger.Senders.
func (j *Joined) Senders() (all, window Book) { return j.l.Senders() }

// Undelivered is as Ledger.Undelivered; the accuracy of the instants depends on the origin of the
// parts (see Part, AppendBinary).
func (j *Joined) Undelivered(sub int, visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	j.l.Undelivered(sub, visit)
}

// Missed is as Ledger.Missed.
func (j *Joined) Missed(sub int, visit func(n uint64, due int64)) { j.l.Missed(sub, visit) }

// Fates is as Ledger.Fates.
func (j *Joined) Fates(visit func(stream uint32, fate Fate, lo, hi uint64)) bool {
	return j.l.Fates(visit)
}

// Unknown is as Ledger.Unknown.
func (j *Joined) Unknown(sub int, visit func(measured bool, n uint64, response, service int64)) {
	j.l.Unknown(sub, visit)
}

// Unsuccessful is as Ledger.Unsuccessful, with instants as in Undelivered.
func (j *Joined) Unsuccessful(visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	j.l.Unsuccessful(visit)
}

// Twice returns what was a first delivery in more than one process, of the whole run and of the
// measured window; 0 if one process has all of a subscription's deliveries.
func (j *Joined) Twice(sub int) (all, window Twice) {
	all, window = j.twice[sub][warmUp], j.twice[sub][measured]
	all.plus(window)
	return all, window
}

// Evicted returns the sum of the parts' Ledger.Evicted.
func (j *Joined) Evicted() uint64 { return j.l.Evicted() }

// Complete is as Ledger.Complete. Even for parts of different instants true is exact, for what they
// know as confirmed; false may be due to a delivery that is not in them yet.
func (j *Joined) Complete() bool { return j.l.Complete() }
