package view

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
)

// reviewed compares a repeated judgement with the stored verdict, and says what could not be judged again.
func (t *single) reviewed(v *judge.Review) {
	stored, again := colour(v.Stored).Of(strings.ToUpper(string(v.Stored))), "judged again by this version of weir; the stored verdict is "
	if len(v.Changes) == 0 {
		t.Item(plain(again), stored, plain(": no difference"))
	} else {
		t.Item(plain(again), stored)
	}
	for _, c := range v.Changes {
		t.Item(append([]layout.Span{plain(c.Name + ": ")}, changed(c)...)...)
	}
	by := "not stored by this version"
	if w := t.r.Run.Weir; w != "" {
		by = "not stored by weir " + layout.Shortened(w, 80)
	}
	if len(v.Kept) > 0 {
		t.Item(layout.Doubtful.Of(fmt.Sprintf("not judged again (%s): %s; the stored findings hold", by, strings.Join(v.Kept, ", "))))
	}
	if len(v.Lacking) > 0 {
		t.Item(layout.Doubtful.Of(fmt.Sprintf("not judged at all (%s): %s", by, strings.Join(v.Lacking, ", "))))
	}
}

// changed says what a check or an objective was before, and is now.
func changed(c judge.Change) []layout.Span {
	was, is := []layout.Span{plain("stored "), colour(c.Stored).Of(c.Stored)}, []layout.Span{plain(", now "), colour(c.Now).Of(c.Now)}
	if c.Stored == "" {
		was = []layout.Span{plain("not stored")}
	}
	if c.Now == "" {
		is = []layout.Span{plain(", no longer a check")}
	}
	return append(was, is...)
}

// reviews lists the runs whose verdicts differ from the stored ones.
func reviews(p *layout.Page, entries []Entry) {
	changed, partly := 0, 0
	for _, e := range entries {
		if e.Review == nil {
			return
		}
		if len(e.Review.Changes) > 0 {
			changed++
		}
		if len(e.Review.Kept)+len(e.Review.Lacking) > 0 {
			partly++
		}
	}
	p.Gap()
	p.Say(fmt.Sprintf("judged again by this version of weir: %s, of %d", differing(changed), len(entries)))
	for i, name := range labels(entries) {
		v, is := entries[i].Review, entries[i].Result.Verdict.Status
		if len(v.Changes) == 0 {
			continue
		}
		var names []string
		for _, c := range v.Changes {
			names = append(names, c.Name)
		}
		p.Item(plain(name+": stored "), colour(v.Stored).Of(strings.ToUpper(string(v.Stored))), plain(", now "),
			colour(is).Of(strings.ToUpper(string(is))), plain(" ("+strings.Join(names, ", ")+")"))
	}
	if partly > 0 {
		p.Item(layout.Doubtful.Of(fmt.Sprintf("%s could be judged in part only: not all that a check needs was stored by the version that wrote the result", runs(partly))))
	}
}

// differing counts the runs whose verdict differs.
func differing(n int) string {
	if n == 0 {
		return "no run differs from its stored verdict"
	}
	return quantity.Counted(n, "run differs from its stored verdict", "runs differ from their stored verdicts")
}
