package report

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Bounds of what a page holds of the latencies over time, however long the run was: its
// time in at most so many parts, and each direction in at most so many bytes. Where more
// would be needed, two parts become one.
const (
	mostParts  = 240
	mostPacked = 256 << 10
)

// halfTile is half of the buckets of the first doubling: those of a mosaic are at most
// 1/64 wide. The interval log has finer ones, which would make a page of many megabytes.
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

// A mosaic is the latencies of one direction over time: how many messages completed in
// each part of the time, by bucket of their latency.
type mosaic struct {
	parts []tiled
	each  int // intervals of the log in one part
}

// tiled is one part.
type tiled struct {
	from, to  int64 // ns since the epoch
	latest    int64 // when its latest interval began
	intervals int
	counts    map[int]uint64 // by bucket
}

// add takes the latencies of one interval of the log. Several of the same interval are of
// different phases.
func (m *mosaic) add(l *result.Line) {
	m.each = max(1, m.each)
	last := len(m.parts) - 1
	switch {
	case last >= 0 && l.From == m.parts[last].latest:
	case last >= 0 && m.parts[last].intervals < m.each:
		m.parts[last].intervals++
	default:
		if len(m.parts) == mostParts {
			m.halve()
			m.add(l)
			return
		}
		m.parts = append(m.parts, tiled{from: l.From, intervals: 1, counts: map[int]uint64{}})
		last++
	}
	p := &m.parts[last]
	p.latest, p.to = l.From, max(p.to, l.To)
	for v, n := range l.Counts.Buckets() {
		p.counts[tileOf(max(0, v))] += n
	}
}

// halve makes one part of each two.
func (m *mosaic) halve() {
	m.each *= 2
	half := m.parts[:0]
	for pair := range slices.Chunk(m.parts, 2) {
		p := pair[0]
		if len(pair) == 2 {
			p.latest, p.to = pair[1].latest, max(p.to, pair[1].to)
			p.intervals += pair[1].intervals
			for tile, n := range pair[1].counts {
				p.counts[tile] += n
			}
		}
		half = append(half, p)
	}
	m.parts = half
}

// sum is the counts of the parts from one up to another that is not in it.
func (m *mosaic) sum(from, to int) map[int]uint64 {
	all := map[int]uint64{}
	for _, p := range m.parts[from:to] {
		for tile, n := range p.counts {
			all[tile] += n
		}
	}
	return all
}

// A packed is a mosaic as a page holds it.
type packed struct {
	Half   int       `json:"half"` // buckets of half a doubling, see tileOf
	From   []float64 `json:"from"` // s since the epoch, of each part
	To     []float64 `json:"to"`
	Counts string    `json:"counts"` // base64 of varints: of each part how many buckets are not empty, and of each its distance from the one before and its count
}

// pack returns the mosaic in at most mostPacked bytes of counts. It halves the parts until
// they fit.
func (m *mosaic) pack() packed {
	for {
		var b []byte
		p := packed{Half: 1 << halfTileBits}
		for _, x := range m.parts {
			p.From = append(p.From, float64(x.from/1e6)/1e3)
			p.To = append(p.To, float64(x.to/1e6)/1e3)
			b = binary.AppendUvarint(b, uint64(len(x.counts)))
			before := 0
			for _, tile := range slices.Sorted(maps.Keys(x.counts)) {
				b = binary.AppendUvarint(b, uint64(tile-before))
				b = binary.AppendUvarint(b, x.counts[tile])
				before = tile
			}
		}
		if base64.StdEncoding.EncodedLen(len(b)) <= mostPacked || len(m.parts) == 1 {
			p.Counts = base64.StdEncoding.EncodeToString(b)
			return p
		}
		m.halve()
	}
}

// tiles makes the mosaics of a log: of each direction the response, and of a closed loop,
// which has none, the service.
type tiles struct {
	mosaics    map[string]*mosaic
	responses  map[string]string // direction by tag
	services   map[string]string
	responding map[string]bool // directions that have a response
}

func newTiles() *tiles {
	t := &tiles{map[string]*mosaic{}, map[string]string{}, map[string]string{}, map[string]bool{}}
	for _, p := range []measure.Phase{measure.WarmUp, measure.Measure} {
		for direction, kinds := range map[string][2]measure.Kind{
			"send": {measure.SendResponse, measure.SendService}, "rtt": {measure.RTTResponse, measure.RTTService}, "e2e": {measure.E2EResponse, measure.E2EService},
		} {
			t.responses[result.Tag(kinds[0], p)] = direction
			t.services[result.Tag(kinds[1], p)] = direction
		}
	}
	return t
}

// want reports whether the counts of a tag are needed. The responses of an interval come
// before its services.
func (t *tiles) want(tag string) bool {
	return t.responses[tag] != "" || t.services[tag] != "" && !t.responding[t.services[tag]]
}

// take takes a line with a tag that was wanted, and ignores others.
func (t *tiles) take(l *result.Line) {
	direction := t.responses[l.Tag]
	switch {
	case l.Counts == nil || !t.want(l.Tag):
		return
	case direction != "":
		if !t.responding[direction] {
			t.responding[direction] = true
			delete(t.mosaics, direction)
		}
	default:
		direction = t.services[l.Tag]
	}
	if t.mosaics[direction] == nil {
		t.mosaics[direction] = new(mosaic)
	}
	t.mosaics[direction].add(l)
}
