package scenario

import (
	"time"

	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/schedule"
)

// A Search describes how weir capacity finds the highest rate that meets the objectives. Zero or nil
// means not given.
type Search struct {
	Most      schedule.Rate // upper limit of the rates probed
	Precision float64       // width of the interval relative to its lower end
	Retests   *int          // for each end
	Probes    int           // maximum number
	Longest   time.Duration // length of a probe
	Curve     int           // points of the latency-over-rate curve
	Over      Over          // a separate search for each of its values
	Target    schedule.Rate // a rate for which to find the required number
}

// Given reports whether the scenario configures a search.
func (s Search) Given() bool {
	return s.Most != 0 || s.Precision != 0 || s.Retests != nil || s.Probes != 0 || s.Longest != 0 || s.Curve != 0 || s.Over.Of != "" || s.Target != 0
}

// Over is the count that is varied, and its values.
type Over struct {
	Of     string // producers, consumers, partitions, destinations or nodes; "": none
	Values []int
}

// Path returns the key that is varied.
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

// overs are the counts over which a search can be repeated.
var overs = []string{"producers", "consumers", "partitions", "destinations", overNodes}

// over is a mapping from one of overs to its numbers.
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

// narrow is the required width of an interval.
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

// optional is k for a value that may be omitted.
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
