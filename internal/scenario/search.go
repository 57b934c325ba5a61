package scenario

import (
	"time"

	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/schedule"
)

// A Search is how weir capacity looks for the highest rate that keeps the objectives. What
// is zero or nil is not given.
type Search struct {
	Most      schedule.Rate // no rate above it is probed
	Precision float64       // of the interval, relative to its lower end
	Retests   *int          // of each end
	Probes    int           // at most
	Longest   time.Duration // of a probe
	Curve     int           // points of the latency against the rate
	Over      Over          // a search for each of its values
	Target    schedule.Rate // how many it takes to reach it is asked for
}

// Given reports whether the scenario says anything about a search.
func (s Search) Given() bool {
	return s.Most != 0 || s.Precision != 0 || s.Retests != nil || s.Probes != 0 || s.Longest != 0 || s.Curve != 0 || s.Over.Of != "" || s.Target != 0
}

// Over is what is varied, and the numbers that it takes.
type Over struct {
	Of     string // producers, consumers, partitions, destinations or nodes; "": nothing is
	Values []int
}

// Path is the key that is varied.
func (o Over) Path() string {
	if o.Of == overNodes {
		return "system.nodes"
	}
	return "topology." + o.Of
}

const (
	overNodes = "nodes"
	mostOver  = 20 // values
)

// overs are what a search can be repeated over.
var overs = []string{"producers", "consumers", "partitions", "destinations", overNodes}

// over is a mapping of one of overs to its numbers.
var over = func() kind[Over] {
	values := placed(several(count, mostOver, "has %d numbers (1 to %d)", "a list of whole numbers such as [1, 2, 4, 8]", true),
		func(o *Over) *[]int { return &o.Values })
	var branches []branch[Over]
	for _, name := range overs {
		branches = append(branches, branch[Over]{name: name, set: func(o *Over) { o.Of = name }, of: &values})
	}
	return choice("producers, consumers, partitions, destinations or nodes with a list of numbers, such as {consumers: [1, 2, 4, 8]}",
		func(o *Over) string { return o.Of }, branches...)
}()

// narrow is how narrow an interval must be.
var narrow = func() kind[float64] {
	k := share
	k.read = func(d *decoder, n *tree.Node, path string, into *float64) bool {
		v := *into
		if !share.read(d, n, path, &v) {
			return false
		}
		if v < 0.01 {
			d.fault(n.At, path, "%q does not fit (1%% to 100%%)", n.Text)
			return false
		}
		*into = v
		return true
	}
	return k
}()

// optional is k where it may be left out.
func optional[T any](k kind[T]) kind[*T] {
	return kind[*T]{
		words: k.words, schema: k.schema,
		read: func(d *decoder, n *tree.Node, path string, into **T) bool {
			v := new(T)
			if !k.read(d, n, path, v) {
				return false
			}
			*into = v
			return true
		},
		text: func(v **T) string { return k.text(*v) },
	}
}
