package judge

import "time"

// The limits of the verdict, each with its source.
const (
	// Confidence of the interval of a percentile: the level that benchstat,
	// criterion.rs and the texts on order statistics use.
	confidence = 0.95

	// Of what a run that only receives got, the part that the first client calls
	// may have yielded: with a tenth at most some ten calls make the rate.
	atFirstMost = 0.10

	// By which part of itself lateness moved a percentile of a response: up to the
	// first the figure is valid: a tenth turns no comparison around; from the second
	// on it is as much the generator's as the system's. JLBH and Hyperfoil
	// print lateness beside it and leave the judging to the reader; see METHOD.md.
	latenessValid   = 0.10
	latenessSuspect = 0.50

	// A percentile that lateness moved by up to so much never makes a run invalid; it
	// stays suspect, and marked. Half of the messages are late by more only where the
	// lanes do not spin or have no core. One in a hundred is on hosts that are shared, or
	// virtual: there sleeps end 100 to 270 µs late at the 99th percentile before anything
	// is tuned, 153 runs of a second on a virtual machine of two cores, with a system
	// that costs nothing, show the same. Where others used less than an eighth of the
	// cores the latest were 182, 189 and 237 µs late at p99; where others used more, up
	// to 5 ms.
	latenessLeastHalf = int64(50 * time.Microsecond)
	latenessLeastTail = int64(250 * time.Microsecond)

	// Which part of a closed loop's time others may take: so much is then missing from
	// its rate, and half a tenth turns no comparison around.
	takenMost = 0.05
	// Waits are counted for a whole run. Of one that receives for half of it or less, most
	// of them may lie where no messages came.
	loadedLeast = 0.50

	// The rate kept: messages sent of those scheduled, over the window, and how
	// much of a second's messages the generator may owe at any instant, which
	// is its greatest lateness in that second. Lancet (Kogias et al., ATC 2019)
	// takes 10 % for the whole, which hides a stall of 100 ms in each second;
	// half a percent is what counting and a window's ends may cost.
	rateShortfall       = 0.005
	secondRateShortfall = 0.05

	// A generator that leaves a tenth of the messages unsent because it does not keep
	// up is a tenth of the window behind at its end. One that was never behind by half
	// of that is not why they are missing.
	behindLeast = 0.50

	// A system counts as taking less than the rate where messages waited for
	// room and the window saw fewer sent than were due in it, by more than its
	// two ends may cost where messages wait for a moment only.
	waitedShortfall = 0.01

	// The rate of a backlog is of the time from the first delivery to the last.
	// Where that is shorter than the time until the first, a client library had
	// fetched much of it by then, and the figure is of handing over what it holds.
	drainedLeast = 1.0 // of the time until the first delivery

	// The offered rate of a lane as a part of what it gets through with a system
	// that costs nothing. Above a half the time between two messages is more
	// work than rest: the waiting time of a queue at that load equals the work
	// itself (M/D/1: rho/(2(1-rho)) of a service time is 1/2 at rho 1/2).
	headroomMost = 0.50
	// In messages/s: up to this rate of a lane the ceiling is not measured where the
	// bound on what a message costs a lane says that it cannot matter.
	ceilingFrom = 50_000
	// That bound, in times of what it costs to record a message, which is measured
	// for every run: choosing, stamping, handing over and completing one take 2.4 to
	// 3.2 times that (ceilings of 6.2 to 7.5 million messages/s, 50 to 59 ns to
	// record), and the rest is for hosts on which they are otherwise related.
	laneWork = 20

	// What recording may take of the time between two messages of a lane, which is
	// the most that it can delay the next one: a tenth, as with lateness.
	recordingMost = 0.10

	// CPU of the generator: k6's guidance for load generators ("Running large
	// tests": keep a fifth idle), and of the host altogether.
	cpuMost  = 0.80
	busyMost = 0.95

	// A hundredth stolen is 10 ms of each second, in which a thousandth of the
	// messages of an even load can wait.
	stealMost = 0.01

	// The collector: a hundredth of the time, as Go's own target for assists and
	// pauses together is a quarter while it works; and a pause as long as half of
	// the highest supported percentile is as much of it as the system.
	gcMost    = 0.01
	pauseMost = 0.50

	// Stalls of the host: from half of the response on the figure is as much the
	// host's as the system's, as with lateness.
	hiccupMost = 0.50
	// A sleep of a thread that nothing holds up ends late too, by what its core
	// takes to wake; from one second to the next that varies by a factor (internal/pace:
	// 4 µs after 0.1 ms, 42 after 10). Up to twice its median counts as that.
	oversleepMost = 2
	// From that part of all lateness on what held the lanes up is named as its reason:
	// the larger one.
	heldUpIsWhy = 0.50

	// The steady state: a change by a quarter of the median from the first second to the
	// last, or between a beginning and the rest, that chance makes in one of a hundred
	// steady runs. Less is what hosts do from minute to minute (A. Maricq et al., "Taming
	// performance variability", OSDI 2018: coefficients of variation of up to a tenth on
	// quiet machines). A beginning with medians twice off in its seconds needs no test.
	// Fewer than ten seconds give no test either. Of ten in which the system stood still for
	// one or two, eight are left, the fewest for the test of a trend.
	driftMost     = 0.25
	driftAlpha    = 0.01
	beginningMost = 1.0
	fewestSeconds = 10
	fewestSampled = 8

	// The warm-up that is advised where a run began before its end, in times of where
	// that was found: from run to run it is not the same.
	warmUpMargin = 1.5

	// MSER-5 takes means of five values once ten of them are to be had.
	mserBatch = 5
	mserFrom  = 50

	// A backlog that grows by a hundredth of the offered rate doubles a latency of
	// 10 ms within a second.
	growthMost = 0.01
	// A backlog is a sum, each second's like the one's before, for which the test of
	// a trend allows so much that it misses the plainest growth in ten seconds.
	// What goes up in nine of ten pairs of seconds (Kendall's tau 0.8) has grown.
	growthTau = 0.8

	// What fell behind in a run of fewer seconds, where no test is to be had: it grew in
	// each measured second, and in three in a row where the run has three; a tenth of
	// all messages waits in the end, which turns a comparison of rates around; and that
	// is more than a stall of half a second at the end leaves.
	behindMost    = 0.10
	behindSeconds = 3
	stallS        = 0.5

	// Agents that begin apart by more than that: as much as a generator may owe of a
	// second's messages at any instant (secondRateShortfall), which is what one of
	// them then owes the others; and in a short window no more than a hundredth of
	// it, by which the load's ends lie elsewhere.
	startMost = 50 * time.Millisecond
	startPart = 0.01

	// Overflowed samples, over an hour, have no value: one is enough to make
	// the figures suspect.
	overflowMost = 0

	// Holes that the ledger closed because of its bound may be messages that
	// were still to come: one is enough.
	evictedMost = 0
)

// headline reports whether the lateness at a percentile decides on the whole
// run, and how much of it never makes one invalid; a finer one that fails is
// marked only.
func headline(p float64) (least int64, decides bool) {
	switch p {
	case 50:
		return latenessLeastHalf, true
	case 99:
		return latenessLeastTail, true
	}
	return 0, false
}
