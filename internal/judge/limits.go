package judge

import "time"

// The limits of the verdict, with their sources.
const (
	// The confidence of a percentile's interval: the level of benchstat, criterion.rs and the literature on
	// order statistics.
	confidence = 0.95

	// In a run that only receives, the largest fraction of messages that the first client calls may have
	// returned: at a tenth, about ten calls make up the rate.
	atFirstMost = 0.10

	// The fraction by which lateness moved a percentile of a response. Up to the first limit the figure is
	// valid: a tenth reverses no comparison. From the second on it is as much the generator's as the
	// system's. JLBH and Hyperfoil print lateness beside it and leave the judgement to the reader; see
	// METHOD.md.
	latenessValid   = 0.10
	latenessSuspect = 0.50

	// A percentile that lateness moved by at most this never makes a run invalid; it stays suspect, and
	// marked. Half of the messages are later than the first only if the pacers do not spin or have no core.
	// One in a hundred is on shared or virtual hosts: sleeps there end 100 to 270 µs late at the 99th
	// percentile before any tuning, and 153 one-second runs on a virtual machine of two cores, with
	// the driver noop, show the same. While others used less than an eighth of the cores, the
	// latest were 182, 189 and 237 µs late at p99; while others used more, up to 5 ms.
	latenessLeastHalf = int64(50 * time.Microsecond)
	latenessLeastTail = int64(250 * time.Microsecond)

	// The largest fraction of a closed loop's time that others may take: its rate is too low by that much,
	// and half a tenth reverses no comparison.
	takenMost = 0.05
	// Waits are counted for a whole run. If it receives for at most half of it, most waits may fall where
	// no messages arrived.
	loadedLeast = 0.50

	// The rate kept: messages sent of those scheduled over the window, and the largest debt of the
	// generator at any instant, as a fraction of a second's messages, which is its greatest lateness in
	// that second. Lancet (Kogias et al., ATC 2019) takes 10 % for the whole, which hides a stall of 100 ms
	// in each second; half a percent is the error of counting and of the window's ends.
	rateShortfall       = 0.005
	secondRateShortfall = 0.05

	// A generator that leaves a tenth of the messages unsent by falling behind is a tenth of the window
	// late at its end. If it was never late by half of that, it is not the cause.
	behindLeast = 0.50

	// A system counts as taking less than the rate if messages waited for room, and fewer were sent in the
	// window than were due by more than its two ends explain when messages wait only briefly.
	waitedShortfall = 0.01

	// The rate of a backlog is measured from the first delivery to the last. If that is shorter than the
	// time until the first, a client library had already fetched much of it, and the rate is that of its
	// buffer.
	drainedLeast = 1.0 // times the time until the first delivery

	// A pacer's offered rate as a fraction of its ceiling, its rate with a driver that does nothing (noop). Above
	// a half, the time between two messages is more work than rest: the queueing delay at that load equals
	// the work itself (M/D/1: rho/(2(1-rho)) of a service time is 1/2 at rho 1/2).
	headroomMost = 0.50
	// In messages/s: up to this rate a pacer's ceiling is not measured if the bound on the cost per message
	// shows that it cannot matter.
	ceilingFrom = 50_000
	// That bound, as a multiple of the cost to record a message, which every run measures: choosing,
	// stamping, handing over and completing one take 2.4 to 3.2 times that (ceilings of 6.2 to 7.5 million
	// messages/s, 50 to 59 ns to record). The rest is a margin for hosts with other ratios.
	pacerWork = 20

	// The largest fraction of the time between two messages of a pacer that recording may take, which is
	// the most that it can delay the next one: a tenth, as with lateness.
	recordingMost = 0.10

	// CPU use of the generator, after k6's guidance for load generators ("Running large tests": keep a
	// fifth idle), and of the whole host.
	cpuMost  = 0.80
	busyMost = 0.95

	// A hundredth stolen is 10 ms of each second, which can delay a thousandth of the messages of an even
	// load.
	stealMost = 0.01

	// The garbage collector: a hundredth of the time, compared with Go's own target of a quarter for
	// assists and pauses together while it works. A pause of half the highest supported percentile
	// contributes as much to it as the system.
	gcMost    = 0.01
	pauseMost = 0.50

	// Scheduling stalls: from half of the response on, the figure is as much the host's as the system's, as
	// with lateness.
	hiccupMost = 0.50
	// An undisturbed sleep also ends late, by the time its core takes to wake, which varies by a factor
	// from second to second (internal/pace: 4 µs after 0.1 ms, 42 after 10). Up to twice its median counts
	// as normal.
	oversleepMost = 2
	// By how much a figure that can be quoted may lie above what it is without stalls and lateness. Figures
	// that the self-test finds wrong by a tenth come out at 10 % or 11 %, so the limit is lower.
	movedMost = 0.07
	// A stall counts from this part of a figure on, and a late wake-up from this: several add up to a
	// tenth. A message needs about three wake-ups: to send it, to read the answer, and to hand it over. In
	// the self-test (weir calibrate --runs 20) all figures that can be quoted are right with these limits
	// in 78 of 80 runs; by lateness alone they were in 46 of 160.
	stallLeast      = 0.05
	lateWakeLeast   = 0.03
	wakesPerMessage = 3
	// The least delay of the host, as a part of what the system took, beside which a message counts as
	// disturbed: what is due in a burst waits at most for as long as the burst was held up.
	delayLeast = 0.10
	// The least share of the samples that calm slices of time must hold to say what stalls did: with a
	// quarter, the percentile's interval is twice as wide as that of all. To say that they did nothing, half
	// of the samples, and a percentile that differs by less than movedMost, either way, since calm slices have
	// short stalls too. With a quarter of the samples and movedMost one way, 61 of 68 runs of the self-test
	// were right.
	calmLeast     = 0.25
	calmClears    = 0.50
	calmMovedMost = 0.05
	// The fraction of all lateness from which a stall of the pacers is named as the reason: the larger one.
	heldUpIsWhy = 0.50

	// The steady state: a change of a quarter of the median from the first second to the last, or between a
	// beginning and the rest, that chance causes in one of a hundred steady runs. Hosts vary by less from
	// minute to minute (A. Maricq et al., "Taming performance variability", OSDI 2018: coefficients of
	// variation of up to a tenth on quiet machines). A beginning whose medians are off by a factor of two
	// needs no test. Fewer than ten seconds allow no test. If the system stalled for one or two of ten,
	// eight remain, the fewest for the trend test.
	driftMost     = 0.25
	driftAlpha    = 0.01
	beginningMost = 1.0
	fewestSeconds = 10
	fewestSampled = 8

	// The factor between where a beginning was found to end and the advised warm-up, since it varies from
	// run to run.
	warmUpMargin = 1.5

	// MSER-5 averages batches of five values if there are at least ten.
	mserBatch = 5
	mserFrom  = 50

	// A backlog that grows by a hundredth of the offered rate doubles a latency of 10 ms within a second.
	growthMost = 0.01
	// A backlog is a running sum, so its seconds are dependent, and the trend test allows for so much
	// dependence that it misses even steady growth over ten seconds. A rise in nine of ten pairs of seconds
	// (Kendall's tau 0.8) counts as growth.
	growthTau = 0.8

	// Falling behind in a run too short for a test: the backlog grew in each measured second, and in three
	// in a row if the run has three; at the end a tenth of all messages waits, which reverses a comparison
	// of rates; and that is more than a stall of half a second at the end leaves.
	behindMost    = 0.10
	behindSeconds = 3
	stallS        = 0.5

	// The largest difference between the agents' starts: the debt that a generator may have at any instant
	// (secondRateShortfall), which is what one of them then owes the others. In a short window no more than
	// a hundredth of it, by which the ends of the load are shifted.
	startMost = 50 * time.Millisecond
	startPart = 0.01

	// Samples over an hour overflow and have no value: one makes the figures suspect.
	overflowMost = 0

	// Gaps that the bounded ledger closed may be messages still to come: one is enough.
	evictedMost = 0
)

// headline reports whether lateness at a percentile decides the whole run's verdict, and the lateness that
// never makes a run invalid. Failing finer percentiles are only marked.
func headline(p float64) (least int64, decides bool) {
	switch p {
	case 50:
		return latenessLeastHalf, true
	case 99:
		return latenessLeastTail, true
	}
	return 0, false
}
