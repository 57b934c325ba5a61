package judge

// The limits of the verdict, each with its source.
const (
	// Confidence of the interval of a percentile: the level that benchstat,
	// criterion.rs and the texts on order statistics use.
	confidence = 0.95

	// Lateness as a part of the response, at one percentile: up to the first
	// the figure is valid: a tenth turns no comparison around; from the second
	// on it is as much the generator's as the system's. JLBH and Hyperfoil
	// print the two side by side and leave the judging to the reader; see
	// METHOD.md.
	latenessValid   = 0.10
	latenessSuspect = 0.50

	// The rate kept: messages sent of those scheduled, over the window, and how
	// much of a second's messages the generator may owe at any instant, which
	// is its greatest lateness in that second. Lancet (Kogias et al., ATC 2019)
	// takes 10 % for the whole, which hides a stall of 100 ms in each second;
	// half a percent is what counting and a window's ends may cost.
	rateShortfall       = 0.005
	secondRateShortfall = 0.05

	// A system counts as taking less than the rate where messages waited for
	// room and the window saw fewer sent than were due in it, by more than its
	// two ends may cost where messages wait for a moment only.
	waitedShortfall = 0.01

	// The rate of a backlog is of the time from the first delivery to the last.
	// Where that is shorter than the time until the first, a client library had
	// fetched much of it by then, and the figure is of handing over what it holds.
	drainedLeast = 1.0 // of the time until the first delivery

	// Overflowed samples, over an hour, have no value: one is enough to make
	// the figures suspect.
	overflowMost = 0

	// Holes that the ledger closed because of its bound may be messages that
	// were still to come: one is enough.
	evictedMost = 0
)

// headline are the percentiles whose lateness decides on the whole run; a finer
// one that fails is marked only.
var headline = [...]float64{50, 99}
