package judge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Inputs is what a verdict is reached from. All but Books concerns the measured
// window.
type Inputs struct {
	Closed      bool    // closed loop: no schedule to be late for
	Consuming   bool    // nothing is sent, only received
	Received    uint64  // in the measured window
	Left        *uint64 // what the system still held for it where nothing was received; nil: it does not tell
	Confirmed   uint64  // of the measured window
	Errors      uint64  // kinds of them in events.jsonl
	Interrupted bool    // cut short by the user
	Aborted     string  // why weir ended the run itself (when_full: fail, system gone); "" where it did not
	Gone        string  // why the system is held to be gone for good at the end of the drain of a run that was not cut short; "" where it was there

	Lateness  *result.Dist // of the generator
	HeldUp    *result.Dist // of it, what the generator cannot have made
	Responses []Response   // those that are printed
	Response  *result.Dist // of those the first, or the service times where there is none
	E2E       *result.Dist // nil where nothing consumed

	Blocked *result.Dist // what messages waited for room, or for the client library
	Inside  *Inside      // of that the host's share; nil: the client library never makes anyone wait

	Scheduled, Sent, Dropped, Unsent uint64
	InWindow                         uint64   // messages that were sent in the measured window, whenever they were due
	Seconds                          []Second // of the measured window
	Waited                           bool     // messages waited for room in the system (when_full: wait)
	Behind                           uint64   // messages of the whole run that were due and not sent because the lanes were late by their own doing
	LaneWaits                        uint64   // times that a lane waited because the room for messages that the system refused was full

	Filling     bool // mode backlog: nobody receives while messages are offered, so that the backlog grows
	Varying     bool // the scenario's rate is another from second to second, or of several steps
	Intervals   []result.Interval
	HighestPerS float64      // messages/s offered, in all, where that is most
	Cost        Cost         // of the instrument
	Host        *result.Host // nil where nothing is known

	Draining   bool          // a backlog was drained
	DrainFirst time.Duration // from the start of the consumers to the first delivery
	DrainRest  time.Duration // and from there to the last
	AtFirst    uint64        // consuming: of Received, what the first client call of each consumer yielded
	Full       bool          // the system took no more before the consumers started
	Lay        uint64        // messages that lay there then

	Failing Failing // messages that the system did not take

	Evicted  uint64 // messages that the ledger closed early because of its bound
	Overflow uint64 // samples over an hour, in any distribution
	Books    error  // of Books, for either period; nil where they balance

	// Of a run by several agents: Host and Cost are then not looked at, and theirs are.
	Agents   []Party
	DiskFull bool // the coordinator's disk had no room for their reports
	Clock    *result.FleetClock
	Window   time.Duration // the measured one
}

// A Second is what one interval of the measured window tells about the rate.
type Second struct {
	At       time.Duration // its start, since the epoch
	LatestNS int64         // the greatest lateness of what was handed over in it
	Handed   uint64        // messages of the measured window that were handed over in it
}

// SecondOf takes a Second from an interval.
func SecondOf(in *measure.Interval) Second {
	late := &in.Kinds[measure.SendLateness][measure.Measure]
	return Second{At: time.Duration(in.From), LatestNS: late.Max(), Handed: late.Total()}
}

// The names of the checks.
const (
	CheckRun      = "run"
	CheckBooks    = "books"
	CheckLateness = "lateness"
	CheckRate     = "offered rate"
	CheckSamples  = "samples"
	CheckLedger   = "ledger"
	CheckOverflow = "overflow"
	CheckBlocked  = "blocked"
	CheckReceived = "received rate" // only where nothing is sent
	CheckDrain    = "drained rate"  // only where a backlog was drained
)

// Verdict judges a run. The SLOs are left to the caller.
func Verdict(in Inputs) result.Verdict {
	v := result.Verdict{Checks: []result.Check{
		run(&in), books(&in), failed(&in), lateness(&in), rate(&in), samples(&in), ledger(&in), overflow(&in),
	}}
	v.Checks = append(v.Checks, steady(&in))
	v.Checks = append(v.Checks, hostChecks(&in)...)
	v.Checks = append(v.Checks, blocked(&in))
	v.Checks = append(v.Checks, fleetChecks(&in)...)
	if in.Draining {
		v.Checks = append(v.Checks, drain(&in))
	}
	if in.Consuming && in.Received > 0 {
		v.Checks = append(v.Checks, received(&in))
	}
	v.Status = Worst(v.Checks)
	return v
}

// Worst returns the worst status of the checks that ran; valid where none did.
func Worst(checks []result.Check) result.Status {
	worst := result.Valid
	for _, c := range checks {
		if rankOf(c.Status) > rankOf(worst) {
			worst = c.Status
		}
	}
	return worst
}

func rankOf(s result.Status) int {
	return slices.Index([]result.Status{result.Valid, result.Suspect, result.Invalid}, s)
}

func run(in *Inputs) result.Check {
	c := result.Check{Name: CheckRun, Status: result.Valid, Value: "ran to its end", Limit: "runs to its end"}
	switch {
	case in.Aborted != "":
		c.Status, c.Value = result.Invalid, "ended early: "+in.Aborted
		if in.measuredNothing() {
			c.Value = "nothing was measured: " + c.Value
		}
		c.Why = "The run did not go as planned: the figures until then do not describe the planned load."
	case in.Interrupted && in.measuredNothing():
		c.Status, c.Value = result.Invalid, "nothing was measured"
		c.Why = "The run was interrupted before the measured window began or held a message."
	case in.Consuming && in.Received == 0:
		c.Status = result.Invalid
		c.Value, c.Why = nothingReceived(in)
	case in.Consuming:
	case in.Sent == 0:
		c.Status, c.Value = result.Invalid, "nothing was sent"
		c.Why = "weir sent no message in the measured window: " + nothingSent(in)
	case in.Confirmed == 0:
		c.Status, c.Value = result.Invalid, "nothing was confirmed"
		c.Why = "The system confirmed none of the messages until the drain ended, so weir cannot judge the run. Check whether the system stands still, or give it a longer drain."
		if in.Errors > 0 {
			c.Why = "The system accepted none of the messages, so weir cannot judge the run. Look at the errors in events.jsonl."
		}
	}
	switch {
	case c.Status == result.Invalid:
	case in.Gone != "":
		c.Status, c.Value = result.Invalid, "the system is gone: "+in.Gone
		c.Why = "Figures of the whole window mix the time before and after. The seconds until then (intervals in result.json) describe the system. What it still held is not known, so weir calls nothing lost. Look at the system, and give it a longer drain if it was coming back."
	case in.Interrupted:
		c.Status, c.Value = result.Suspect, "interrupted"
		c.Why = "The figures cover the part that ran. Let a run finish before you compare it with others."
	}
	return c
}

// measuredNothing reports whether the measured window holds no message.
func (in *Inputs) measuredNothing() bool {
	if in.Consuming {
		return in.Received == 0
	}
	return in.Sent == 0
}

func books(in *Inputs) result.Check {
	c := result.Check{Name: CheckBooks, Status: result.Valid, Value: "balanced", Limit: "balanced"}
	if in.Books != nil {
		c.Status, c.Value = result.Invalid, strings.ReplaceAll(in.Books.Error(), "\n", "; ")
		c.Why = "weir lost count of a message: this is a fault of weir. Use none of the figures, and report it with the result folder."
	}
	return c
}

// fellBehind reports whether so many messages are unsent because the lanes were
// late that it shows in the offered rate.
func (in *Inputs) fellBehind() bool {
	return float64(in.Behind) > rateShortfall*float64(in.Scheduled)
}

// rate checks that what was offered is what was asked for. Messages that were
// not sent although the lanes turned to them in time found the system without
// room: that is its limit, not ours, and their ages are in the response. Where
// the generator itself was late the shortfall is ours.
func rate(in *Inputs) result.Check {
	c := result.Check{
		Name: CheckRate, Status: result.NotRun,
		Limit: fmt.Sprintf("sent within %s of the plan, and within %s of a second at any instant; messages that a full system did not take do not count", percent(rateShortfall), percent(secondRateShortfall)),
	}
	switch {
	case in.Closed:
		return inapplicable(c.Name, c.Limit, "A closed loop offers what the system takes.")
	case in.Consuming:
		return inapplicable(c.Name, c.Limit, "This run sends no messages.")
	case in.Scheduled == 0:
		c.Why = "Nothing was scheduled in the measured window."
		return c
	}
	c.Status = result.Valid
	missing := in.Scheduled - min(in.Sent, in.Scheduled)
	part := in.shortfall()
	inWindow := float64(in.InWindow) / float64(in.Scheduled)
	c.Value = fmt.Sprintf("%s of %s sent", count(in.Sent), count(in.Scheduled))
	if missing > 0 {
		c.Value += fmt.Sprintf(" (%s dropped, %s unsent)", count(in.Dropped), count(in.Unsent))
	}
	behind, worst, at := 0, int64(0), time.Duration(0)
	for _, s := range in.Seconds {
		if s.LatestNS > int64(secondRateShortfall*float64(time.Second)) {
			behind++
			if s.LatestNS > worst {
				worst, at = s.LatestNS, s.At
			}
		}
	}
	ours := in.fellBehind() || in.behindBy(part)
	late := behind > 0 && in.LaneWaits == 0
	beyond := part > rateShortfall
	gone := in.vanished()
	if !ours && beyond && len(gone) == 0 {
		took := 1 - part
		if in.Waited { // what waited may have been sent in the drain
			took = min(took, inWindow)
		}
		c.Value = fmt.Sprintf("the system took %s of the rate: %s", percent(took), c.Value)
		c.Limit = fmt.Sprintf("none for a full system (the generator itself: %s)", percent(rateShortfall))
	}
	waited := !in.behindBy(1-inWindow) && !late && !beyond && in.Waited && in.InWindow > 0 && inWindow < 1-waitedShortfall
	if waited {
		c.Value = fmt.Sprintf("the system took %s of the rate: %s, %s of them after the window because the system had no room before", percent(inWindow), c.Value, count(in.Sent-min(in.Sent, in.InWindow)))
		c.Limit = fmt.Sprintf("none for a full system (the generator itself: %s)", percent(rateShortfall))
	}
	switch {
	case beyond && len(gone) > 0:
		c.Status = result.Invalid
		c.Why = fmt.Sprintf("Messages that were due were not sent, because %s vanished: the run did not keep the planned load.", named(gone))
		if in.DiskFull {
			c.Why = "What was sent after the coordinator's disk was full is not known: the coordinator took no report from then on."
		}
	case beyond && ours:
		c.Status = result.Invalid
		c.Value = "the generator did not keep up: " + c.Value
		c.Why = "The generator itself was too late to send messages that were due. Lower the rate, or give it more cores."
	case beyond:
		c.Why = "The system did not take the rate: messages that were ready in time found no room. That is the system's limit, not the generator's. Their ages are in the response as lower bounds. Lower the rate to see the system unsaturated."
	case waited:
		c.Why = "The system did not take the rate: messages that were ready in time waited for room. That is the system's limit, not the generator's. The wait is in the response. Lower the rate to see the system unsaturated."
	case late:
		c.Status = result.Suspect
		if s := lateness(in).Status; s == result.Suspect || s == result.Invalid {
			c.With = CheckLateness
		}
		c.Value += fmt.Sprintf("; behind in %d of %d seconds, by up to %s at %.0f s", behind, len(in.Seconds), nanos(worst), at.Round(time.Second).Seconds())
		c.Why = "The generator fell behind for a moment and caught up: the load had gaps and bursts that the scenario does not ask for. Use a quieter host, or more cores."
	}
	return c
}

// samples tells which percentiles are not told. Too few for some make nothing
// wrong; where they are too few for every one there is no figure left to use
// but a count and a maximum, which is a reservation.
func samples(in *Inputs) result.Check {
	c := result.Check{Name: CheckSamples, Status: result.Valid, Limit: fmt.Sprintf("%d expected beyond a percentile", stats.MinBeyond)}
	d := in.Response
	if d == nil {
		d = in.E2E
	}
	if d == nil && in.Consuming {
		return inapplicable(c.Name, c.Limit, "weir did not send these messages, so it has no latencies for them.")
	}
	if d == nil {
		c.Status = result.NotRun
		c.Why = "The run has no samples."
		return c
	}
	n := d.Count + d.Censored
	c.Value = count(n) + " samples"
	if !stats.Supported(n, 50) {
		c.Status = result.Suspect
		c.Value += ": too few samples for any percentile"
		c.Why = fmt.Sprintf("p50 needs %s samples. Measure for longer, or send more.", count(stats.Needed(50)))
		return c
	}
	for i := range d.Percentiles {
		if p := d.Percentiles[i].P; p < 100 && !stats.Supported(n, p) {
			c.Value += ", enough below " + name(p)
			c.Why = fmt.Sprintf("%s needs %s samples. Measure for longer, or use only the percentiles that are not marked ~.",
				name(p), count(stats.Needed(p)))
			break
		}
	}
	return c
}

func ledger(in *Inputs) result.Check {
	c := result.Check{Name: CheckLedger, Status: result.Valid, Value: count(in.Evicted) + " messages closed early", Limit: strconv.Itoa(evictedMost)}
	if in.Evicted > evictedMost {
		c.Status = result.Suspect
		c.Why = "So many messages were out of order at once that the memory for them was full. weir gave up the oldest, and does not know what became of them. They count neither as lost nor as delivered. Their latencies are lower bounds."
	}
	return c
}

// drain checks that the rate of a backlog is not that of a client's buffer.
func drain(in *Inputs) result.Check {
	c := result.Check{
		Name: CheckDrain, Status: result.Valid, Limit: "drained for as long as the first delivery took to come",
		Value: fmt.Sprintf("drained for %s, the first delivery after %s", nanos(int64(in.DrainRest)), nanos(int64(in.DrainFirst))),
	}
	switch {
	case in.Full:
		c.Status = result.Suspect
		c.Value += fmt.Sprintf("; the system was full with %s messages", count(in.Lay))
		c.Why = "The system was full before the consumers started. The rest was sent while they received, so the received rate is of both. Send no more than the system holds (messages, warmup), or let it hold more."
	case float64(in.DrainRest) < drainedLeast*float64(in.DrainFirst):
		c.Status = result.Suspect
		c.Why = "The backlog was small: the client library had fetched much of it when it handed over the first message. The received rate describes the library more than the system. Fill for longer, or with more messages."
	}
	return c
}

// received checks that the rate of a run that only receives is not that of what a
// client library had fetched before it handed over the first message.
func received(in *Inputs) result.Check {
	c := result.Check{
		Name: CheckReceived, Status: result.Valid, Limit: percent(atFirstMost) + " in the first client calls",
		Value: fmt.Sprintf("%s of %s messages came in the first client calls of the consumers", count(in.AtFirst), count(in.Received)),
	}
	if float64(in.AtFirst) > atFirstMost*float64(in.Received) {
		c.Status = result.Suspect
		c.Why = "The client library handed over many messages at once, so the received rate rests on few calls, or is not known. Receive more messages, or prefetch fewer."
	}
	return c
}

func overflow(in *Inputs) result.Check {
	c := result.Check{Name: CheckOverflow, Status: result.Valid, Value: count(in.Overflow) + " samples over 1 h", Limit: strconv.Itoa(overflowMost)}
	if in.Overflow > overflowMost {
		c.Status = result.Suspect
		c.Why = "weir counts latencies over an hour without their value: percentiles that reach them say 1 h. The maximum is exact."
	}
	return c
}

func name(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

func percent(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f x", part)
	}
	return strconv.FormatFloat(math.Round(part*1000)/10, 'f', -1, 64) + " %"
}

// nanos prints a duration with three significant digits in the unit that fits,
// as the tables of reports do.
func nanos(ns int64) string {
	v := float64(ns)
	for _, u := range []struct {
		name string
		ns   float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if v < u.ns*0.9995 { // what rounds up to 1,000 of a unit is one of the next
			continue
		}
		switch v /= u.ns; {
		case v >= 99.95:
			return fmt.Sprintf("%.0f %s", v, u.name)
		case v >= 9.995:
			return fmt.Sprintf("%.1f %s", v, u.name)
		}
		return fmt.Sprintf("%.2f %s", v, u.name)
	}
	return fmt.Sprintf("%d ns", ns)
}

// count prints a whole number with its thousands apart.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
