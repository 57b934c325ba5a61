package index

import (
	"path"

	"github.com/weirmq/weir/result"
)

// several stands for values that differ in a group.
const several = "several"

// grouped returns rows in which one stands for the runs of a series, and a search or a suite for the runs below it.
// The rows of the group open follow its own.
func grouped(found []*entry, open string) []*Row {
	above := map[string]bool{} // folders of searches and suites
	for _, e := range found {
		if !e.Row.Kind.Runs() {
			above[e.Row.Dir] = true
		}
	}
	keyOf := func(r *Row) string {
		if !r.Kind.Runs() {
			return r.Dir
		}
		for up := path.Dir(r.Dir); up != "."; up = path.Dir(up) {
			if above[up] {
				return up
			}
		}
		if r.Repeat > 0 {
			return path.Dir(r.Dir) + "/*/" + r.Scenario
		}
		return ""
	}
	members := map[string][]*Row{}
	for _, e := range found {
		if k := keyOf(&e.Row); k != "" && e.Row.Kind.Runs() {
			members[k] = append(members[k], &e.Row)
		}
	}
	out := make([]*Row, 0, len(found))
	begun := map[string]bool{}
	for _, e := range found {
		k := keyOf(&e.Row)
		all := members[k]
		switch {
		case k == "", len(all) < 2 && !above[k]:
			out = append(out, &e.Row)
			continue
		case above[k] && e.Row.Kind.Runs(), begun[k]:
			continue
		}
		begun[k] = true
		head := e.Row
		if !above[k] {
			head = together(all)
		}
		head.Group, head.Members = k, len(all)
		out = append(out, &head)
		for _, r := range all {
			if k == open {
				inside := *r
				inside.Group = k
				out = append(out, &inside)
			}
		}
	}
	return out
}

// together is the row of a series: medians of figures, sums of counts, the worst verdict.
func together(all []*Row) Row {
	sum := *all[0]
	sum.Dir, sum.Name, sum.Repeat = path.Dir(sum.Dir), sum.Scenario, 0
	var offered, delivered []float64
	var p50, p99, p999 []result.Value
	sum.Lost, sum.Failed = 0, 0
	for _, r := range all {
		for _, x := range []struct {
			of  *string
			own string
		}{{&sum.Driver, r.Driver}, {&sum.Server, r.Server}, {&sum.Host, r.Host}, {&sum.Guarantee, r.Guarantee}, {&sum.Mode, r.Mode}} {
			if *x.of != x.own {
				*x.of = several
			}
		}
		if r.badness() > sum.badness() {
			sum.Kind, sum.Status, sum.Wrong = r.Kind, r.Status, r.Wrong
		}
		if order := map[string]int{string(result.Pass): 1, string(result.Undecided): 2, string(result.Fail): 3}; order[r.SLO] > order[sum.SLO] {
			sum.SLO = r.SLO
		}
		if r.Started.After(sum.Started) {
			sum.Started = r.Started
		}
		sum.Lost += r.Lost
		sum.Failed += r.Failed
		if r.Kind != Ended || r.Wrong != "" {
			continue
		}
		if r.Family != sum.Family {
			sum.Family = several
		}
		offered, delivered = appendKnown(offered, r.Rate), appendKnown(delivered, r.Received)
		p50, p99, p999 = appendKnown(p50, r.P50), appendKnown(p99, r.P99), appendKnown(p999, r.P999)
	}
	rate := func(of []float64) *float64 {
		values := make([]result.Value, len(of))
		for i, v := range of {
			values[i] = result.Exactly(v)
		}
		m := median(values)
		if m == nil {
			return nil
		}
		v, _ := m.Least()
		return &v
	}
	sum.Rate, sum.Received = rate(offered), rate(delivered)
	sum.P50, sum.P99, sum.P999 = median(p50), median(p99), median(p999)
	if sum.Family == several { // percentiles of different things have no median
		sum.P50, sum.P99, sum.P999 = nil, nil, nil
	}
	return sum
}

func appendKnown[T any](all []T, v *T) []T {
	if v == nil {
		return all
	}
	return append(all, *v)
}

// median is nil if there are no values.
func median(values []result.Value) *result.Value {
	if len(values) == 0 {
		return nil
	}
	m, _, _ := result.Spread(values)
	return &m
}
