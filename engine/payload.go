package engine

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/weirmq/weir/internal/stamp"
)

// PayloadKind is a way of making the bytes behind the stamp.
type PayloadKind uint8

// The kinds of payload.
const (
	Random       PayloadKind = iota // incompressible, from the seed, other bytes in each slot
	Zeros                           // nothing but zero bytes
	Compressible                    // random bytes and zeros in turns, other bytes in each slot
	Contents                        // given bytes
)

// Payload is what the bytes behind the stamp are. The zero value is Random.
type Payload struct {
	Kind PayloadKind

	// Saved is, for Compressible, the share of the bytes that a general
	// compressor saves, from 0 to 1: 0.5 means that what it gives is half as long.
	Saved float64

	// Contents are the bodies of the kind of that name, at least one, which the engine
	// reads and never writes. A message as long as a content and the stamp together
	// carries exactly that content; contents of one length take turns, by the message's
	// index. A size that no content has is filled by all of them in turn: a longer content
	// is cut into consecutive pieces, each a turn, and a shorter one repeated.
	Contents [][]byte
}

// period is after how many bytes a compressible body goes on with fresh random
// bytes: short, so that every message has its share, and no compressor that
// gives up on incompressible stretches misses the rest.
const period = 64

// matchCost is what a compressor spends on one stretch of zeros, in bytes.
const matchCost = 2

// bodies makes what a run's messages carry behind their stamps.
type bodies struct {
	payload Payload
	seed    uint64
	sizes   []int       // of messages, ascending
	turns   [][]content // Contents: those of each size, which take turns
}

// A content is the body of a message of one size.
type content struct {
	source
	crc uint32
}

// A source is where a body begins.
type source struct {
	number int // in Payload.Contents
	offset int
}

// noContent is the number of what a slot holds before its first message.
const noContent = -1

// mostPieces bounds the pieces of contents, each of which has a checksum: of all sizes
// together, but each content has one of each size.
const mostPieces = 1 << 16

// newBodies computes the checksums of contents, once for each and each size that
// it is sent in.
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

// pieces are where bodies of a size begin in content number of a length: one behind the
// other, up to its end, and at most so many.
func pieces(number, length, size, most int) []source {
	all := []source{{number: number}}
	for at := size; size > 0 && at < length && len(all) < most; at += size {
		all = append(all, source{number, at})
	}
	return all
}

// cut fills body with a content from an offset on. Behind its end the content begins
// again; an empty one is zeros.
func (b *bodies) cut(body []byte, from source) {
	c := b.payload.Contents[from.number]
	if len(c) == 0 {
		clear(body)
		return
	}
	n := copy(body, c[from.offset:])
	n += copy(body[n:], c)
	for n < len(body) { // longer than the content, which begins at its beginning
		n += copy(body[n:], body[:n])
	}
}

// fill gives sl new bytes. number makes them another sequence in every slot, so
// that a system which compresses over messages finds nothing to share.
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

// mix writes random bytes into each period of a body that is all zeros, and
// leaves as many zeros as save the share asked for. The part that does not come
// out even is carried to the next period.
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

// choose puts the content of the message with that index into sl, unless it is
// there already, and returns its checksum. class is the number of its size.
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
