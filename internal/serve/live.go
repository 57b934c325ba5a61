package serve

import (
	"bufio"
	"context"
	_ "embed" // the script
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Limits of following runs.
const (
	mostWatching = 16                     // readers at once
	updateEvery  = 250 * time.Millisecond // between a reader's updates: at most four a second
	betweenLooks = 200 * time.Millisecond // between checks of the end of a file
	mostPoints   = 600                    // latest points sent at once
	mostEvents   = 50                     // likewise

	mostObjectives = 20
	betweenBeats   = 15 * time.Second // between keep-alives
	betweenChecks  = 5 * time.Second  // of whether the run's files still change
	longestCounts  = 4 << 10          // bytes that hold the last line of live.jsonl
)

//go:embed live.js
var liveScript string

// live is the page of a run in progress. Of a finished run it links to the report. It waits for the files of a run
// that a form has just started.
func (s *Server) live(r *http.Request) (answer, error) {
	if _, _, err := s.look.fresh(r.Context()); err != nil {
		return answer{}, s.unrooted(err)
	}
	dir := r.URL.Query().Get("dir")
	row, err := s.o.Index.Row(r.Context(), dir)
	going := s.o.Starter.folder()
	if going != "" && dir == going && err != nil { // of several runs the one in progress, if there is one
		l, listErr := s.o.Index.List(r.Context(), index.Query{Below: dir, Kinds: []index.Kind{index.Unended}, Most: 1})
		if listErr != nil {
			return answer{}, listErr
		}
		if len(l.Rows) == 0 {
			a, err := s.frame(frame{Title: "The run in " + dir + " begins", Begins: true, Said: s.o.Starter.said()})
			a.refresh = betweenWaits
			return a, err
		}
		row, err = l.Rows[0], nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", dir, err)
	}
	v := &liveView{Row: viewOf(row), Stops: going != "" && (row.Dir == going || strings.HasPrefix(row.Dir, going+"/"))}
	q := url.Values{"dir": {row.Dir}}.Encode()
	v.Follow, v.Report = "/follow?"+q, "/run?"+q
	v.planned, v.Plan = s.planned(row.Dir)
	v.Objectives = v.texts
	if c, ok := s.latest(row.Dir); ok {
		v.SoFar = c.words(v.WarmUpS)
	}
	return s.frame(frame{Title: "Run " + row.Name, Live: v})
}

// reported leads from the live page of a run that has ended to its report.
func (s *Server) reported(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		dir := r.URL.Query().Get("dir")
		if row, err := s.o.Index.Row(r.Context(), dir); err == nil && s.o.Index.Has(row.Dir, result.FileResult) {
			http.Redirect(w, r, "/run?"+url.Values{"dir": {row.Dir}}.Encode(), http.StatusSeeOther)
			return
		}
		next(w, r)
	}
}

// betweenWaits is between looks for the files of a run that has just been started.
const betweenWaits = 2 * time.Second

// planned is what a run's scenario says of its course.
type planned struct {
	WarmUpS, LengthS float64 // of the warm-up, and of the measured window; 0: unknown
	texts            []string
}

// planned reads how long a run takes and its objectives; and what is offered and which faults are due, in words.
func (s *Server) planned(dir string) (p planned, plan string) {
	f, err := s.o.Index.File(dir, result.FileScenario)
	if err != nil {
		return p, ""
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostScenario))
	if err != nil {
		return p, ""
	}
	var parts []string
	for _, x := range compare.Settings(b, func(s string) string { return layout.Printable(cutTo(s, 200)) }) {
		switch x.Name {
		case "measure":
			p.LengthS = secondsOf(x.Value)
			parts = append(parts, "measures "+x.Value)
		case "warmup":
			p.WarmUpS = secondsOf(x.Value)
			parts = append(parts, "warms up for "+x.Value)
		case "load.rate":
			parts = append(parts, "offers "+x.Value)
		case "slo":
			p.texts = strings.Split(strings.Trim(x.Value, "[]"), ", ")
			p.texts = p.texts[:min(len(p.texts), mostObjectives)]
		case "faults":
			parts = append(parts, "faults: "+strings.Trim(x.Value, "[]"))
		}
	}
	return p, strings.Join(parts, ", ")
}

// secondsOf is 0 for a text that is no duration.
func secondsOf(text string) float64 {
	d, err := quantity.Duration(text)
	if err != nil {
		return 0
	}
	return d.Seconds()
}

// A liveView is the page of a running run.
type liveView struct {
	Row            rowView
	Follow, Report string // URLs
	Stops          bool   // a form started it, and can stop it
	Plan           string // what is offered and disturbed, in words
	SoFar          string // how far it is, for browsers without scripts; "": not known
	Objectives     []string
	planned
}

// A point is a second of a run, or what was recorded as one. Missing figures are absent.
type point struct {
	T        float64  `json:"t"` // end, s since the epoch
	Phase    string   `json:"phase"`
	Sent     *float64 `json:"sent,omitempty"`     // confirmed per second
	Received *float64 `json:"received,omitempty"` // first deliveries or replies per second
	Of       string   `json:"of,omitempty"`       // the family of p50 and p99
	P50      *int64   `json:"p50,omitempty"`      // ns
	P99      *int64   `json:"p99,omitempty"`
}

// A counted is how far the run is at an instant. Counts are since its start.
type counted struct {
	T       float64 `json:"t"`
	Offered uint64  `json:"offered"`
	Sent    uint64  `json:"sent"` // confirmed
	Came    uint64  `json:"received"`
	Failed  uint64  `json:"failed"`
	Dropped uint64  `json:"dropped"`
	Lost    uint64  `json:"lost"` // as far as is known before the end
	Backlog uint64  `json:"backlog"`
}

// An objective is how a percentile stands, of the messages of the measured window so far.
type objective struct {
	Text string `json:"text"`
	NS   int64  `json:"ns"`
	Kept bool   `json:"kept"`
}

// A busyness is the host's load.
type busyness struct {
	T    float64 `json:"t"`
	Busy float64 `json:"busy"` // fraction of all cores
}

// An eventText is an event in words.
type eventText struct {
	T    float64 `json:"t"`
	Kind string  `json:"kind"`
	Text string  `json:"text"`
	Name string  `json:"name,omitempty"` // of a mark in the charts
	N    uint64  `json:"n"`              // times
}

// A news is one update for a reader.
type news struct {
	Points []point     `json:"points,omitempty"`
	Counts []counted   `json:"counts,omitempty"`
	Kept   []objective `json:"objectives,omitempty"`
	Events []eventText `json:"events,omitempty"`
	Host   *busyness   `json:"host,omitempty"`
	From   *float64    `json:"from,omitempty"`  // start of the measured window, the zero of time
	Quiet  float64     `json:"quiet,omitempty"` // s since the last change of its files, if that is long
	Ended  bool        `json:"ended,omitempty"`
}

func (n *news) empty() bool {
	return len(n.Points) == 0 && len(n.Counts) == 0 && len(n.Kept) == 0 && len(n.Events) == 0 && n.Host == nil && n.From == nil && n.Quiet == 0 && !n.Ended
}

// follow streams what is new in a run until it ends. Everything is from the run's folder: a reader that
// reconnects gets all of it again.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	dir := r.URL.Query().Get("dir")
	if _, err := s.o.Index.Row(r.Context(), dir); err != nil {
		http.Error(w, "weir serve: "+err.Error(), http.StatusNotFound)
		return
	}
	select {
	case s.watching <- struct{}{}:
		defer func() { <-s.watching }()
	default:
		http.Error(w, fmt.Sprintf("weir serve: %d pages follow runs already", mostWatching), http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	p, _ := s.planned(dir)
	c := &course{index: s.o.Index, dir: dir, promised: percentilesIn(p.texts)}
	var readers sync.WaitGroup
	readers.Go(func() { c.counted(ctx) })
	readers.Go(func() { c.intervals(ctx) })
	readers.Go(func() { c.happened(ctx) })
	readers.Go(func() { c.sampled(ctx) })
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	defer func() { cancel(); <-done }()

	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tell := func(text string) bool {
		if out.SetWriteDeadline(time.Now().Add(patience)) != nil {
			return false
		}
		if _, err := io.WriteString(w, text); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	// A reader that reconnects must discard what it has drawn.
	if !tell("event: begin\ndata: {}\n\n") {
		return
	}
	tick := time.NewTicker(updateEvery)
	defer tick.Stop()
	beat, looked := time.Now(), time.Time{}
	for over := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-done:
			over = true
		case <-tick.C:
		}
		n := c.take()
		n.Ended = over
		if !over && time.Since(looked) > betweenChecks {
			looked = time.Now()
			changed := s.changed(dir)
			if changed.IsZero() {
				return // the folder is gone, which the browser learns when it asks again
			}
			if quiet := time.Since(changed); quiet > running {
				n.Quiet = quiet.Seconds()
			}
		}
		if n.empty() {
			if time.Since(beat) > betweenBeats {
				beat = time.Now()
				if !tell(": going on\n\n") {
					return
				}
			}
			continue
		}
		beat = time.Now()
		b, err := json.Marshal(n)
		if err != nil || !tell("data: "+string(b)+"\n\n") || over {
			return
		}
	}
}

// changed is when a file of a run last changed; zero if there is none.
func (s *Server) changed(dir string) (last time.Time) {
	for _, name := range []string{result.FileScenario, result.FileEnvironment, result.FileEvents, result.FileHost, result.FileIntervals, result.FileLive} {
		f, err := s.o.Index.File(dir, name)
		if err != nil {
			continue
		}
		if at, err := f.Stat(); err == nil && at.ModTime().After(last) {
			last = at.ModTime()
		}
		_ = f.Close() // only read
	}
	return last
}

// latest reads how far a run is by its files.
func (s *Server) latest(dir string) (last counted, ok bool) {
	f, err := s.o.Index.File(dir, result.FileLive)
	if err != nil {
		return last, false
	}
	defer func() { _ = f.Close() }()
	var in io.Reader = f
	if _, err := f.Seek(-longestCounts, io.SeekEnd); err == nil { // else it is shorter
		end := bufio.NewReader(f)
		_, _ = end.ReadString('\n') // part of a line
		in = io.MultiReader(strings.NewReader(fmt.Sprintf("{\"schema\": %q}\n", result.SchemaLive)), end)
	}
	for x, err := range result.AllProgress(in) {
		if err != nil {
			break
		}
		last, ok = countedOf(x), true
	}
	return last, ok
}

func countedOf(x result.Progress) counted {
	return counted{float64(x.TNS) / 1e9, x.Scheduled, x.Confirmed, x.Received, x.Failed, x.Dropped, x.Missed, x.Backlog}
}

// words says how far a run is, counted from the end of the warm-up.
func (c counted) words(warmUpS float64) string {
	s := fmt.Sprintf("At %.0f s: offered %s, confirmed %s, delivered %s, failed %s", math.Round(c.T-warmUpS)+0, quantity.Count(c.Offered), quantity.Count(c.Sent), quantity.Count(c.Came), quantity.Count(c.Failed))
	if c.Dropped > 0 {
		s += ", dropped " + quantity.Count(c.Dropped)
	}
	if c.Lost > 0 {
		return s + ", lost so far " + quantity.Count(c.Lost)
	}
	return s + ", none known to be lost"
}

// stages are the words for the phases of a run.
var stages = map[string]string{"warmup": "the warm-up begins", "measure": "the measured window begins", "drain": "the drain begins"}
