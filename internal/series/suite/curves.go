package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/result"
)

// distributions are those that a row can draw.
var distributions = [...]string{"send.response", "send.service", "e2e.response", "e2e.service", "rtt.response", "rtt.service"}

// distribution returns a distribution by name; nil if the run has none.
func distribution(l *result.Latency, name string) *result.Dist {
	switch name {
	case "send.response":
		return l.Send.Response
	case "send.service":
		return l.Send.Service
	case "e2e.response":
		return l.E2E.Response
	case "e2e.service":
		return l.E2E.Service
	case "rtt.response":
		return l.RTT.Response
	case "rtt.service":
		return l.RTT.Service
	}
	return nil
}

// drawnAt returns the percentiles of a curve, besides those that every result has: evenly spaced in each
// further nine, finer than a picture can show.
func drawnAt() (all []float64) {
	for i := 1; i < 100; i++ {
		all = append(all, float64(i))
	}
	for i := 991; i < 1000; i++ {
		all = append(all, float64(i)/10)
	}
	for i := 9991; i < 10_000; i++ {
		all = append(all, float64(i)/100)
	}
	return all
}

// Limits of what is drawn.
const (
	mostCurves   = 4
	mostChances  = 6
	mostRequests = 10_000
)

// curves parses a row's curves.
func (r *reader) curves(n *tree.Node, path string) []Curve {
	v := n.Field("curves")
	if v == nil {
		return nil
	}
	if v.Shape != tree.List || len(v.Items) == 0 || len(v.Items) > mostCurves {
		r.fault(v.At, tree.Join(path, "curves"), "does not fit (a list of 1 to %d)", mostCurves)
		return nil
	}
	var all []Curve
	for i, item := range v.Items {
		at := fmt.Sprintf("%s.curves[%d]", path, i)
		if !r.keys(item, at, "of", "as") {
			continue
		}
		c := Curve{Of: r.text(item, at, "of", true), As: r.text(item, at, "as", true)}
		if c.Of != "" && !slices.Contains(distributions[:], c.Of) {
			r.fault(item.At, at+".of", "%q is not a distribution (%s)", c.Of, strings.Join(distributions[:], ", "))
		}
		all = append(all, c)
	}
	return all
}

// chances parses the chances to draw.
func (r *reader) chances(n *tree.Node) (c Chances) {
	v := n.Field("chances")
	if v == nil || !r.keys(v, "chances", "percentiles", "requests") {
		return c
	}
	for _, text := range r.texts(v, "chances", "percentiles") {
		p, err := strconv.ParseFloat(text, 64)
		if err != nil || !(p > 0 && p < 100) {
			r.fault(v.At, "chances.percentiles", "%q does not fit (above 0 and below 100)", text)
			continue
		}
		c.Percentiles = append(c.Percentiles, p)
	}
	if len(c.Percentiles) == 0 || len(c.Percentiles) > mostChances {
		r.fault(v.At, "chances.percentiles", "does not fit (a list of 1 to %d)", mostChances)
	}
	var err error
	if c.Requests, err = strconv.Atoi(r.text(v, "chances", "requests", true)); err != nil || c.Requests < 2 || c.Requests > mostRequests {
		r.fault(v.At, "chances.requests", "does not fit (2 to %d)", mostRequests)
		c.Requests = 2
	}
	return c
}

// A Drawing is a curve of a run.
type Drawing struct {
	Of     string  `json:"of"`
	As     string  `json:"as"`
	Points []Point `json:"points"`
}

// A Point is a percentile of a curve.
type Point struct {
	P         float64 `json:"p"` // percent; 100: the largest of the run
	NS        int64   `json:"ns"`
	AtLeast   bool    `json:"at_least,omitempty"`
	Supported bool    `json:"supported"` // by enough samples
}

// drawings returns the curves of a row in a run.
func (row *Row) drawings(l *result.Latency) []Drawing {
	var all []Drawing
	for _, c := range row.Curves {
		d := Drawing{Of: c.Of, As: c.As, Points: []Point{}}
		if of := distribution(l, c.Of); of != nil {
			if of.MinNS != nil && len(of.Percentiles) > 0 {
				d.Points = append(d.Points, Point{P: 0, NS: *of.MinNS, Supported: true})
			}
			for _, p := range of.Percentiles {
				d.Points = append(d.Points, Point{P: p.P, NS: p.NS, AtLeast: p.AtLeast, Supported: p.Supported})
			}
		}
		all = append(all, d)
	}
	return all
}
