package judge

import (
	"math"
	"time"

	"github.com/weirmq/weir/result"
)

// A subject is a run as its checks see it: its result, and one host that sent or received; with several
// agents, each agent's in turn.
type subject struct {
	*result.Result
	evidence   result.Evidence // zero in results of older versions
	objectives []Objective

	host *result.Host // empty if unknown
	cost result.Cost  // of the instrument on it
	perS float64      // highest rate offered from it, in messages/s
	idle bool         // nothing is sent from it
}

// subjectOf returns the run of a result, on its own host.
func subjectOf(r *result.Result, objectives []Objective) *subject {
	s := &subject{Result: r, objectives: objectives, host: &r.Host, idle: r.Consuming()}
	if r.Evidence != nil {
		s.evidence = *r.Evidence
	}
	if c := s.evidence.Cost; c != nil {
		s.cost = *c
	}
	s.perS = s.evidence.HighestPerS
	return s
}

// on returns the run on an agent's host.
func (s *subject) on(a *result.Agent) *subject {
	own := *s
	own.host, own.cost, own.idle = new(result.Host), result.Cost{}, s.idle || a.Producers == 0
	if h := a.Host; h != nil {
		own.host = &result.Host{Usage: h.Usage, Pacers: h.Pacers, PacerWaits: h.PacerWaits, Calibration: h.Calibration, Hiccups: h.Hiccups}
	}
	if a.Cost != nil {
		own.cost = *a.Cost
	}
	producers := 0
	for i := range s.Agents {
		producers += s.Agents[i].Producers
	}
	own.perS = s.evidence.HighestPerS * float64(a.Producers) / float64(max(1, producers))
	return &own
}

// closed reports whether there was no schedule, and so no lateness.
func (s *subject) closed() bool { return s.Run.Loop == result.LoopClosed }

// filling reports whether nothing received while messages were offered, to build up a backlog.
func (s *subject) filling() bool { return s.Run.Mode == result.ModeBacklog }

// endedFor says why weir ended the run itself; "" if it did not.
func (s *subject) endedFor() string {
	if g := s.Run.Gone; g != nil && s.evidence.Cut {
		return g.Why
	}
	return s.evidence.EndedFor
}

// gone says why the system counts as gone at the end of a run that was not cut short; "" if it was there.
func (s *subject) gone() string {
	if g := s.Run.Gone; g != nil && !s.evidence.Cut {
		return g.Why
	}
	return ""
}

func (s *subject) window() time.Duration {
	return time.Duration(math.Round(s.Run.MeasureS * float64(time.Second)))
}

// response is the distribution that decides which percentiles are reported: the first response, or the
// service times of a run without; nil if neither. If replies confirm, the round trip is all that a sender
// knows.
func (s *subject) response() *result.Dist {
	l := &s.Latency
	return first(l.Send.Response, l.RTT.Response, l.Send.Service, l.RTT.Service)
}

func (s *subject) e2e() *result.Dist { return first(s.Latency.E2E.Response, s.Latency.E2E.Service) }

func first(ds ...*result.Dist) *result.Dist {
	for _, d := range ds {
		if d != nil {
			return d
		}
	}
	return nil
}

// waited reports whether messages waited for room in the system or in the client library, by when_full.
func (s *subject) waited() bool {
	d := s.Latency.Send.Blocked
	return s.evidence.WhenFull == result.WhenFullWait && d != nil && d.MaxNS != nil && *d.MaxNS > 0
}

// overflown counts the samples over an hour in all distributions, without the on-time copies.
func (s *subject) overflown() (n uint64) {
	l := &s.Latency
	for _, d := range []*result.Dist{
		l.Send.Response, l.Send.Service, l.Send.Lateness, l.Send.HeldUp, l.Send.Blocked, l.Send.Failed,
		l.E2E.Response, l.E2E.Service, l.RTT.Response, l.RTT.Service, l.Settle,
	} {
		if d != nil {
			n += d.Overflow
		}
	}
	return n
}
