package judge

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// The names of the checks of the host and of the instrument's own cost.
const (
	CheckHeadroom   = "headroom"
	CheckRecording  = "recording cost"
	CheckCPU        = "cpu"
	CheckSteal      = "steal"
	CheckThrottling = "throttling"
	CheckSwap       = "swap"
	CheckGC         = "gc"
	CheckHiccups    = "hiccups"
)

// hostChecks judges what the host gave and withheld; of several agents, of the one
// that is worst off. Each check also tells how much there was of what it judges,
// which orders those of one status.
func hostChecks(s *subject) []result.Check {
	var all []result.Check
	for _, check := range []func(*subject) (result.Check, float64){headroom, recording, cpu, steal, throttling, swap, gc, hiccups} {
		if len(s.Agents) > 0 {
			all = append(all, overAll(s, check))
			continue
		}
		c, _ := check(s)
		all = append(all, c)
	}
	return all
}

// notRun is a check that could not be.
func notRun(name, limit, why string) result.Check {
	return result.Check{Name: name, Status: result.NotRun, Limit: limit, Why: why}
}

// inapplicable is a check for which there is nothing to judge in such a run.
func inapplicable(name, limit, why string) result.Check {
	c := notRun(name, limit, why)
	c.Inapplicable = true
	return c
}

// atMost bounds the part of a lane that messages at a rate take, where what one
// costs a lane was not measured: from what it costs to record one. ok is false
// where that is not known either.
func atMost(c result.Cost, perLane float64) (part float64, ok bool) {
	return perLane * laneWork * c.RecordNS / 1e9, c.RecordNS > 0
}

// Light reports whether a rate of a lane, in messages/s, takes so little of it that
// its ceiling need not be measured.
func Light(c result.Cost, perLane float64) bool {
	part, ok := atMost(c, perLane)
	return ok && perLane <= ceilingFrom && part <= headroomMost
}

func headroom(s *subject) (result.Check, float64) {
	limit := percent(headroomMost) + " of that"
	if s.closed() || s.idle {
		return inapplicable(CheckHeadroom, limit, "This run offers no rate."), 0
	}
	lanes := max(1, s.host.Lanes)
	perLane := s.perS / float64(lanes)
	c := result.Check{Name: CheckHeadroom, Status: result.Valid, Limit: limit}
	if s.cost.CeilingPerS <= 0 {
		if !Light(s.cost, perLane) {
			return notRun(CheckHeadroom, limit, "Not measured."), 0
		}
		part, _ := atMost(s.cost, perLane)
		c.Value = fmt.Sprintf("%s/s is at most %s of what the lanes can send to a system that costs nothing; a message takes a lane at most %d times the %.0f ns of recording it",
			count(uint64(s.perS)), percent(math.Ceil(part*1000)/1000), laneWork, s.cost.RecordNS)
		return c, part
	}
	ceiling := s.cost.CeilingPerS * float64(lanes)
	part := s.perS / ceiling
	c.Value = fmt.Sprintf("%s/s is %s of the %s/s that the lanes can send to a system that costs nothing", count(uint64(s.perS)), percent(part), count(uint64(ceiling)))
	if part > headroomMost {
		c.Status = result.Suspect
		c.Why = "The generator works near its limit on this host. The time that it adds to a message grows there before other checks show it. Lower the rate, or use a host with more cores."
	}
	return c, part
}

func recording(s *subject) (result.Check, float64) {
	limit := fmt.Sprintf("%s of a core", percent(recordingMost))
	if s.cost.RecordNS <= 0 {
		return notRun(CheckRecording, limit, "Not measured."), 0
	}
	lanes := max(1, s.host.Lanes)
	part := s.cost.RecordNS * s.perS / float64(lanes) / 1e9
	c := result.Check{
		Name: CheckRecording, Status: result.Valid, Limit: limit,
		Value: fmt.Sprintf("recording a message takes %.0f ns, which is %s of a core for each lane at %s/s", s.cost.RecordNS, percent(part), count(uint64(s.perS))),
	}
	if part > recordingMost {
		c.Status = result.Suspect
		c.Why = "Recording a message takes so much of a core that it can delay the next one. Lower the rate, or use a host with more cores (each lane needs one)."
		if s.closed() {
			c.Why = "Recording the messages takes a visible part of the time, so weir itself limits this rate: the system may be faster. Use a host with faster cores, or read the rate as a lower bound."
		}
	}
	return c, part
}

func cpu(s *subject) (result.Check, float64) {
	if s.closed() {
		return taken(s)
	}
	limit := fmt.Sprintf("%s for weir, %s for all", percent(cpuMost), percent(busyMost))
	if s.host.Usage == nil || s.host.Usage.CPUShare == nil {
		return notRun(CheckCPU, limit, "The host does not show it."), 0
	}
	u := s.host.Usage
	c := result.Check{Name: CheckCPU, Status: result.Valid, Limit: limit, Value: "weir used " + percent(*u.CPUShare) + " of its cores"}
	if u.HostBusyShare != nil {
		c.Value += ", and all processes together used " + percent(*u.HostBusyShare) + " of the host's"
	}
	switch {
	case *u.CPUShare > cpuMost:
		c.Status = result.Suspect
		c.Why = "The generator used nearly all of its cores, and waits for a core are in its figures. Lower the rate, or give it more cores."
	case u.HostBusyShare != nil && *u.HostBusyShare > busyMost:
		c.Status = result.Suspect
		c.Why = "The host's cores were busy, with other processes or with the system under test. Waits for a core are in the figures. Stop what else runs, or put the system on another host."
	}
	return c, *u.CPUShare
}

// tooLow says, for a run without a schedule, by up to which part waits lowered a rate, and
// what else holds them.
func (s *subject) tooLow(rate string, part float64) string {
	says := fmt.Sprintf("%s too low by up to %s", rate, percent(part))
	switch {
	case s.response() != nil:
		says += ", and the service times hold these waits"
	case s.e2e() != nil:
		says += ", and the latencies hold these waits"
	}
	return says + "."
}

// taken judges a closed loop by the core time that others took from it: it uses all that
// there is, so that what weir used, or others besides, says nothing.
func taken(s *subject) (result.Check, float64) {
	limit := percent(takenMost) + " taken by others"
	u := s.host.Usage
	if u == nil || u.CPUSeconds == nil || u.TakenS == nil || u.SpanS <= 0 {
		return notRun(CheckCPU, limit, "The host does not show it."), 0
	}
	seconds := u.SpanS
	if s.Consuming() { // from the first message to the last
		if seconds = min(seconds, s.Run.MeasureS); seconds <= loadedLeast*u.SpanS {
			return notRun(CheckCPU, limit, fmt.Sprintf("It is known for %s, and messages came in %s of that.", nanos(int64(u.SpanS*1e9)), nanos(int64(s.window())))), 0
		}
	}
	lost := *u.TakenS
	if s.Servers != nil && len(s.Agents) == 0 { // the system's own use of the host is what is measured
		all := 0.0
		for _, p := range s.Servers.Processes {
			if p.Cores != nil {
				all += *p.Cores * seconds
			}
		}
		lost = max(0, lost-all)
	}
	part := min(1, lost/seconds, lost/max(1e-9, lost+*u.CPUSeconds))
	c := result.Check{
		Name: CheckCPU, Status: result.Valid, Limit: limit,
		Value: fmt.Sprintf("weir's threads waited %.3g core-seconds for cores that others had, and ran %.3g", lost, *u.CPUSeconds),
	}
	if part > takenMost {
		c.Status = result.Suspect
		does, rate := "A closed loop goes on", "the rate is"
		switch {
		case s.Consuming():
			does = "weir receives"
		case s.filling():
			does, rate = "weir sends and receives", "the rates are"
		}
		c.Why = fmt.Sprintf("%s only when its threads run: %s Stop what else runs, or put the system on another host.", does, s.tooLow(rate, part))
	}
	return c, part
}

func steal(s *subject) (result.Check, float64) {
	limit := percent(stealMost)
	if s.host.Usage == nil || s.host.Usage.StealShare == nil {
		return notRun(CheckSteal, limit, "The host does not show it."), 0
	}
	share := *s.host.Usage.StealShare
	c := result.Check{Name: CheckSteal, Status: result.Valid, Limit: limit, Value: "the hypervisor took " + percent(share) + " of the processor time"}
	if span := s.host.Usage.SpanS; span > 0 { // the table of the host is of the measured window
		c.Value += ", warm-up and drain included (" + nanos(int64(span*float64(time.Second))) + ")"
	}
	if share > stealMost {
		c.Status = result.Suspect
		c.Why = "The hypervisor ran other machines while this one was ready to run, and this one stood still. Use a host with cores of its own."
	}
	return c, share
}

func throttling(s *subject) (result.Check, float64) {
	const limit = "never"
	if s.host.Usage == nil || s.host.Usage.ThrottledS == nil {
		return notRun(CheckThrottling, limit, "The host does not show it."), 0
	}
	u := s.host.Usage
	c := result.Check{Name: CheckThrottling, Status: result.Valid, Limit: limit, Value: "never"}
	if s := *u.ThrottledS; s > 0 {
		c.Status = result.Suspect
		c.Value = "stopped for " + nanos(int64(s*float64(time.Second)))
		if u.ThrottledPeriods != nil {
			c.Value += fmt.Sprintf(" over all cores, in %s periods", count(*u.ThrottledPeriods))
		}
		c.Why = "The quota of a control group stopped this process, for up to 0.1 s at a time. Raise the quota (cpu.max, or a container's CPU limit), or remove it."
	}
	return c, *u.ThrottledS
}

func swap(s *subject) (result.Check, float64) {
	const limit = "nothing"
	if s.host.Usage == nil || s.host.Usage.SwapInBytes == nil || s.host.Usage.SwapOutBytes == nil {
		return notRun(CheckSwap, limit, "The host does not show it."), 0
	}
	u := s.host.Usage
	moved := float64(*u.SwapInBytes + *u.SwapOutBytes)
	c := result.Check{Name: CheckSwap, Status: result.Valid, Limit: limit, Value: "nothing moved"}
	if in, out := *u.SwapInBytes, *u.SwapOutBytes; in+out > 0 {
		c.Status = result.Suspect
		c.Value = fmt.Sprintf("%s bytes in, %s bytes out", count(in), count(out))
		c.Why = "The host moved memory to or from a disk. A thread that needs it back waits for milliseconds. Free memory, or turn swapping off (swapoff -a) for the run."
	}
	return c, moved
}

// tail is the highest percentile of a response that is a figure, and not the
// maximum; nil where none is.
func (r *Response) tail() *result.Percentile {
	var best *result.Percentile
	for i := range r.All.Percentiles {
		if p := &r.All.Percentiles[i]; p.P < 100 && p.Supported {
			best = p
		}
	}
	return best
}

func gc(s *subject) (result.Check, float64) {
	limit := fmt.Sprintf("%s of the time, and for one stop %s of the highest supported percentile", percent(gcMost), percent(pauseMost))
	if s.host.Usage == nil || s.host.Usage.SpanS <= 0 {
		return notRun(CheckGC, limit, "Not counted."), 0
	}
	u := s.host.Usage
	part := float64(u.GC.PauseNS) / 1e9 / u.SpanS
	c := result.Check{
		Name: CheckGC, Status: result.Valid, Limit: limit,
		Value: fmt.Sprintf("Go's garbage collector stopped weir for %s of the time, at most %s at once", percent(part), nanos(u.GC.LongestNS)),
	}
	if part > gcMost {
		c.Status = result.Suspect
		c.Why = "These stops are in the figures. Use a host with free cores, fewer messages in flight, or smaller messages."
		return c, part
	}
	for _, r := range s.figures() {
		tail := r.tail()
		if tail == nil || float64(u.GC.LongestNS) <= pauseMost*float64(tail.NS) || !reaches(float64(u.GC.Pauses), s, r.All, tail.P) {
			continue
		}
		c.Status = result.Suspect
		c.Value += fmt.Sprintf("; %s%s is %s", spaced(r.Name), name(tail.P), nanos(tail.NS))
		c.Why = fmt.Sprintf("The stops were long enough, and came often enough, to show at %s%s%s. Use a host with free cores, fewer messages in flight, or smaller messages.", spaced(r.Name), name(tail.P), standing(r.All, tail.P))
		break
	}
	return c, part
}

// standing says that the percentiles of d below p hold, as the end of a sentence;
// "" where none of those is a figure.
func standing(d *result.Dist, p float64) string {
	if slices.ContainsFunc(d.Percentiles, func(x result.Percentile) bool { return x.P < p && x.Supported }) {
		return "; the percentiles below it hold"
	}
	return ""
}

// spaced is a name with a space behind it; "" without one.
func spaced(name string) string {
	if name == "" {
		return ""
	}
	return name + " "
}

// figures are the responses that are printed, or the service times of a run that
// has none, which have no name.
func (s *subject) figures() []Response {
	all := Responses(&s.Latency)
	if d := s.response(); len(all) == 0 && d != nil {
		return []Response{{All: d}}
	}
	return all
}

// reaches reports whether stops, each as long as a percentile, meet enough
// messages to be what decides it: at least as many as lie beyond it.
func reaches(stops float64, s *subject, d *result.Dist, p float64) bool {
	n := float64(d.Count + d.Censored)
	each := 1.0
	if s.host.Usage.SpanS > 0 { // those due while it stood
		each = max(1, s.perS*float64(s.host.Usage.GC.LongestNS)/1e9)
	}
	return stops*each >= n*(100-p)/100
}

// hiccups holds the host's own stalls, as a thread met them that does nothing
// but sleep, against each response at the same percentile. Where lateness moved
// that percentile the lanes met the same stalls, and it is not told again.
func hiccups(s *subject) (result.Check, float64) {
	limit := percent(hiccupMost) + " of the same percentile"
	switch {
	case s.host.Hiccups == nil:
		return notRun(CheckHiccups, limit, "Not watched."), 0
	case s.closed():
		return held(s)
	case s.idle && s.response() == nil:
		return inapplicable(CheckHiccups, limit, "The run has no response times to compare with."), 0
	case s.response() == nil:
		return notRun(CheckHiccups, limit, "The run has no response times to compare with."), 0
	}
	worst, found := -1.0, 0 // found: 1 beyond the limit, 2 beyond it and not told by lateness
	c := result.Check{Name: CheckHiccups, Status: result.NotRun, Limit: limit, Why: "There are too few messages for a percentile to compare with."}
	for _, r := range s.figures() {
		for _, x := range witnessed(s.host.Hiccups) {
			row := r.All.Percentile(x.p)
			if row == nil || !row.Supported {
				continue
			}
			stall := s.stall(x.ns)
			part := float64(stall) / float64(max(1, row.NS))
			finds := 0
			switch {
			case part > hiccupMost && r.touched(x.p):
				finds = 1
			case part > hiccupMost:
				finds = 2
			}
			if finds < found || finds == found && part < worst {
				continue
			}
			worst, found = part, finds
			c = result.Check{
				Name: CheckHiccups, Status: result.Valid, Limit: limit,
				Value: fmt.Sprintf("a thread that only sleeps woke %s too late at %s: %s %s%s (%s)", nanos(stall), name(x.p), times(part), spaced(r.Name), name(x.p), nanos(row.NS)),
			}
			if finds > 0 {
				c.Status = result.Suspect
				c.Why = fmt.Sprintf("The host held up that thread for so long. It may have made %s%s, too. Use a quieter host, or give the generator cores of its own (isolcpus, no hyperthread beside).", spaced(r.Name), name(x.p))
			}
			if finds == 1 {
				c.With = CheckLateness
			}
		}
	}
	return c, worst
}

// held judges a closed loop by the time in which the host, or a signal, held up a thread
// that only sleeps, and so weir as a whole.
func held(s *subject) (result.Check, float64) {
	limit := percent(takenMost) + " of the time"
	h := s.host.Hiccups
	if h.HeldNS == nil {
		return notRun(CheckHiccups, limit, "Not watched."), 0
	}
	part := float64(*h.HeldNS) / max(1, float64(s.window()))
	c := result.Check{
		Name: CheckHiccups, Status: result.Valid, Limit: limit,
		Value: fmt.Sprintf("a thread that only sleeps was held up for %s of the time, %s at most", percent(part), nanos(h.MaxNS)),
	}
	if part > takenMost {
		c.Status = result.Suspect
		still, rate := "A closed loop stands still", "the rate is"
		switch {
		case s.Consuming():
			still = "weir receives nothing"
		case s.filling(): // it is watched until the consumers start
			still, rate = "weir sends nothing", "the sent rate is"
		}
		c.Why = fmt.Sprintf("The host held up that thread, or weir was stopped (SIGSTOP). %s meanwhile: %s Use a quieter host, or repeat the run.", still, s.tooLow(rate, part))
	}
	return c, part
}

// A witness is by how much a thread that only sleeps was late at a percentile.
type witness struct {
	p  float64
	ns int64
}

// witnessed returns the percentiles of hiccups that there are samples enough for.
func witnessed(h *result.Hiccups) []witness {
	return slices.DeleteFunc([]witness{{50, h.P50NS}, {99, h.P99NS}, {99.9, h.P999NS}},
		func(w witness) bool { return !stats.Supported(h.Count, w.p) })
}

// stall is for how long the host stood still where that thread was late by ns.
func (s *subject) stall(ns int64) int64 {
	if ns <= oversleepMost*s.oversleep() {
		return 0 // the way out of a sleep, which is not the same from one to the next
	}
	return ns - s.oversleep()
}

// oversleep is by how much a sleep on this host is too long when nothing is
// wrong.
func (s *subject) oversleep() int64 {
	if s.host.Calibration == nil {
		return 0
	}
	return s.host.Calibration.P50
}
