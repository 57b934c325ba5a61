package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A piece: four bytes of magic, the last of them the version; the number of the
// whole in eight; its length, the length of each piece of it but the last, and
// which of them this is, in four each; and its bytes.
const (
	pieceMagic = "wpc"
	pieceHead  = len(pieceMagic) + 1 + 8 + 4 + 4 + 4
)

// MinPiece is the least that a piece may have to have, in bytes: so pieces do
// not become too many.
const MinPiece = 1024

// Split cuts b, an encoded report, into pieces of at most most bytes, MinPiece
// where that is more; there is one at least. id names these very bytes among all
// that the agent sends, such as the report's number: pieces of other bytes never
// have it. The pieces share no memory with b.
func Split(id uint64, b []byte, most int) [][]byte {
	stride := min(max(most, MinPiece)-pieceHead, maxFrame)
	count := max(1, (len(b)+stride-1)/stride)
	room := make([]byte, 0, len(b)+count*pieceHead)
	pieces := make([][]byte, count)
	for i := range pieces {
		start := len(room)
		room = append(room, pieceMagic...)
		room = append(room, version)
		room = binary.BigEndian.AppendUint64(room, id)
		room = binary.BigEndian.AppendUint32(room, uint32(len(b)))
		room = binary.BigEndian.AppendUint32(room, uint32(stride))
		room = binary.BigEndian.AppendUint32(room, uint32(i))
		room = append(room, b[i*stride:min((i+1)*stride, len(b))]...)
		pieces[i] = room[start:len(room):len(room)]
	}
	return pieces
}

// What an Assembler holds at most.
const (
	maxUnderWay = 16 // reports with a piece missing
	maxWhole    = 64 // numbers of reports that were whole, to know later copies of their pieces
)

// An Assembler puts the pieces of one agent's reports together. They may come in any
// order and more than once. What it holds of reports with pieces missing is at most as
// much as the largest report, and 16 of them; the oldest are given up for newer ones. The
// zero value is ready. It is used by one goroutine at a time.
type Assembler struct {
	underWay []*partial // by when they began
	whole    []uint64   // by when they were
}

// A partial is a report with some of its pieces.
type partial struct {
	id     uint64
	stride int
	b      []byte
	had    []bool
	left   int
}

// Add takes a piece and returns the report that it makes whole, or nil. The result is the
// caller's; piece is not kept. A piece that came before, or of a report that is whole, is
// ignored. When another Split of the same number comes, what came of the earlier is
// dropped: the sender began anew.
//
// ErrFormat, ErrVersion and ErrTooLarge: the piece is none, and was not taken.
// ErrMissing: it was taken, and in its favour a report was given up, which the
// error names; there may be a whole with it.
func (a *Assembler) Add(piece []byte) (whole []byte, err error) {
	h, data, err := parsePiece(piece)
	if err != nil {
		return nil, fmt.Errorf("piece of %d bytes: %w", len(piece), err)
	}
	if slices.Contains(a.whole, h.id) {
		return nil, nil
	}
	p, err := a.find(h)
	if p.had[h.index] {
		return nil, err
	}
	copy(p.b[h.index*h.stride:], data)
	p.had[h.index] = true
	if p.left--; p.left > 0 {
		return nil, err
	}
	a.drop(h.id)
	if len(a.whole) == maxWhole {
		a.whole = slices.Delete(a.whole, 0, 1)
	}
	a.whole = append(a.whole, h.id)
	return p.b, err
}

// find returns the partial that a piece belongs to, a new one if need be, for
// which older ones may have to go.
func (a *Assembler) find(h head) (p *partial, err error) {
	held := h.total
	for _, p := range a.underWay {
		if p.id == h.id {
			if len(p.b) == h.total && p.stride == h.stride {
				return p, nil
			}
			a.drop(h.id)
			break
		}
	}
	for _, p := range a.underWay {
		held += len(p.b)
	}
	for len(a.underWay) == maxUnderWay || held > maxFrame {
		old := a.underWay[0]
		held -= len(old.b)
		a.underWay = slices.Delete(a.underWay, 0, 1)
		if err == nil {
			err = old.missing()
		} else {
			err = fmt.Errorf("%w; %w", err, old.missing())
		}
	}
	p = &partial{id: h.id, stride: h.stride, b: make([]byte, h.total), had: make([]bool, h.count()), left: h.count()}
	a.underWay = append(a.underWay, p)
	return p, err
}

func (a *Assembler) drop(id uint64) {
	a.underWay = slices.DeleteFunc(a.underWay, func(p *partial) bool { return p.id == id })
}

// Missing returns an ErrMissing that names the oldest report with pieces missing, or nil
// when there is none.
func (a *Assembler) Missing() error {
	if len(a.underWay) == 0 {
		return nil
	}
	return a.underWay[0].missing()
}

func (p *partial) missing() error {
	return fmt.Errorf("report %d: %w: %d of %d, the first is %d", p.id, ErrMissing, p.left, len(p.had), slices.Index(p.had, false)+1)
}

// A head is what a piece says about itself.
type head struct {
	id                   uint64
	total, stride, index int
}

func (h head) count() int { return max(1, (h.total+h.stride-1)/h.stride) }

func parsePiece(b []byte) (head, []byte, error) {
	switch {
	case len(b) <= len(pieceMagic) || string(b[:len(pieceMagic)]) != pieceMagic:
		return head{}, nil, fmt.Errorf("%w: it is not a piece of a report", ErrFormat)
	case b[len(pieceMagic)] != version:
		return head{}, nil, fmt.Errorf("%w: version %d, this weir reads version %d", ErrVersion, b[len(pieceMagic)], version)
	case len(b) < pieceHead:
		return head{}, nil, fmt.Errorf("%w: it ends within the head", ErrFormat)
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(b[at:])) }
	total, stride, index := number(12), number(16), number(20)
	switch {
	case total > int64(maxFrame):
		return head{}, nil, fmt.Errorf("%w: of a report of %d bytes", ErrTooLarge, total)
	case stride < int64(MinPiece-pieceHead) || stride > int64(maxFrame):
		return head{}, nil, fmt.Errorf("%w: of pieces of %d bytes", ErrFormat, stride)
	}
	h := head{binary.BigEndian.Uint64(b[4:]), int(total), int(stride), 0}
	if index >= int64(h.count()) {
		return head{}, nil, fmt.Errorf("%w: number %d of %d", ErrFormat, index+1, h.count())
	}
	h.index = int(index)
	data := b[pieceHead:]
	if want := min(h.stride, h.total-h.index*h.stride); len(data) != want {
		return head{}, nil, fmt.Errorf("%w: %d bytes and not %d", ErrFormat, len(data), want)
	}
	return h, data, nil
}
