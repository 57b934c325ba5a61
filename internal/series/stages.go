package series

import (
	"fmt"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// stages returns the figures of each stage of the profile that the run reached, with the percentiles asked
// for.
func stages(raw *engine.Raw, s *scenario.Scenario, asked []float64) []result.Stage {
	var out []result.Stage
	for i := range raw.Stages {
		g, p := &raw.Stages[i], s.Load.Profile[i]
		x := result.Stage{Plan: planned(p), FromNS: g.From, ToNS: g.To, Offered: g.Offered}
		x.BeginsPerS, x.EndsPerS = rates(p, g.To-g.From)
		seconds := x.Lasts()
		if seconds <= 0 {
			continue
		}
		per := func(n uint64) float64 { return float64(n) / seconds }
		x.OfferedPerS, x.SentPerS, x.ConfirmedPerS = per(g.Offered), per(g.Sent), per(g.Confirmed)
		if s.Mode != engine.Produce && s.Mode != engine.Backlog {
			received := per(g.Received)
			x.ReceivedPerS = &received
		}
		pair := func(k measure.Kind) *result.Pair {
			onTime, _ := k.OnTime()
			d := judge.OfStage(&g.Kinds[k], &g.Censored[k], asked...)
			if d == nil {
				return nil
			}
			return &result.Pair{Response: d, OnTime: judge.OfStage(&g.Kinds[onTime], &g.Censored[onTime], asked...)}
		}
		x.Send, x.RTT, x.E2E = pair(measure.SendResponse), pair(measure.RTTResponse), pair(measure.E2EResponse)
		out = append(out, x)
	}
	return out
}

// planned describes a phase.
func planned(p schedule.Phase) string {
	switch {
	case p.Burst > 0:
		return fmt.Sprintf("%d every %v", p.Burst, p.Every)
	case p.From != p.To:
		return p.From.String() + ".." + p.To.String()
	}
	return p.From.String()
}

// rates returns the planned rates at the start of a phase and after lasted ns.
func rates(p schedule.Phase, lasted int64) (begins, ends float64) {
	if p.Burst > 0 {
		mean := float64(p.Burst) / p.Every.Seconds()
		return mean, mean
	}
	begins, ends = p.From.PerSecond(), p.To.PerSecond()
	return begins, begins + (ends-begins)*float64(lasted)/float64(p.For)
}
