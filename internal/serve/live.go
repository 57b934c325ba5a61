package serve

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/measure"
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
	if going != "" && dir == going && err != nil { // of several runs the one that goes on, if there is one
		l, listErr := s.o.Index.List(r.Context(), index.Query{Below: dir, Kinds: []index.Kind{index.Unended}, Most: 1})
		if listErr != nil {
			return answer{}, listErr
		}
		if len(l.Rows) == 0 {
			a, err := s.frame(frame{Title: "The run in " + dir + " begins", More: "/start", MoreText: "What weir says"})
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
			parts = append(parts, "faults "+x.Value)
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
	N    uint64  `json:"n"` // times
}

// A news is one update for a reader.
type news struct {
	Points []point     `json:"points,omitempty"`
	Counts []counted   `json:"counts,omitempty"`
	Kept   []objective `json:"objectives,omitempty"`
	Events []eventText `json:"events,omitempty"`
	Host   *busyness   `json:"host,omitempty"`
	From   *float64    `json:"from,omitempty"` // start of the measured window, the zero of time
	Ended  bool        `json:"ended,omitempty"`
}

func (n *news) empty() bool {
	return len(n.Points) == 0 && len(n.Counts) == 0 && len(n.Kept) == 0 && len(n.Events) == 0 && n.Host == nil && n.From == nil && !n.Ended
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
	beat := time.Now()
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

// A course reads the files of one run for one reader.
type course struct {
	index    *index.Index
	dir      string
	promised []promised

	mu     sync.Mutex
	points []point // not sent yet
	counts []counted
	kept   []objective
	events []eventText
	host   *busyness
	from   *float64
}

// take returns what is new.
func (c *course) take() news {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := news{Points: c.points, Counts: c.counts, Kept: c.kept, Events: c.events, Host: c.host, From: c.from}
	c.points, c.counts, c.kept, c.events, c.host, c.from = nil, nil, nil, nil, nil, nil
	return n
}

// recent appends to a list that keeps the last most items.
func recent[T any](list []T, x T, most int) []T {
	if list = append(list, x); len(list) > most {
		list = slices.Clone(list[len(list)-most:])
	}
	return list
}

// directions are the families of points; the first one present is shown.
var directions = []string{"e2e", "rtt", "send"}

// intervals reads intervals.hlog. Lines with one end form a point; it is sent when a line with a later end
// arrives, or the file ends.
func (c *course) intervals(ctx context.Context) {
	f, err := c.tail(ctx, result.FileIntervals)
	if err != nil {
		return
	}
	defer f.close()
	log := result.NewLogReader(f)
	sum, from, to, phase := map[string]*measure.Counts{}, int64(0), int64(-1), ""
	tell := func() {
		if to < 0 || len(sum) == 0 {
			return
		}
		p := pointOf(sum, from, to, phase)
		c.mu.Lock()
		c.points = recent(c.points, p, mostPoints)
		c.kept = c.soFar()
		c.mu.Unlock()
		clear(sum)
	}
	for {
		line, err := log.NextOf(func(tag string) bool { _, _, ok := familyOf(tag); return ok })
		if errors.Is(err, result.ErrMalformed) {
			continue
		}
		if err != nil {
			tell()
			return
		}
		family, ph, ok := familyOf(line.Tag)
		if !ok || line.Counts == nil {
			continue
		}
		if line.To != to {
			tell()
			from, to = line.From, line.To
		}
		phase = ph
		for i := range c.promised {
			if x := &c.promised[i]; x.family == family && ph == measure.Measure.String() {
				x.sum.Merge(line.Counts)
			}
		}
		if sum[family] == nil {
			sum[family] = new(measure.Counts)
		}
		sum[family].Merge(line.Counts)
	}
}

// A promised is an objective about a percentile, and the samples for it.
type promised struct {
	judge.Objective
	text    string // as in the scenario
	family  string
	percent float64
	sum     *measure.Counts
}

// percentilesIn returns the objectives about percentiles. The others are judged at the end.
func percentilesIn(texts []string) (all []promised) {
	for _, text := range texts {
		o, err := judge.ParseObjective(text)
		if err != nil {
			continue
		}
		of, service := o.Latency()
		if p, ok := o.Percentile(); ok {
			x := promised{o, text, of + ".response", p, new(measure.Counts)}
			if service {
				x.family = of + ".service"
			}
			all = append(all, x)
		}
	}
	return all
}

// soFar returns how the objectives stand that have samples.
func (c *course) soFar() (all []objective) {
	for _, x := range c.promised {
		if x.sum.Total() > 0 {
			ns := x.sum.Percentile(x.percent)
			all = append(all, objective{x.text, ns, x.Met(float64(ns))})
		}
	}
	return all
}

// counted reads live.jsonl.
func (c *course) counted(ctx context.Context) {
	f, err := c.tail(ctx, result.FileLive)
	if err != nil {
		return
	}
	defer f.close()
	for x, err := range result.AllProgress(f) {
		if err != nil {
			return
		}
		c.mu.Lock()
		c.counts = recent(c.counts, counted{float64(x.TNS) / 1e9, x.Scheduled, x.Confirmed, x.Received, x.Failed, x.Dropped, x.Missed, x.Backlog}, mostPoints)
		c.mu.Unlock()
	}
}

// familyOf splits a tag such as send.service.measure. ok is false for anything but services and responses
// of a direction.
func familyOf(tag string) (family, phase string, ok bool) {
	i := strings.LastIndexByte(tag, '.')
	if i < 0 {
		return "", "", false
	}
	direction, name, _ := strings.Cut(tag[:i], ".")
	return tag[:i], tag[i+1:], slices.Contains(directions, direction) && (name == "service" || name == "response")
}

func pointOf(sum map[string]*measure.Counts, from, to int64, phase string) point {
	p := point{T: float64(to) / 1e9, Phase: phase}
	rate := func(families ...string) *float64 {
		for _, f := range families {
			if c := sum[f]; c != nil && to > from {
				perS := float64(c.Total()) * 1e9 / float64(to-from)
				return &perS
			}
		}
		return nil
	}
	p.Sent, p.Received = rate("send.service", "send.response"), rate("e2e.service", "e2e.response", "rtt.service", "rtt.response")
	for _, name := range []string{"response", "service"} {
		for _, d := range directions {
			c := sum[d+"."+name]
			if c == nil || c.Total() == 0 {
				continue
			}
			p50, p99 := c.Percentile(50), c.Percentile(99)
			p.Of, p.P50, p.P99 = d+" "+name, &p50, &p99
			return p
		}
	}
	return p
}

// happened reads events.jsonl.
func (c *course) happened(ctx context.Context) {
	f, err := c.tail(ctx, result.FileEvents)
	if err != nil {
		return
	}
	defer f.close()
	for e, err := range result.Events(f) {
		if err != nil {
			return
		}
		c.mu.Lock()
		if e.Kind == "phase" && e.Text == measure.Measure.String() {
			c.from = new(float64(e.TNS) / 1e9)
		}
		text := eventText{float64(e.TNS) / 1e9, layout.Printable(cutTo(e.Kind, 40)), layout.Printable(cutTo(e.Text, 300)), max(1, e.Count)}
		if n := len(c.events); n > 0 && e.Kind == "hiccup" && c.events[n-1].Kind == e.Kind { // of many in a row the last one
			text.N += c.events[n-1].N
			c.events = c.events[:n-1]
		}
		c.events = recent(c.events, text, mostEvents)
		c.mu.Unlock()
	}
}

func cutTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// sampled reads host.jsonl.
func (c *course) sampled(ctx context.Context) {
	f, err := c.tail(ctx, result.FileHost)
	if err != nil {
		return
	}
	defer f.close()
	for x, err := range result.Samples(f) {
		if err != nil {
			return
		}
		if busy, ok := busyOf(&x.Host); ok && x.Agent == "" {
			c.mu.Lock()
			c.host = &busyness{float64(x.ToNS) / 1e9, busy}
			c.mu.Unlock()
		}
	}
}

// busyOf is the busy fraction of all cores.
func busyOf(h *host.HostSample) (float64, bool) {
	if h.UserS == nil || h.SystemS == nil || h.IdleS == nil {
		return 0, false
	}
	worked, idle := *h.UserS+*h.SystemS, *h.IdleS
	if h.StealS != nil {
		worked += *h.StealS
	}
	if h.IOWaitS != nil {
		idle += *h.IOWaitS
	}
	if worked+idle <= 0 {
		return 0, false
	}
	return worked / (worked + idle), true
}
