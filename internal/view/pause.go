package view

import (
	"fmt"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// pause writes how long the consumers were paused, and how they caught up.
func (t *single) pause() {
	x := t.r.Pause
	if x == nil {
		return
	}
	t.Gap()
	t.paused()
	table := &layout.Table{Columns: columns("e2e response")}
	for _, p := range pausePercentiles {
		table.Columns = append(table.Columns, layout.Column{Head: percent(p), Tone: layout.Strong})
	}
	table.Columns = append(table.Columns, layout.Column{Head: "samples"})
	for _, of := range []struct {
		name string
		d    *result.Dist
	}{{"old messages", x.Old}, {"live messages", x.Live}} {
		if of.d == nil {
			continue
		}
		row := []layout.Span{plain(of.name)}
		d := distribution{group: "e2e", name: "response", d: of.d}
		for _, p := range pausePercentiles {
			row = append(row, d.figure(t.r, p))
		}
		table.Rows = append(table.Rows, append(row, plain(quantity.Count(of.d.Count+of.d.Censored))))
	}
	if len(table.Rows) > 0 {
		t.Table(table)
		if !marked(t.table, fewSamples) {
			tooFew(t.Page, table)
		}
		step := "2 ms"
		if x.StepNS > 0 {
			step = quantity.Time(x.StepNS)
		}
		left := ""
		if x.OldLost > 0 {
			left = fmt.Sprintf(" (not among them: %s that failed or were lost, since nobody saw until when they waited)", quantity.Count(x.OldLost))
		}
		t.Note("old messages: due before the consumers resumed, and still waiting then"+left+". live: due after they resumed",
			"caught up: no more waited than at 99 % of the times before the pause. Times are to within "+step)
	}
}

// paused summarizes how long the consumers were paused, and how they caught up.
func (t *single) paused() {
	x := t.r.Pause
	t.Labelled("pause", plain(fmt.Sprintf("the consumers took nothing for %s from %s on; then %s waited, before rarely more than %s",
		quantity.Time(x.ResumedNS-x.BeganNS), originOf(t.r).says(x.BeganNS), quantity.Counted(x.Waiting, "message", "messages"), quantity.Count(x.Before))))
	rates := ""
	if x.ReceivedPerS != nil && x.ShrinksPerS != nil {
		rates = fmt.Sprintf("; delivered %s meanwhile, ", quantity.Rate(*x.ReceivedPerS))
		if shrinks := *x.ShrinksPerS; shrinks >= 0 {
			rates += fmt.Sprintf("and the backlog became %s less", quantity.Rate(shrinks))
		} else {
			rates += fmt.Sprintf("and the backlog became %s more", quantity.Rate(-shrinks))
		}
	}
	if x.CaughtUpNS != nil {
		t.Labelled("catch-up", plain("caught up "+quantity.Time(*x.CaughtUpNS-x.ResumedNS)+" after that"+rates))
	} else {
		t.Labelled("catch-up", layout.Doubtful.Of(fmt.Sprintf("not caught up in %s while messages were sent: %s still waited%s",
			quantity.Time(x.UntilNS-x.ResumedNS), quantity.Count(x.Left), rates)))
	}
}

// pausePercentiles are the percentiles for old and live messages; 100 is the largest.
var pausePercentiles = [...]float64{50, 90, 99, 99.9, 100}

// churn writes how consumers closed and reopened.
func (t *single) churn() {
	c := t.r.Churn
	if c == nil {
		return
	}
	t.Gap()
	t.churned()
}

// churned summarizes how often consumers closed, and for how long.
func (t *single) churned() {
	c := t.r.Churn
	if c.Changes == 0 {
		t.Labelled("churn", layout.Doubtful.Of("no consumer closed: the run was too short for one"))
		return
	}
	t.Labelled("churn", plain(fmt.Sprintf("%s closed, each replaced after %s on average (closing took up to %s, opening up to %s)",
		quantity.Counted(c.Changes, "consumer", "consumers"), quantity.Time(c.MeanNS), quantity.Time(c.ClosingNS), quantity.Time(c.OpeningNS))))
}
