package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

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
		c.counts = recent(c.counts, countedOf(x), mostPoints)
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
		line, ok := stages[e.Text]
		if e.Kind != "phase" || !ok {
			line = view.EventLine(e.Kind, e.Text)
		}
		if line == "" {
			c.mu.Unlock()
			continue
		}
		text := eventText{T: float64(e.TNS) / 1e9, Kind: layout.Printable(cutTo(e.Kind, 40)), Text: layout.Printable(cutTo(line, 300)), N: max(1, e.Count)}
		if e.Kind == "injected" {
			text.Name = layout.Printable(cutTo(e.Text, 24))
		}
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
