package view

import (
	"encoding/base64"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Limits on the latencies over time in a page, whatever the length of the run: the number of time parts,
// and the bytes of each direction. Parts are merged in pairs until they fit.
const (
	mostParts  = 240
	mostPacked = 40 << 10
)

// halfTile is half the number of buckets in the first doubling: a heatmap's buckets are at most 1/64 wide.
// The finer buckets of the interval log would make a page of many megabytes.
const (
	halfTileBits = 6
	tileMask     = 2<<halfTileBits - 1
)

// tileOf is the bucket of a latency in ns, which is not below 0.
func tileOf(v int64) int {
	shift := bits.Len64(uint64(v)|tileMask) - (halfTileBits + 1)
	return shift<<halfTileBits + int(v>>shift)
}

// tileLowest is the lowest latency of a bucket, in ns.
func tileLowest(tile int) int64 {
	if tile <= tileMask {
		return int64(tile)
	}
	shift := tile>>halfTileBits - 1
	return int64(tile-shift<<halfTileBits) << shift
}

// A heatmap holds the latencies of one direction over time: for each part of the time, how many messages
// completed, by bucket of latency, and how many that never completed were due, by bucket of their age at
// the end of the run.
type heatmap struct {
	parts []tiled
	each  int            // intervals of the log per part
	older map[int]uint64 // measured messages that never completed and were due before the oldest age that the log can hold; in no part
}

// tiled is one part of the time.
type tiled struct {
	from, to  int64 // ns since the epoch
	latest    int64 // start of its latest interval
	intervals int
	counts    [measure.NumPhases]map[int]uint64 // completed in it, by bucket
	never     [measure.NumPhases]map[int]uint64 // due in it and never completed, by bucket
}

// A tile is a bucket of latencies, or of the ages of messages that never completed.
type tile struct {
	bucket int
	never  bool
}

// tiles yields the buckets of a part, of either phase.
func (p *tiled) tiles() iter.Seq2[tile, uint64] {
	return func(yield func(tile, uint64) bool) {
		for phase := range measure.NumPhases {
			for i, counts := range []map[int]uint64{p.counts[phase], p.never[phase]} {
				for bucket, n := range counts {
					if !yield(tile{bucket, i == 1}, n) {
						return
					}
				}
			}
		}
	}
}

// interval begins an interval of the log. It is called for each line, and several lines belong to one
// interval.
func (m *heatmap) interval(from, to int64) {
	m.each = max(1, m.each)
	last := len(m.parts) - 1
	switch {
	case last >= 0 && from <= m.parts[last].latest:
	case last >= 0 && m.parts[last].intervals < m.each:
		m.parts[last].intervals++
	default:
		if len(m.parts) == mostParts {
			m.halve()
			m.interval(from, to)
			return
		}
		m.parts = append(m.parts, tiled{from: from, intervals: 1})
		last++
	}
	p := &m.parts[last]
	p.latest, p.to = max(from, p.latest), max(p.to, to)
}

// reach adds intervals up to end for a time in which nothing was logged, so that messages due in it have a
// place.
func (m *heatmap) reach(end int64) {
	from, step := int64(0), int64(1e9)
	if last := len(m.parts) - 1; last >= 0 {
		from = m.parts[last].to
		step = max(1, from-m.parts[last].latest)
	}
	step = max(step, (end-from)/mostParts)
	for ; end-from > step/2; from += step {
		m.interval(from, min(end, from+step))
	}
}

// add counts latencies of the latest interval.
func (m *heatmap) add(phase measure.Phase, c *measure.Counts) {
	p := &m.parts[len(m.parts)-1]
	for v, n := range c.Buckets() {
		into(&p.counts[phase], tileOf(max(0, v)), n)
	}
}

// missed counts the messages of a phase that never completed, by their ages at the end.
func (m *heatmap) missed(phase measure.Phase, end int64, ages *measure.Counts) {
	if m.reach(end); len(m.parts) == 0 {
		m.interval(0, end)
	}
	for age, n := range ages.Buckets() {
		if age >= measure.LowestEquivalent(measure.Highest) { // at the highest age or above
			if phase == measure.Measure {
				into(&m.older, tileOf(age), n)
			}
			continue
		}
		due := end - (age+measure.HighestEquivalent(age))/2
		i := sort.Search(len(m.parts)-1, func(i int) bool { return m.parts[i].to > due })
		into(&m.parts[i].never[phase], tileOf(max(0, age)), n)
	}
}

// into adds n messages to a bucket.
func into(counts *map[int]uint64, tile int, n uint64) {
	if *counts == nil {
		*counts = map[int]uint64{}
	}
	(*counts)[tile] += n
}

// halve merges parts in pairs.
func (m *heatmap) halve() {
	m.each *= 2
	half := m.parts[:0]
	for pair := range slices.Chunk(m.parts, 2) {
		p := pair[0]
		if len(pair) == 2 {
			p.latest, p.to = pair[1].latest, max(p.to, pair[1].to)
			p.intervals += pair[1].intervals
			for phase := range measure.NumPhases {
				for tile, n := range pair[1].counts[phase] {
					into(&p.counts[phase], tile, n)
				}
				for tile, n := range pair[1].never[phase] {
					into(&p.never[phase], tile, n)
				}
			}
		}
		half = append(half, p)
	}
	m.parts = half
}

// empty reports whether there are no messages.
func (m *heatmap) empty() bool {
	return len(m.older) == 0 && !slices.ContainsFunc(m.parts, func(p tiled) bool {
		return len(p.counts[0])+len(p.counts[1])+len(p.never[0])+len(p.never[1]) > 0
	})
}

// A packed is a heatmap's measured messages as embedded in a page. Messages of the warm-up are in no figure
// and are left out.
type packed struct {
	Half   int       `json:"half"` // buckets in half a doubling, see tileOf
	From   []float64 `json:"from"` // s since the end of the warm-up, per part
	To     []float64 `json:"to"`
	Counts string    `json:"counts"`          // base64 of varints: for each part the number of non-empty buckets, and for each bucket its distance from the one before and its count
	Never  string    `json:"never"`           // likewise, for messages that never completed, by age
	Older  string    `json:"older,omitempty"` // likewise, as one part: due more than an hour before the end, the exact time is unknown
}

// pack returns the heatmap with at most mostPacked bytes of counts. It merges parts in pairs until they
// fit.
func (m *heatmap) pack(o origin) packed {
	for {
		var counts, never []byte
		p := packed{Half: 1 << halfTileBits}
		for _, x := range m.parts {
			p.From = append(p.From, math.Round(o.seconds(x.from)*1e3)/1e3)
			p.To = append(p.To, math.Round(o.seconds(x.to)*1e3)/1e3)
			counts = appendTiles(counts, x.counts[measure.Measure])
			never = appendTiles(never, x.never[measure.Measure])
		}
		if base64.StdEncoding.EncodedLen(len(counts)+len(never)) <= mostPacked || len(m.parts) == 1 {
			p.Counts, p.Never = base64.StdEncoding.EncodeToString(counts), base64.StdEncoding.EncodeToString(never)
			if len(m.older) > 0 {
				p.Older = base64.StdEncoding.EncodeToString(appendTiles(nil, m.older))
			}
			return p
		}
		m.halve()
	}
}

// appendTiles packs the counts of a part.
func appendTiles(b []byte, counts map[int]uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(counts)))
	before := 0
	for _, tile := range slices.Sorted(maps.Keys(counts)) {
		b = binary.AppendUvarint(b, uint64(tile-before))
		b = binary.AppendUvarint(b, counts[tile])
		before = tile
	}
	return b
}

// tiles builds the heatmaps of a log: responses by direction, or services in a closed loop, which has no
// responses.
type tiles struct {
	mosaics    map[string]*heatmap
	responses  map[string]sampled // by tag
	services   map[string]sampled
	responding map[string]bool // directions with a response
}

// sampled says which messages a line of the log counts.
type sampled struct {
	direction string
	phase     measure.Phase
	never     bool // did not complete
}

func newTiles() *tiles {
	t := &tiles{map[string]*heatmap{}, map[string]sampled{}, map[string]sampled{}, map[string]bool{}}
	for direction, kinds := range map[string][2]measure.Kind{
		"send": {measure.SendResponse, measure.SendService}, "rtt": {measure.RTTResponse, measure.RTTService}, "e2e": {measure.E2EResponse, measure.E2EService},
	} {
		t.mosaics[direction] = new(heatmap)
		for p := range measure.NumPhases {
			t.responses[result.Tag(kinds[0], p)] = sampled{direction, p, false}
			t.responses[result.CensoredTag(kinds[0], p)] = sampled{direction, p, true}
			t.services[result.Tag(kinds[1], p)] = sampled{direction, p, false}
			t.services[result.CensoredTag(kinds[1], p)] = sampled{direction, p, true}
		}
	}
	return t
}

// want reports whether the counts of a tag are needed. In an interval, responses precede services.
func (t *tiles) want(tag string) bool {
	if of, ok := t.services[tag]; ok {
		return !t.responding[of.direction]
	}
	return t.responses[tag].direction != ""
}

// take adds a line of the log. For an unwanted tag it only records the interval.
func (t *tiles) take(l *result.Line) {
	if !strings.HasSuffix(l.Tag, censoredEnd) { // those cover the whole run
		for _, m := range t.mosaics {
			if len(m.parts) > 0 && l.From > m.parts[len(m.parts)-1].to {
				m.reach(l.From)
			}
			m.interval(l.From, l.To)
		}
	}
	if l.Counts == nil || !t.want(l.Tag) {
		return
	}
	of, ok := t.responses[l.Tag]
	if !ok {
		of = t.services[l.Tag]
	} else if !t.responding[of.direction] {
		t.responding[of.direction] = true
		m := t.mosaics[of.direction]
		m.older = nil
		for i := range m.parts { // of services
			m.parts[i].counts, m.parts[i].never = [measure.NumPhases]map[int]uint64{}, [measure.NumPhases]map[int]uint64{}
		}
	}
	if of.never {
		t.mosaics[of.direction].missed(of.phase, l.To, l.Counts)
		return
	}
	t.mosaics[of.direction].add(of.phase, l.Counts)
}

// done returns the heatmaps by direction.
func (t *tiles) done() map[string]*heatmap {
	maps.DeleteFunc(t.mosaics, func(_ string, m *heatmap) bool { return m.empty() })
	return t.mosaics
}
