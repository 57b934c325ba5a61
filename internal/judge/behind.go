package judge

import "github.com/weirmq/weir/internal/finding"

// A waiting is the number of waiting messages at the end of each second, from the run's epoch to the end of
// the measured window.
type waiting struct {
	at   []float64 // end of each second, since the start of the first
	n    []float64 // messages that wait then
	from int       // index of the first measured second
	all  float64   // messages that were confirmed, or sent
}

// behind returns, for a run with too few seconds for a statistical test, whether deliveries or
// confirmations fell behind throughout, and why: by more than a brief stall and the messages in flight
// explain. ok is false if neither did.
func (s *subject) behind() (found, why finding.Finding, ok bool) {
	var backlog, open waiting
	sent, confirmed := 0.0, 0.0
	for i := range s.Intervals {
		x := &s.Intervals[i]
		if x.Phase != "warmup" && x.Phase != "measure" {
			break
		}
		if x.Phase == "warmup" {
			backlog.from, open.from = i+1, i+1
		}
		end := s.endOf(i)
		sent, confirmed = sent+float64(x.Sent), confirmed+float64(x.Confirmed)
		backlog.add(end-s.Intervals[0].TS, float64(x.Backlog))
		open.add(end-s.Intervals[0].TS, sent-confirmed)
	}
	backlog.all, open.all = confirmed, sent
	if !s.filling() && backlog.growsBeyond(s.perS, s.inFlightS()) {
		return backlog.says("steady.backlog"), s.consumersBehind(), true
	}
	if s.confirmsAll() && open.growsBeyond(s.perS, s.inFlightS()) {
		return open.says("steady.open"), s.systemBehind(), true
	}
	return found, why, false
}

// inFlightS is the mean time of a message in flight, in s: times the rate it gives the number in flight
// (Little's law). 0 if unknown.
func (s *subject) inFlightS() float64 {
	d := s.Latency.Send.Service
	switch {
	case d == nil:
		return 0
	case d.MeanNS != nil:
		return *d.MeanNS / 1e9
	}
	if p := d.Percentile(50); p != nil {
		return float64(p.NS) / 1e9
	}
	return 0
}

func (w *waiting) add(at, n float64) { w.at, w.n = append(w.at, at), append(w.n, n) }

// growsBeyond reports whether the backlog grew in each of the last seconds, and in all by more than is
// explained by perS messages per second in flight for inFlightS seconds.
func (w *waiting) growsBeyond(perS, inFlightS float64) bool {
	last := len(w.n) - 1
	if last < w.from {
		return false
	}
	for i := max(0, min(w.from, last-behindSeconds+1)); i <= last; i++ {
		n, at := 0.0, 0.0
		if i > 0 {
			n, at = w.n[i-1], w.at[i-1]
		}
		if grown := w.n[i] - n; grown < 1 || grown <= growthMost*perS*(w.at[i]-at) {
			return false
		}
	}
	return w.n[last] > max(behindMost*w.all, perS*max(stallS, inFlightS))
}

func (w *waiting) says(code string) finding.Finding {
	last := len(w.n) - 1
	return say(code, "grown", w.n[last], "seconds", w.at[last], "per_s", w.n[last]/w.at[last])
}
