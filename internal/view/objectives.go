package view

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// mostObjectives is how many objectives a final screen lists. With more than mostReasoned it omits the
// reasons.
const (
	mostObjectives = 5
	mostReasoned   = 2
)

// objectives writes each objective with its result. In brief, failed ones come first and one line counts
// the rest.
func (t *single) objectives(brief bool) {
	slos, rest := t.r.Verdict.SLO, 0
	if brief {
		slos = slices.Clone(slos)
		order := []result.Outcome{result.Fail, result.Undecided, result.Pass}
		slices.SortStableFunc(slos, func(a, b result.SLO) int {
			return slices.Index(order, a.Outcome()) - slices.Index(order, b.Outcome())
		})
		if n := len(slos); n > mostObjectives {
			rest = n - mostObjectives + 1
			slos = slos[:n-rest]
		}
	}
	wide := 0
	for i := range slos {
		wide = max(wide, utf8.RuneCountInString(string(slos[i].Outcome())))
	}
	for i := range slos {
		s := &slos[i]
		word := string(s.Outcome())
		found, between := t.found(s)
		text := []layout.Span{plain("objective " + s.Expr + ": "), found}
		if between != "" {
			text = append(text, layout.Faint.Of(" (95 %: "+between+")"))
		}
		b := layout.Block{Form: layout.Item, Mark: colour(word).Of(word), Wide: wide, Spans: text, Under: s.Why}
		if brief && len(t.r.Verdict.SLO) > mostReasoned {
			b.Under = ""
		}
		t.Add(b)
	}
	if rest > 0 {
		t.Item(plain(fmt.Sprintf("and %d more objectives; of all, ", rest)), objectivesOf(t.r))
	}
}

// found is the figure that an objective was compared with, and its interval. Percentiles look as in the
// table.
func (t *single) found(s *result.SLO) (value layout.Span, between string) {
	if o, err := judge.ParseObjective(s.Expr); err == nil {
		of, service := o.Latency()
		i := slices.IndexFunc(distributions(t.r), func(c distribution) bool {
			return c.group == of && (c.name == "service") == service && c.group != "" || c.name == of
		})
		if p, ok := o.Percentile(); ok && i >= 0 {
			c := distributions(t.r)[i]
			x := c.figure(t.r, p)
			return x, c.between(p).Text
		}
	}
	switch s.Unit {
	case "ns", "messages", "per_s":
		value = plain(s.Found().Text(unitText(s.Unit)))
		if lo, hi := s.Lo, s.Hi; s.Unit == "ns" && lo != nil && hi != nil && *lo != *hi {
			between = quantity.Range(quantity.Time(int64(*lo)), quantity.Time(int64(*hi)))
		}
	case "ratio":
		value = plain(s.Found().Text(percentage))
	default:
		value = plain("no such figure")
		if s.Status == "" {
			value = plain(strconv.FormatFloat(s.Value, 'g', -1, 64))
		}
	}
	return value, between
}
