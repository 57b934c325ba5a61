package series

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

// paused returns the result of pausing consumers; nil if they were not paused.
func paused(p *engine.Paused, asked []float64) *result.Pause {
	if p == nil {
		return nil
	}
	out := &result.Pause{
		BeganNS: p.Began, ResumedNS: p.Resumed, Before: p.Before, Waiting: p.Waiting, UntilNS: p.Until, Left: p.Left, Received: p.Received,
		Old: judge.OfStage(&p.Old, &p.OldCensored, asked...), Live: judge.OfStage(&p.Live, &p.LiveCensored, asked...),
		OldLost: p.OldLost,
	}
	if p.Step > 0 {
		out.StepNS = p.Step
	}
	if p.CaughtUp > 0 {
		out.CaughtUpNS = &p.CaughtUp
	}
	if seconds := float64(p.Until-p.Resumed) / 1e9; seconds > 0 {
		received, shrinks := float64(p.Received)/seconds, (float64(p.Waiting)-float64(p.Left))/seconds
		out.ReceivedPerS, out.ShrinksPerS = &received, &shrinks
	}
	return out
}

// churned returns the result of consumers that closed on purpose; nil if none were to.
func churned(c *engine.Churned) *result.Churn {
	if c == nil {
		return nil
	}
	out := &result.Churn{Changes: c.Changes, ClosingNS: c.ClosingNS, OpeningNS: c.OpeningNS}
	if c.Changes > 0 {
		out.MeanNS = c.AwayNS / int64(c.Changes)
	}
	return out
}
