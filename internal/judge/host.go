package judge

import (
	"math"
	"slices"

	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// The names of the checks of the host and of the instrument's overhead.
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

// hostChecks judges the resources of the host; of several agents, of the worst one.
func hostChecks(s *subject) []check {
	var all []check
	for _, of := range []func(*subject) check{headroom, recording, cpu, steal, throttling, swap, gc, hiccups} {
		if len(s.Agents) > 0 {
			all = append(all, overAll(s, of))
		} else {
			all = append(all, of(s))
		}
	}
	return all
}

// measured returns a host check with its measured amount.
func measured(name string, limit finding.Finding, part float64, code string, values ...any) check {
	c := valid(name, limit, say(code, values...))
	c.part = part
	return c
}

// atMost bounds the fraction of a pacer's time that messages at a rate take, if the cost per message was
// not measured: it derives the bound from the cost of recording one. ok is false if that is unknown too.
func atMost(c result.Cost, perPacer float64) (part float64, ok bool) {
	return perPacer * pacerWork * c.RecordNS / 1e9, c.RecordNS > 0
}

// Light reports whether a pacer's rate, in messages/s, is so low that its ceiling need not be measured.
func Light(c result.Cost, perPacer float64) bool {
	part, ok := atMost(c, perPacer)
	return ok && perPacer <= ceilingFrom && part <= headroomMost
}

func headroom(s *subject) check {
	limit := say("headroom.limit", "limit", headroomMost)
	if s.closed() || s.idle {
		return inapplicable(CheckHeadroom, limit, say("no.rate"))
	}
	pacers := float64(max(1, s.host.Pacers))
	if s.cost.CeilingPerS <= 0 {
		if !Light(s.cost, s.perS/pacers) {
			return notRun(CheckHeadroom, limit, say("not.measured"))
		}
		part, _ := atMost(s.cost, s.perS/pacers)
		return measured(CheckHeadroom, limit, part, "headroom.at_most", "rate", s.perS, "part", math.Ceil(part*1000)/1000, "work", pacerWork, "record", s.cost.RecordNS)
	}
	ceiling := s.cost.CeilingPerS * pacers
	part := s.perS / ceiling
	return measured(CheckHeadroom, limit, part, "headroom.value", "rate", s.perS, "part", part, "ceiling", ceiling).notes(part > headroomMost, "headroom.little")
}

func recording(s *subject) check {
	limit := say("recording.limit", "limit", recordingMost)
	if s.cost.RecordNS <= 0 {
		return notRun(CheckRecording, limit, say("not.measured"))
	}
	part := s.cost.RecordNS * s.perS / float64(max(1, s.host.Pacers)) / 1e9
	c := measured(CheckRecording, limit, part, "recording.value", "record", s.cost.RecordNS, "part", part, "rate", s.perS)
	return c.notes(part > recordingMost, "recording.delays").suspect(part > recordingMost && s.closed(), "recording.limits")
}

func cpu(s *subject) check {
	if s.closed() {
		return taken(s)
	}
	limit := say("cpu.limit", "limit", cpuMost, "limit_all", busyMost)
	u := s.host.Usage
	if u == nil || u.CPUShare == nil {
		return notRun(CheckCPU, limit, say("host.hidden"))
	}
	c := measured(CheckCPU, limit, *u.CPUShare, "cpu.value", "used", *u.CPUShare, "busy", u.HostBusyShare)
	return c.notes(u.HostBusyShare != nil && *u.HostBusyShare > busyMost, "cpu.busy").notes(*u.CPUShare > cpuMost, "cpu.full")
}

// tooLow says, for a run without a schedule, by what fraction waits may have lowered the rate, and to what
// else they apply.
func (s *subject) tooLow(code string, part float64) finding.Finding {
	service := s.response() != nil
	return say(code, "part", part, "consuming", s.Consuming(), "filling", s.filling(), "service", service, "latencies", !service && s.e2e() != nil)
}

// taken judges a closed loop by the core time that others took from it. A closed loop uses everything
// available, so weir's own use means nothing.
func taken(s *subject) check {
	limit := say("cpu.limit_closed", "limit", takenMost)
	u := s.host.Usage
	if u == nil || u.CPUSeconds == nil || u.TakenS == nil || u.SpanS <= 0 {
		return notRun(CheckCPU, limit, say("host.hidden"))
	}
	seconds := u.SpanS
	if s.Consuming() { // first message to last
		if seconds = min(seconds, s.Run.MeasureS); seconds <= loadedLeast*u.SpanS {
			return notRun(CheckCPU, limit, say("cpu.elsewhen", "span", u.SpanS*1e9, "window", s.window()))
		}
	}
	lost := *u.TakenS
	if s.Servers != nil && len(s.Agents) == 0 { // the system's own resource use is not a disturbance
		all := 0.0
		for _, p := range s.Servers.Processes {
			if p.Cores != nil {
				all += *p.Cores * seconds
			}
		}
		lost = max(0, lost-all)
	}
	part := min(1, lost/seconds, lost/max(1e-9, lost+*u.CPUSeconds))
	c := measured(CheckCPU, limit, part, "cpu.taken", "taken", lost, "ran", *u.CPUSeconds)
	if part > takenMost {
		c.find(result.Suspect, s.tooLow("cpu.others", part))
	}
	return c
}

func steal(s *subject) check {
	limit := say("steal.limit", "limit", stealMost)
	u := s.host.Usage
	if u == nil || u.StealShare == nil {
		return notRun(CheckSteal, limit, say("host.hidden"))
	}
	c := measured(CheckSteal, limit, *u.StealShare, "steal.value", "part", *u.StealShare,
		"span", when(u.SpanS > 0, u.SpanS*1e9)) // the host table covers the measured window
	return s.stands(c, *u.StealShare > stealMost, "steal.others")
}

func throttling(s *subject) check {
	limit := say("throttling.limit")
	u := s.host.Usage
	if u == nil || u.ThrottledS == nil {
		return notRun(CheckThrottling, limit, say("host.hidden"))
	}
	if *u.ThrottledS <= 0 {
		return measured(CheckThrottling, limit, 0, "throttling.never")
	}
	c := measured(CheckThrottling, limit, *u.ThrottledS, "throttling.value", "stopped", *u.ThrottledS*1e9, "periods", u.ThrottledPeriods)
	return s.stands(c, true, "throttling.quota")
}

func swap(s *subject) check {
	limit := say("swap.limit")
	u := s.host.Usage
	if u == nil || u.SwapInBytes == nil || u.SwapOutBytes == nil {
		return notRun(CheckSwap, limit, say("host.hidden"))
	}
	moved := *u.SwapInBytes + *u.SwapOutBytes
	if moved == 0 {
		return measured(CheckSwap, limit, 0, "swap.nothing")
	}
	return measured(CheckSwap, limit, float64(moved), "swap.value", "in", *u.SwapInBytes, "out", *u.SwapOutBytes).suspect(true, "swap.moved")
}

// stands returns a check of something that stops the whole process for a time, with the reason if so. It
// decides only where the stalls that it causes were not measured, which mark the figures that they moved.
func (s *subject) stands(c check, so bool, code string, values ...any) check {
	if s.host.Hiccups == nil || s.closed() {
		return c.suspect(so, code, values...)
	}
	return c.notes(so, code, values...)
}

// tail is the highest supported percentile of a response, except the maximum; nil if none.
func (r *Response) tail() *result.Percentile {
	var best *result.Percentile
	for i := range r.All.Percentiles {
		if p := &r.All.Percentiles[i]; p.P < 100 && p.Supported {
			best = p
		}
	}
	return best
}

func gc(s *subject) check {
	limit := say("gc.limit", "limit", gcMost, "limit_stop", pauseMost)
	u := s.host.Usage
	if u == nil || u.SpanS <= 0 {
		return notRun(CheckGC, limit, say("not.counted"))
	}
	part := float64(u.GC.PauseNS) / 1e9 / u.SpanS
	c := measured(CheckGC, limit, part, "gc.value", "part", part, "longest", u.GC.LongestNS)
	if part > gcMost {
		return s.stands(c, true, "gc.often")
	}
	for _, r := range s.figures() {
		tail := r.tail()
		if tail == nil || float64(u.GC.LongestNS) <= pauseMost*float64(tail.NS) || !reaches(float64(u.GC.Pauses), s, r.All, tail.P) {
			continue
		}
		standing := slices.ContainsFunc(r.All.Percentiles, func(x result.Percentile) bool { return x.P < tail.P && x.Supported })
		c.add("gc.tail", "of", r.Name, "p", tail.P, "ns", tail.NS)
		return s.stands(c, true, "gc.long", "of", r.Name, "p", tail.P, "standing", standing)
	}
	return c
}

// figures returns the responses that are reported, or unnamed service times in a run without.
func (s *subject) figures() []Response {
	all := Responses(&s.Latency)
	if d := s.response(); len(all) == 0 && d != nil {
		return []Response{{All: d}}
	}
	return all
}

// reaches reports whether stops, each as long as a percentile, affect enough messages to decide it: at
// least as many as lie beyond it.
func reaches(stops float64, s *subject, d *result.Dist, p float64) bool {
	n := float64(d.Count + d.Censored)
	each := 1.0
	if s.host.Usage.SpanS > 0 { // messages due during the stops
		each = max(1, s.perS*float64(s.host.Usage.GC.LongestNS)/1e9)
	}
	return stops*each >= n*(100-p)/100
}

// hiccups compares the host's scheduling stalls, as seen by a thread that only sleeps, with each response
// at the same percentile.
func hiccups(s *subject) check {
	limit := say("hiccups.limit", "limit", hiccupMost)
	switch {
	case s.host.Hiccups == nil:
		return notRun(CheckHiccups, limit, say("not.watched"))
	case s.closed():
		return held(s)
	case s.idle && s.response() == nil:
		return inapplicable(CheckHiccups, limit, say("hiccups.no_responses"))
	case s.response() == nil:
		return notRun(CheckHiccups, limit, say("hiccups.no_responses"))
	}
	worst := -1.0
	c := notRun(CheckHiccups, limit, say("few.percentile"))
	c.part = worst
	for _, r := range s.figures() {
		for _, x := range witnessed(s.host.Hiccups) {
			row := r.All.Percentile(x.p)
			if row == nil || !row.Supported {
				continue
			}
			stall := s.stall(x.ns)
			part := float64(stall) / float64(max(1, row.NS))
			if part < worst {
				continue
			}
			worst = part
			c = measured(CheckHiccups, limit, part, "hiccups.value", "stall", stall, "p", x.p, "part", part, "of", r.Name, "ns", row.NS).
				notes(part > hiccupMost, "hiccups.stall", "of", r.Name, "p", x.p)
		}
	}
	return c
}

// held judges a closed loop by the time in which the host, or a signal, stalled a thread that only sleeps,
// and so all of weir. A backlog is watched until its consumers start.
func held(s *subject) check {
	limit := say("hiccups.limit_closed", "limit", takenMost)
	h := s.host.Hiccups
	if h.HeldNS == nil {
		return notRun(CheckHiccups, limit, say("not.watched"))
	}
	part := float64(*h.HeldNS) / max(1, float64(s.window()))
	c := measured(CheckHiccups, limit, part, "hiccups.held", "part", part, "longest", h.MaxNS)
	if part > takenMost {
		c.find(result.Suspect, s.tooLow("hiccups.stopped", part))
	}
	return c
}

// A witness is the delay of a thread that only sleeps, at a percentile.
type witness struct {
	p  float64
	ns int64
}

// witnessed returns the percentiles of stalls with enough samples.
func witnessed(h *result.Hiccups) []witness {
	return slices.DeleteFunc([]witness{{50, h.P50NS}, {99, h.P99NS}, {99.9, h.P999NS}},
		func(w witness) bool { return !stats.Supported(h.Count, w.p) })
}

// stall is how long the host stalled when that thread was ns late.
func (s *subject) stall(ns int64) int64 {
	if ns <= oversleepMost*s.oversleep() {
		return 0 // within the normal wake-up delay, which varies from sleep to sleep
	}
	return ns - s.oversleep()
}

// oversleep is the normal wake-up delay on this host.
func (s *subject) oversleep() int64 {
	if s.host.Calibration == nil {
		return 0
	}
	return s.host.Calibration.P50
}
