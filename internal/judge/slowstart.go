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

// A slowerStart is a beginning in which a system confirmed clearly less than afterwards. It is most of a
// shortfall, but not all of it.
type slowerStart struct {
	seconds       float64 // how long it lasted, warm-up included; 0: there is none
	before, after float64 // confirmed in it and afterwards, as fractions of what was due
}

// mostlySlowStart returns the beginning that explains most of a run's shortfall: at most half of the run,
// and afterwards the system missed at most half as much in a second.
func (s *subject) mostlySlowStart() slowerStart {
	var due, confirmed, at []float64 // in all until the end of each second
	d, c, until := 0.0, 0.0, float64(s.WindowFrom())/1e9+s.Run.MeasureS
	for i := range s.Intervals {
		x := &s.Intervals[i]
		end := s.endOf(i)
		if x.Phase != "warmup" && x.Phase != "measure" || end > until+0.05 {
			break
		}
		c += float64(x.Confirmed)
		if s.closed() {
			d += float64(x.Confirmed + x.Failed)
		} else {
			d = s.perS * (end - s.Intervals[0].TS)
		}
		due, confirmed, at = append(due, d), append(confirmed, c), append(at, end-s.Intervals[0].TS)
	}
	if len(s.Faults) > 0 || s.evidence.RateVaries || len(at) == 0 || c >= d {
		return slowerStart{}
	}
	best, last, most := slowerStart{}, 0, 0.0
	for i := range at[:len(at)-1] {
		// The split that parts the two rates best: the largest sum of squares between them.
		k := slowerStart{seconds: at[i], before: confirmed[i] / due[i], after: (c - confirmed[i]) / (d - due[i])}
		apart := due[i] * (d - due[i]) * (k.after - k.before) * (k.after - k.before)
		if k.after > k.before && apart > most {
			best, last, most = k, i, apart
		}
	}
	missed := (1 - best.before) * best.seconds // per message due in a second
	rest := at[len(at)-1] - best.seconds
	if 2*(last+1) > len(at) || missed < (missed+(1-best.after)*rest)/2 || 1-best.after > (1-best.before)/2 {
		return slowerStart{}
	}
	return best
}

// says describes the beginning, and advises a warm-up that leaves it out; nil if there is none.
func (x slowerStart) findings() []finding.Finding {
	if x.seconds == 0 {
		return nil
	}
	return []finding.Finding{say("slow.mostly", "slow", math.Round(x.seconds), "before", x.before, "after", x.after), warmUpFor(x.seconds)}
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
