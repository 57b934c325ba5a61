package engine

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/weirmq/weir/internal/stamp"
)

// PayloadKind selects how the bytes behind the header are made.
type PayloadKind uint8

const (
	Random       PayloadKind = iota // incompressible, from the seed, different in each slot
	Zeros                           // all zero
	Compressible                    // random bytes and zeros alternating, different in each slot
	Contents                        // given bodies
)

// Payload describes the bytes behind the header. The zero value is Random.
type Payload struct {
	Kind PayloadKind

	// Saved is, for Compressible, the share of the bytes that a general-purpose compressor saves,
	// from 0 to 1: 0.5 halves the size.
	Saved float64

	// Contents are the bodies for the kind Contents, at least one; the engine never writes to them.
	// A message of the length of a content plus the header carries exactly that content; contents
	// of equal length alternate by message index. For a size that matches no content, all contents
	// alternate: a longer content is cut into consecutive pieces, each a turn, and a shorter one is
	// repeated.
	Contents [][]byte
}

// period is the interval of fresh random bytes in a compressible body. It is short, so that every
// message has its share and a compressor that gives up on incompressible stretches does not miss
// the rest.
const period = 64

// matchCost is how many bytes a compressor spends on one stretch of zeros.
const matchCost = 2

// bodies generates what a run's messages carry behind their headers.
type bodies struct {
	payload Payload
	seed    uint64
	sizes   []int       // of messages, ascending
	turns   [][]content // Contents: per size, used in turn
}

// A content is the body of messages of one size.
type content struct {
	source
	crc uint32
}

// A source is where a body begins.
type source struct {
	number int // in Payload.Contents
	offset int
}

// noContent is the content number of a slot before its first message.
const noContent = -1

// mostPieces bounds the pieces of contents over all sizes, each of which has a checksum; each
// content keeps at least one per size.
const mostPieces = 1 << 16

// newBodies computes the checksums of contents, once per content and size.
func newBodies(p Payload, seed uint64, sizes []int) *bodies {
	b := &bodies{payload: p, seed: seed, sizes: sizes}
	if p.Kind != Contents {
		return b
	}
	scratch := make([]byte, sizes[len(sizes)-1])
	for _, size := range sizes {
		body := scratch[:size-stamp.Size]
		var exact, others []content
		for i, c := range p.Contents {
			if len(c) == len(body) {
				exact = append(exact, content{source{number: i}, stamp.Checksum(c)})
			}
		}
		if len(exact) > 0 {
			b.turns = append(b.turns, exact)
			continue
		}
		most := max(1, mostPieces/len(sizes)/len(p.Contents))
		for i := range p.Contents {
			for _, s := range pieces(i, len(p.Contents[i]), len(body), most) {
				b.cut(body, s)
				others = append(others, content{s, stamp.Checksum(body)})
			}
		}
		b.turns = append(b.turns, others)
	}
	return b
}

// pieces returns where bodies of a size begin in content number of the given length: consecutively
// up to its end, and at most most.
func pieces(number, length, size, most int) []source {
	all := []source{{number: number}}
	for at := size; size > 0 && at < length && len(all) < most; at += size {
		all = append(all, source{number, at})
	}
	return all
}

// cut fills body with a content from an offset on. After its end the content is repeated; an empty
// content yields zeros.
func (b *bodies) cut(body []byte, from source) {
	c := b.payload.Contents[from.number]
	if len(c) == 0 {
		clear(body)
		return
	}
	n := copy(body, c[from.offset:])
	n += copy(body[n:], c)
	for n < len(body) { // longer than the content: start over
		n += copy(body[n:], body[:n])
	}
}

// fill gives sl new bytes. number makes them different in every slot, so that a system that
// compresses across messages finds nothing in common.
func (b *bodies) fill(sl *slot, number uint64) {
	largest := b.sizes[len(b.sizes)-1]
	sl.bytes = make([]byte, largest+keyRoom)
	body := sl.bytes[stamp.Size:largest]
	switch b.payload.Kind {
	case Random:
		randomize(body, rand.NewPCG(b.seed, number))
	case Compressible:
		b.mix(body, rand.NewPCG(b.seed, number))
	case Contents:
		sl.content, sl.filled = source{number: noContent}, 0
		return
	}
	sl.crcs = make([]uint32, len(b.sizes))
	for i, n := range b.sizes {
		sl.crcs[i] = stamp.Checksum(sl.bytes[stamp.Size:n])
	}
}

func randomize(b []byte, src *rand.PCG) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, src.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(src.Uint64())
	}
}

// mix writes random bytes into each period of a zeroed body, and leaves as many zeros as save the
// requested share. The fraction is carried to the next period.
func (b *bodies) mix(body []byte, src *rand.PCG) {
	step := min(period, max(1, b.sizes[0]-stamp.Size)) // the smallest message has its share too
	zeros := b.payload.Saved * float64(step)
	if zeros > 0 {
		zeros = min(float64(step), zeros+matchCost)
	}
	carried := 0.0
	for len(body) > 0 {
		n := min(step, len(body))
		carried += float64(n) * (1 - zeros/float64(step))
		fresh := min(n, int(carried))
		carried -= float64(fresh)
		randomize(body[:fresh], src)
		body = body[n:]
	}
}

// choose puts the content of the message with that index into sl, unless it is already there, and
// returns its checksum. class is the number of its size.
func (b *bodies) choose(sl *slot, index uint64, class int) uint32 {
	turn := b.turns[class]
	c := &turn[0]
	if len(turn) > 1 {
		c = &turn[index%uint64(len(turn))]
	}
	size := b.sizes[class]
	if sl.content != c.source || sl.filled < size {
		b.cut(sl.bytes[stamp.Size:size], c.source)
		sl.content, sl.filled = c.source, size
	}
	return c.crc
}
