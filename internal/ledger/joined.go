package ledger

// A Joined is the books of a run that several processes shared. Its methods mean
// what they mean of a Ledger in which all had happened, but for what is said at
// Join. One goroutine at a time calls them.
type Joined struct {
	l      *Ledger
	twice  [][2]Twice // by subscription and phase
	shared [][]uint32 // of each subscription the streams that several processes received of
}

// Twice is what several processes each counted as the first delivery of a
// message at a subscription.
type Twice struct {
	// Deliveries is how many there are beyond one of each message. They are in
	// Book.Duplicated.
	Deliveries uint64
	// Good is how many of the good ones there are beyond one of each message: so
	// many more first deliveries did Merge tell of than messages arrived.
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

// Undelivered is as Ledger.Undelivered; how exact the instants are follows from
// where the parts come from (see Part, AppendBinary).
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

// Unsuccessful is as Ledger.Unsuccessful, the instants as those of Undelivered.
func (j *Joined) Unsuccessful(visit func(fate Fate, measured bool, n uint64, due, start int64)) {
	j.l.Unsuccessful(visit)
}

// Twice returns what was a first delivery on more than one process, of the whole
// run and of the measured window; 0 where one process has all of a
// subscription's deliveries.
func (j *Joined) Twice(sub int) (all, window Twice) {
	all, window = j.twice[sub][warmUp], j.twice[sub][measured]
	all.plus(window)
	return all, window
}

// Evicted returns the sum of the parts' Ledger.Evicted.
func (j *Joined) Evicted() uint64 { return j.l.Evicted() }

// Complete is as Ledger.Complete. Of parts that are not of one instant true is
// exact all the same, for what they know as confirmed; false it may be because a
// delivery is not in them yet.
func (j *Joined) Complete() bool { return j.l.Complete() }
