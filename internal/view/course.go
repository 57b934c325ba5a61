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
	"github.com/weirmq/weir/internal/slow"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Bounds of what is kept of a run's course, however long it was: a page must open.
const (
	mostBins    = 400 // of each series, see plot.Thin
	mostColumns = 180 // that tell values when they are pointed at
	mostSpans   = 40  // of phases
	mostKinds   = 20  // of events
	markBins    = 120 // events of a kind in one of them are one
	mostStalls  = 400 // of hosts
	mostSquares = 400 // seconds of a series that are host-limited
)

// A Course is how a run went: what its seconds counted and what happened in them,
// few enough to be drawn however long the run was.
type Course struct {
	origin   origin  // of all times in it, which are in s
	from, to float64 // of what is drawn
	seconds  int     // how many there were
	tracks   map[string]track
	spans    []plot.Span
	marks    []happening
	unmarked uint64 // events beyond the bounds
	hosts    []hostCourse
	stalls   []stall              // of hosts
	limited  map[string][]float64 // by track: instants at which the generator's own lateness is over half of it
	mosaics  map[string]*heatmap  // by direction; none where there is no interval log
}

// A track is one figure over time.
type track struct {
	points []plot.Point
	ranges [][2]float64 // lowest and highest of each column; NaN where there is none
}

// A stall is a time in which the host did not wake a thread that only slept.
type stall struct{ at, length float64 } // s

// A happening is an event, or several of a kind that lie close together.
type happening struct {
	at         float64 // s, of the first
	kind, text string
	count      uint64
}

// NewCourse draws on the intervals of r, which may hold only the first of them, and on the other files of its
// folder dir, where they are there: events.jsonl, host.jsonl, and intervals.hlog for the
// lateness and the blocking of each second. The error is about one of those files;
// the course is then of the rest, and never nil. It is nil for a result without
// intervals.
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
	c.mosaics = mosaics
	lost := c.happened(saved.Events())
	if errors.Is(lost, os.ErrNotExist) {
		lost = nil
	}
	unread := c.sampled(saved.Samples())
	if errors.Is(unread, os.ErrNotExist) { // the host did not tell, or an older weir wrote the folder
		unread = nil
	}
	return c, errors.Join(err, lost, unread)
}

// newCourse is of the intervals, and of what else was recorded in them.
func newCourse(o origin, intervals []result.Interval, others map[string][]plot.Point, until float64) *Course {
	last := len(intervals) - 1
	begins := func(i int) float64 { return intervals[i].TS - float64(o)/1e9 }
	c := &Course{origin: o, from: max(o.seconds(0), begins(0)), seconds: len(intervals), tracks: map[string]track{}}
	c.to = max(begins(last), until, c.from)
	if until <= begins(last) { // how long the last was is not known: as the one before it
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
			if length >= 0.25 { // what is cut shorter has too few messages for a rate
				put(name, float64(n)/length)
			} else {
				put(name, math.NaN())
			}
		}
		rate("sent", in.Sent)
		rate("confirmed", in.Confirmed)
		rate("received", in.Received)
		raw["backlog"] = append(raw["backlog"], plot.Point{X: to, Y: float64(in.Backlog)}) // whereAt the end of it
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

// limit finds the seconds in which the generator's own lateness is over half of a
// response, each at the same percentile.
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

// lay makes tracks of those points that tell anything.
func (c *Course) lay(raw map[string][]plot.Point) {
	for name, points := range raw {
		if slices.ContainsFunc(points, func(p plot.Point) bool { return !math.IsNaN(p.Y) }) {
			c.tracks[name] = track{plot.Thin(points, mostBins), c.ranges(points)}
		}
	}
}

// A pointOf is one percentile of an interval, NaN where there is none.
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

// column is the part that an instant lies in.
func (c *Course) column(at float64) int {
	n := float64(c.columns())
	part := (at - c.from) / (c.to - c.from) * n
	if !(part > 0) {
		return 0
	}
	return int(min(part, n-1))
}

// ranges are the lowest and the highest of points in each column.
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

// censoredEnd ends the tags of lines of messages that did not complete.
const censoredEnd = ".censored"

// own reads the lateness and the blocking of each interval from an interval log, all its
// latencies in parts of the time, and until when it reaches, in s since the origin.
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
	open := map[string]*result.Line{} // of the interval that is being read
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
		if !strings.HasSuffix(l.Tag, censoredEnd) { // that is of the whole run
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

// happened takes the events of the run. What begins a phase is not an event on a page
// that shades it.
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
		if e.Kind == slow.Hiccup && e.DurationNS > 0 && len(c.stalls) < mostStalls {
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
		if i, ok := at[where]; ok {
			c.marks[i].count += n
			continue
		}
		at[where] = len(c.marks)
		c.marks = append(c.marks, happening{s, e.Kind, layout.Shortened(e.Text, 300), n})
	}
	slices.SortStableFunc(c.marks, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	return failed
}
