package judge

import (
	"math"

	"github.com/weirmq/weir/internal/finding"
)

// slowStart returns for how many seconds from its beginning, warm-up included, a run found the system slow:
// in each of them messages failed, found no room or waited, and for at least as long afterwards none did
// and the rate was sent. It returns 0 for other shortfalls, or if these seconds do not explain all of it.
func (s *subject) slowStart() float64 {
	all := &s.MessagesAll
	if len(s.Faults) > 0 || s.evidence.RateVaries || all.Unconfirmed > 0 || all.Unsent > 0 {
		return 0
	}
	wait := math.Inf(1) // limit on waiting messages; in a closed loop the places in flight
	if !s.closed() {
		wait = s.perS * max(stallS, s.inFlightS())
	}
	until := float64(s.WindowFrom())/1e9 + s.Run.MeasureS
	failed, dropped, open := uint64(0), uint64(0), 0.0
	slow, sent, from, to := 0, 0.0, 0.0, 0.0 // number of slow seconds; what was sent after them, and between which times
	for i := range s.Intervals {
		x := &s.Intervals[i]
		failed, dropped, open = failed+x.Failed, dropped+x.Dropped, open+float64(x.Sent)-float64(x.Confirmed)-float64(x.Failed)
		end := s.endOf(i)
		loads := (x.Phase == "warmup" || x.Phase == "measure") && end <= until+0.05
		waits := open > wait || !s.filling() && float64(x.Backlog) > wait
		switch {
		case x.Failed > 0 || x.Dropped > 0 || loads && waits:
			if slow < i {
				return 0
			}
			slow, from, to = i+1, end, end
		case loads:
			sent, to = sent+float64(x.Sent), end
		}
	}
	if slow == 0 || failed != all.Failed || dropped != all.Dropped {
		return 0
	}
	took := from - s.Intervals[0].TS
	due := s.perS * (to - from)
	if to-from < took || !s.closed() && sent < due-max(rateShortfall*due, 3*math.Sqrt(due)) { // arrivals may be random
		return 0
	}
	return took
}

// endOf is the end of a second of the run, in seconds since the epoch.
func (s *subject) endOf(i int) float64 {
	if i+1 < len(s.Intervals) {
		return s.Intervals[i+1].TS
	}
	return s.Intervals[i].TS + 1
}

// warmUpFor advises a warm-up for a system that was slow for slowS seconds.
func warmUpFor(slowS float64) finding.Finding {
	return say("advice.warm_up", "margin", warmUpMargin, "warmup", math.Ceil(math.Round(slowS)*warmUpMargin))
}
