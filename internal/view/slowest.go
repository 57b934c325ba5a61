package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

const mostClusters = 3

// slowest writes what the slowest messages have in common, for the distribution that extends furthest.
func (t *single) slowest() {
	s := t.furthest()
	if s == nil {
		return
	}
	t.Labelled("slowest", plain(clustersSay(s, t.uncompleted(s.Of), originOf(t.r))))
	for _, b := range s.Beside {
		if outliers.Significant(s, b) {
			t.Labelled("", plain(fmt.Sprintf("%d of these %d met %s; of messages as slow at random times %s would", b.Messages, len(s.Messages), besideSays(b.What), shareText(b.ByChance))))
		}
	}
	t.serverLog(s)
}

// furthest returns the slowest messages of the distribution that extends furthest; nil if none.
func (t *single) furthest() *result.Slowest {
	return cmp.Or(t.slowestOf("rtt"), t.slowestOf("e2e"), t.slowestOf("send"))
}

// slowestOf returns the slowest messages of a distribution; nil if none.
func (t *single) slowestOf(name string) *result.Slowest {
	for i := range t.r.Slowest {
		if s := &t.r.Slowest[i]; s.Of == name && len(s.Messages) > 0 {
			return s
		}
	}
	return nil
}

// uncompleted counts the measured messages of a direction that never completed.
func (t *single) uncompleted(of string) uint64 {
	for _, c := range distributions(t.r) {
		if c.group == of && c.interval {
			return c.d.Censored
		}
	}
	return 0
}

// clustersSay says when slow messages occurred, since the end of the warm-up as for faults and pauses.
// Messages that never completed are not among them.
func clustersSay(s *result.Slowest, never uint64, from origin) string {
	at, since := from.says, ""
	if near(s.Clusters) {
		at = func(ns int64) string { return quantity.Commas(fmt.Sprintf("%.3f", from.seconds(ns))) + " s" }
	}
	if from > 0 {
		since = " after the warm-up"
	}
	n := len(s.Messages)
	which := fmt.Sprintf("the %d slowest %s messages", n, s.Of)
	if n == 1 {
		which = fmt.Sprintf("the slowest %s message", s.Of)
	}
	took := quantity.Time(s.Messages[0].NS)
	if quickest := quantity.Time(s.Messages[n-1].NS); quickest != took {
		took = quickest + " to " + took
	}
	text := which + " took " + took
	if never > 0 {
		more := uncompleted[s.Of]
		if never == 1 {
			more = strings.Replace(more, "were", "was", 1)
		}
		text = fmt.Sprintf("%s that completed took %s (%s more %s)", which, took, quantity.Count(never), more)
	}
	many := slices.DeleteFunc(slices.Clone(s.Clusters), func(c result.SlowCluster) bool { return c.Messages < 2 })
	slices.SortStableFunc(many, func(a, b result.SlowCluster) int { return cmp.Compare(b.Messages, a.Messages) })
	together := 0
	for _, c := range many {
		together += c.Messages
	}
	switch {
	case len(many) == 1 && together == n:
		text += fmt.Sprintf("; all were in flight within %s, from %s%s on", quantity.Time(many[0].ToNS-many[0].FromNS), at(many[0].FromNS), since)
	case len(many) > 0:
		var each []string
		for _, c := range many[:min(len(many), mostClusters)] {
			each = append(each, fmt.Sprintf("%d in a burst of %s from %s on", c.Messages, quantity.Time(c.ToNS-c.FromNS), at(c.FromNS)))
		}
		if len(many) > mostClusters {
			each = append(each, "...")
		}
		text += fmt.Sprintf("; %d of them came in %s%s: %s", together, quantity.Counted(len(many), "burst", "bursts"), since, strings.Join(each, ", "))
	}
	if s.PeriodNS != nil {
		text += fmt.Sprintf("; bursts begin every %s, or a multiple of it", quantity.Time(*s.PeriodNS))
	}
	return text
}

// near reports whether two bursts of several messages begin within a tenth of a second.
func near(all []result.SlowCluster) bool {
	const tenth = int64(100 * time.Millisecond)
	before := -tenth
	for _, c := range all { // in order
		if c.Messages < 2 {
			continue
		}
		if c.FromNS-before < tenth {
			return true
		}
		before = c.FromNS
	}
	return false
}

func besideSays(what string) string {
	switch what {
	case outliers.Hiccup:
		return "a stall of the host"
	case outliers.Collected:
		return "a collection of weir's own garbage"
	case "fault":
		return "a fault"
	case "server":
		return "the end or the start of a server"
	case outliers.Gone:
		return "a second without one of the servers"
	case outliers.Halted:
		return "a second in which a signal had stopped a server"
	case outliers.Stolen:
		return "a second in which the hypervisor took processor time"
	case outliers.Waiting:
		return "a second in which the host waited for disks"
	case outliers.Flushes, outliers.Written, outliers.Read, outliers.Faults, outliers.Busy:
		return "a second with unusually " + what
	}
	return fmt.Sprintf("an event %q", layout.Shortened(what, 40))
}

func shareText(v float64) string {
	if v > 0 && v < 0.001 {
		return "less than 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*math.Min(1, math.Max(0, v)))
}

func (t *single) slowestTable() {
	var rows [][]layout.Span
	for _, s := range t.r.Slowest[:min(len(t.r.Slowest), 3)] {
		shown := map[int64]bool{}                                 // bursts, by their beginning
		for _, m := range s.Messages[:min(len(s.Messages), 20)] { // slowest first: of each burst, the slowest
			burst := result.SlowCluster{Messages: 1}
			for _, c := range s.Clusters {
				if c.FromNS <= m.DueNS && m.DueNS <= c.ToNS {
					burst = c
				}
			}
			if burst.Messages > 1 && shown[burst.FromNS] {
				continue
			}
			shown[burst.FromNS] = true
			rows = append(rows, []layout.Span{
				plain(s.Of), plain(quantity.Time(m.NS)), plain(fmt.Sprint(burst.Messages)), plain(originOf(t.r).says(m.DueNS)), plain(fmt.Sprint(m.Producer)), plain(fmt.Sprint(m.Destination)),
				plain(layout.Shortened(strings.Join(m.Beside, ", "), 200)),
			})
		}
	}
	if len(rows) > 0 {
		t.Fold(listed(rows, "", "took", "in its burst", "due, after the warm-up", "producer", "destination", "what happened meanwhile"), plain("the slowest messages that completed: of each burst the slowest"))
	}
}
