package view

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Limits on what is kept of a run's course, whatever its length, so that browsers can open the page.
const (
	mostBins    = 80  // per series, see plot.Thin
	mostColumns = 60  // with values on hover
	mostSpans   = 40  // of phases
	mostKinds   = 20  // of events
	markBins    = 120 // events of a kind in one bin are merged
	mostStalls  = 400 // of hosts
	mostSquares = 400 // seconds of a series that are mostly lateness
)

// A Course is a run over time: what each second counted and which events happened, reduced so that a run of
// any length can be drawn.
type Course struct {
	origin   origin // of all times here, which are in s
	promised []result.SLO
	closed   bool    // its times are those of service
	from, to float64 // drawn range
	seconds  int     // their number
	tracks   map[string]track
	spans    []plot.Span
	marks    []happening
	unmarked uint64 // events over the limits
	hosts    []hostCourse
	stalls   []stall              // of hosts
	limited  map[string][]float64 // by track: instants where over half of the latency is the generator's own lateness
	mosaics  map[string]*heatmap  // by direction; empty without an interval log
}

// A track is one figure over time.
type track struct {
	points []plot.Point
	ranges [][2]float64 // lowest and highest of each column; NaN if none
}

// A stall is a time in which the host did not wake a sleeping thread.
type stall struct{ at, length float64 } // s

// A happening is an event, or several of a kind close together.
type happening struct {
	at         float64 // s, of the first one
	kind, text string
	count      uint64
	longest    int64 // ns; text is that of the longest
}

// NewCourse builds the course of r from its intervals, of which r itself may hold only the first, and from
// other files of its folder dir if they exist: events.jsonl, host.jsonl, and intervals.hlog for the
// lateness and blocking of each second. The error is about one of those files; the course then covers the
// rest. It is nil only for a result without intervals.
func NewCourse(r *result.Result, intervals []result.Interval, dir string) (*Course, error) {
	if len(intervals) == 0 {
		return nil, nil
	}
	saved := &result.Saved{Dir: dir}
	origin := originOf(r)
	points, mosaics, until, err := own(filepath.Join(dir, result.FileIntervals), origin)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	c := newCourse(origin, intervals, points, until)
	c.mosaics, c.promised, c.closed = mosaics, r.Verdict.SLO, r.Run.Loop == result.LoopClosed
	lost := c.happened(saved.Events())
	if errors.Is(lost, os.ErrNotExist) {
		lost = nil
	}
	unread := c.sampled(saved.Samples())
	if errors.Is(unread, os.ErrNotExist) { // the host was not recorded, or an older weir wrote the folder
		unread = nil
	}
	return c, errors.Join(err, lost, unread)
}

// newCourse builds a course from the intervals and from other values recorded in them.
func newCourse(o origin, intervals []result.Interval, others map[string][]plot.Point, until float64) *Course {
	last := len(intervals) - 1
	begins := func(i int) float64 { return intervals[i].TS - float64(o)/1e9 }
	c := &Course{origin: o, from: max(o.seconds(0), begins(0)), seconds: len(intervals), tracks: map[string]track{}}
	c.to = max(begins(last), until, c.from)
	if until <= begins(last) { // the length of the last is not known: take the one before it
		c.to += 1
		if last > 0 {
			c.to = begins(last) + max(0, begins(last)-begins(last-1))
		}
	}
	raw := map[string][]plot.Point{}
	for i, in := range intervals {
		from, to := begins(i), c.to
		if i < last {
			to = begins(i + 1)
		}
		length := to - from
		put := func(name string, y float64) {
			raw[name] = append(raw[name], plot.Point{X: from, Wide: max(0, length), Y: y})
		}
		rate := func(name string, n uint64) {
			if length >= 0.25 { // shorter ones have too few messages for a rate
				put(name, float64(n)/length)
			} else {
				put(name, math.NaN())
			}
		}
		rate("sent", in.Sent)
		rate("confirmed", in.Confirmed)
		rate("received", in.Received)
		put("backlog", float64(in.Backlog)) // at its end
		rtt := result.Points{}
		if in.RTT != nil {
			rtt = *in.RTT
		}
		for name, p := range map[string]result.Points{"send": in.Send, "e2e": in.E2E, "rtt": rtt} {
			for _, x := range pointsOf(p) {
				put(name+"."+x.name, x.y)
			}
		}
		if n := len(c.spans); n > 0 && c.spans[n-1].Text == in.Phase {
			c.spans[n-1].To = to
		} else if n < mostSpans {
			c.spans = append(c.spans, plot.Span{From: from, To: to, Text: in.Phase})
		}
	}
	for name, points := range others {
		raw[name] = points
	}
	c.limit(raw)
	c.lay(raw)
	return c
}

// limit finds the seconds in which over half of a response is the generator's own lateness, both at the
// same percentile.
func (c *Course) limit(raw map[string][]plot.Point) {
	late := raw["lateness.p99"]
	c.limited = map[string][]float64{}
	for _, of := range directions {
		name, k := of+".p99", 0
		for _, p := range raw[name] {
			for k < len(late)-1 && late[k+1].X <= p.X+0.5 {
				k++
			}
			if k < len(late) && math.Abs(late[k].X-p.X) <= 0.5 && late[k].Y > p.Y/2 && len(c.limited[name]) < mostSquares {
				c.limited[name] = append(c.limited[name], p.X)
			}
		}
	}
}

// lay makes tracks of the series that have values.
func (c *Course) lay(raw map[string][]plot.Point) {
	for name, points := range raw {
		if slices.ContainsFunc(points, func(p plot.Point) bool { return !math.IsNaN(p.Y) }) {
			c.tracks[name] = track{plot.Thin(points, mostBins), c.ranges(points)}
		}
	}
}

// A pointOf returns one percentile of an interval, NaN if there is none.
type pointOf struct {
	name string
	y    float64
}

func pointsOf(p result.Points) []pointOf {
	out := make([]pointOf, 0, 4)
	for _, x := range []struct {
		name string
		ns   *int64
	}{{"p50", p.P50NS}, {"p99", p.P99NS}, {"p99.9", p.P999NS}, {"max", p.MaxNS}} {
		y := math.NaN()
		if x.ns != nil {
			y = float64(*x.ns)
		}
		out = append(out, pointOf{x.name, y})
	}
	return out
}

func (c *Course) columns() int { return min(c.seconds, mostColumns) }

// column is the column that an instant lies in.
func (c *Course) column(at float64) int {
	n := float64(c.columns())
	part := (at - c.from) / (c.to - c.from) * n
	if !(part > 0) {
		return 0
	}
	return int(min(part, n-1))
}

// ranges returns the lowest and the highest value of each column.
func (c *Course) ranges(points []plot.Point) [][2]float64 {
	out := make([][2]float64, c.columns())
	for i := range out {
		out[i] = [2]float64{math.NaN(), math.NaN()}
	}
	for _, p := range points {
		if math.IsNaN(p.Y) {
			continue
		}
		r := &out[c.column(p.X+p.Wide/2)]
		if math.IsNaN(r[0]) {
			*r = [2]float64{p.Y, p.Y}
		}
		r[0], r[1] = min(r[0], p.Y), max(r[1], p.Y)
	}
	return out
}

// censoredEnd is the suffix of the tags for messages that did not complete.
const censoredEnd = ".censored"

// own reads the lateness and blocking of each interval, and heat maps of all latencies, from an interval
// log. reaches is where the log ends, in s since the origin.
func own(path string, o origin) (points map[string][]plot.Point, mosaics map[string]*heatmap, until float64, err error) {
	f, err := userfile.Open(path)
	if errors.Is(err, userfile.ErrNotRegular) {
		return nil, nil, math.Inf(-1), &result.FileError{Path: path, Err: fmt.Errorf("%w: it is not a regular file", result.ErrNotResult)}
	}
	if err != nil {
		return nil, nil, math.Inf(-1), err
	}
	defer func() { _ = f.Close() }()
	kinds := map[string]string{}
	for _, p := range []measure.Phase{measure.WarmUp, measure.Measure} {
		kinds[result.Tag(measure.SendLateness, p)] = "lateness"
		kinds[result.Tag(measure.SendBlocked, p)] = "blocked"
	}
	tiles := newTiles()
	points, until = map[string][]plot.Point{}, math.Inf(-1)
	open := map[string]*result.Line{} // of the current interval
	flush := func(name string) {
		if l := open[name]; l != nil {
			for _, x := range pointsOf(judge.Points(l.Counts)) {
				key := name + "." + x.name
				points[key] = append(points[key], plot.Point{X: o.seconds(l.From), Wide: max(0, float64(l.To-l.From)/1e9), Y: x.y})
			}
		}
	}
	for log := result.NewLogReader(f); ; {
		l, e := log.NextOf(func(tag string) bool { return kinds[tag] != "" || tiles.want(tag) })
		if e != nil {
			if !errors.Is(e, io.EOF) {
				err = e
			}
			break
		}
		if !strings.HasSuffix(l.Tag, censoredEnd) { // those cover the whole run
			until = max(until, o.seconds(l.To))
		}
		tiles.take(l)
		name := kinds[l.Tag]
		if name == "" {
			continue
		}
		if last := open[name]; last != nil && last.From == l.From {
			last.Counts.Merge(l.Counts)
			continue
		}
		flush(name)
		open[name] = l
	}
	flush("lateness")
	flush("blocked")
	return points, tiles.done(), until, err
}

// happened adds the events of the run. The start of a phase is not shown as an event, since the page shades
// the phases.
func (c *Course) happened(events iter.Seq2[result.Event, error]) error {
	type place struct {
		kind string
		bin  int
	}
	at := map[place]int{}
	kinds := map[string]bool{}
	var failed error
	for e, err := range events {
		if err != nil {
			failed = err
			break
		}
		if e.Kind == "phase" {
			continue
		}
		if e.Kind == outliers.Hiccup && e.DurationNS > 0 && len(c.stalls) < mostStalls {
			c.stalls = append(c.stalls, stall{c.origin.seconds(e.TNS), float64(e.DurationNS) / 1e9})
		}
		n := max(1, e.Count)
		if kinds[e.Kind] = true; len(kinds) > mostKinds {
			delete(kinds, e.Kind)
			c.unmarked += n
			continue
		}
		s := c.origin.seconds(e.TNS)
		where := place{e.Kind, int(max(0, min(markBins, (s-c.from)/(c.to-c.from)*markBins)))}
		if e.Kind == outliers.Hiccup && c.to-c.from < markBins { // a row a second, with the longest
			where.bin = int(math.Floor(s))
		}
		text := e.Text
		if e.Kind == "gc" {
			text, _ = collected(text)
		}
		if i, ok := at[where]; ok {
			m := &c.marks[i]
			if m.count += n; e.DurationNS > m.longest {
				m.longest, m.text = e.DurationNS, layout.Shortened(text, 300)
			}
			continue
		}
		at[where] = len(c.marks)
		c.marks = append(c.marks, happening{s, e.Kind, layout.Shortened(text, 300), n, e.DurationNS})
	}
	slices.SortStableFunc(c.marks, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	return failed
}
