package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// random returns n bytes that are alike in no two places.
func random(n int, seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func TestPiecesMakeTheWholeInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var a Assembler
	id := uint64(0)
	for _, most := range []int{0, MinPiece, 5000, math.MaxInt32} {
		for _, n := range []int{0, 1, MinPiece - pieceHead, MinPiece - pieceHead + 1, 10_000, 50_000} {
			id++
			b := random(n, id)
			pieces := Split(id, b, most)
			for i, p := range pieces {
				if len(p) > max(most, MinPiece) {
					t.Errorf("%d bytes at most %d: piece %d has %d", n, most, i, len(p))
				}
			}
			if fit := n <= max(most, MinPiece)-pieceHead; fit != (len(pieces) == 1) {
				t.Errorf("%d bytes at most %d: %d pieces", n, most, len(pieces))
			}
			for _, p := range slices.Clone(pieces) { // each twice
				pieces = append(pieces, slices.Clone(p))
			}
			rnd.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
			var got [][]byte
			for _, p := range pieces {
				whole, err := a.Add(p)
				if err != nil {
					t.Fatal(err)
				}
				clear(p) // it is not kept
				if whole != nil {
					got = append(got, whole)
				}
			}
			if len(got) != 1 || !bytes.Equal(got[0], b) {
				t.Errorf("%d bytes at most %d: %d whole", n, most, len(got))
			}
			if err := a.Missing(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestReportsUnderWayTogether(t *testing.T) {
	var a Assembler
	x, y := random(3000, 1), random(3000, 2)
	px, py := Split(1, x, MinPiece), Split(2, y, MinPiece)
	for i := range px {
		for j, p := range [][]byte{px[i], py[i]} {
			whole, err := a.Add(p)
			if err != nil {
				t.Fatal(err)
			}
			if last := i == len(px)-1; last != (whole != nil) || last && !bytes.Equal(whole, [][]byte{x, y}[j]) {
				t.Errorf("piece %d of report %d: %d bytes", i, j+1, len(whole))
			}
		}
	}
}

func TestMissingPiecesAreNamed(t *testing.T) {
	var a Assembler
	for id := uint64(1); id <= maxUnderWay; id++ {
		pieces := Split(id, random(3000, id), MinPiece)
		if whole, err := a.Add(pieces[1]); whole != nil || err != nil {
			t.Fatalf("%d bytes: %v", len(whole), err)
		}
	}
	err := a.Missing()
	if !errors.Is(err, ErrMissing) || err.Error() != "report 1: pieces are missing: 2 of 3, the first is 1" {
		t.Errorf("%v", err)
	}
	// One more is taken, and the oldest given up.
	small := random(10, 99)
	whole, err := a.Add(Split(99, small, MinPiece)[0])
	if !bytes.Equal(whole, small) || !errors.Is(err, ErrMissing) || !strings.HasPrefix(err.Error(), "report 1: ") {
		t.Errorf("%d bytes: %v", len(whole), err)
	}
	if err := a.Missing(); !strings.HasPrefix(err.Error(), "report 2: ") {
		t.Errorf("%v", err)
	}
	if len(a.underWay) != maxUnderWay-1 {
		t.Errorf("%d under way", len(a.underWay))
	}
}

func TestAnAssemblerHoldsNoMoreThanTheLargestReport(t *testing.T) {
	var a Assembler
	held := func() (n int) {
		for _, p := range a.underWay {
			n += len(p.b)
		}
		return n
	}
	piece := func(id uint64, total int) []byte { // its first
		b := append([]byte(pieceMagic), version)
		b = binary.BigEndian.AppendUint64(b, id)
		b = binary.BigEndian.AppendUint32(b, uint32(total))
		b = binary.BigEndian.AppendUint32(b, 2000)
		b = binary.BigEndian.AppendUint32(b, 0)
		return append(b, make([]byte, 2000)...)
	}
	for id := range uint64(3) {
		if _, err := a.Add(piece(id, maxFrame/3)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Add(piece(3, maxFrame/2)); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "report 0: ") || !strings.Contains(err.Error(), "report 1: ") {
		t.Errorf("%v", err)
	}
	if n := held(); n > maxFrame || len(a.underWay) != 2 {
		t.Errorf("%d bytes of %d reports", n, len(a.underWay))
	}
	if _, err := a.Add(piece(4, maxFrame)); !errors.Is(err, ErrMissing) || held() != maxFrame {
		t.Errorf("%d bytes, %v", held(), err)
	}
	if _, err := a.Add(piece(5, maxFrame+1)); !errors.Is(err, ErrTooLarge) || held() != maxFrame {
		t.Errorf("%d bytes, %v", held(), err)
	}
}

// TestASenderMayBeginAnew splits the same report in other pieces, as one does
// who meets a server that takes less.
func TestASenderMayBeginAnew(t *testing.T) {
	var a Assembler
	b := random(20_000, 1)
	for _, p := range Split(1, b, 4000)[:3] {
		if whole, err := a.Add(p); whole != nil || err != nil {
			t.Fatalf("%d bytes: %v", len(whole), err)
		}
	}
	var whole []byte
	for _, p := range Split(1, b, 2000) {
		if whole != nil {
			t.Fatal("whole too early")
		}
		var err error
		if whole, err = a.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(whole, b) {
		t.Errorf("%d bytes", len(whole))
	}
}

func TestPiecesThatAreNone(t *testing.T) {
	good := Split(1, random(5000, 1), 2000)[0]
	change := func(at int, with ...byte) []byte {
		b := slices.Clone(good)
		copy(b[at:], with)
		return b
	}
	for name, tt := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":          {nil, ErrFormat},
		"another magic":    {change(0, 'x'), ErrFormat},
		"another version":  {change(3, version+1), ErrVersion},
		"a part of a head": {good[:pieceHead-1], ErrFormat},
		"a whole of 4 GiB": {change(12, 255, 255, 255, 255), ErrTooLarge},
		"tiny pieces":      {change(16, 0, 0, 0, 1), ErrFormat},
		"huge pieces":      {change(16, 255, 255, 255, 255), ErrFormat},
		"a fourth of 3":    {change(20, 0, 0, 0, 3), ErrFormat},
		"a byte less":      {good[:len(good)-1], ErrFormat},
		"a byte more":      {append(slices.Clone(good), 0), ErrFormat},
	} {
		var a Assembler
		if whole, err := a.Add(tt.b); whole != nil || !errors.Is(err, tt.want) || len(a.underWay) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAssembler gives an assembler pieces cut from arbitrary bytes: their first
// byte says how long each is.
func FuzzAssembler(f *testing.F) {
	pieces := Split(1, random(2500, 1), MinPiece)
	var script []byte
	for _, p := range pieces {
		script = append(binary.BigEndian.AppendUint16(script, uint16(len(p))), p...)
	}
	f.Add(script)
	f.Add(pieces[0])
	f.Fuzz(func(t *testing.T, script []byte) {
		var a Assembler
		for len(script) >= 2 {
			n := min(int(binary.BigEndian.Uint16(script)), len(script)-2)
			piece := script[2 : 2+n]
			script = script[2+n:]
			whole, err := a.Add(piece)
			if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrMissing) {
				t.Fatal(err)
			}
			held := 0
			for _, p := range a.underWay {
				if held += len(p.b); p.left < 1 || p.left >= len(p.had) {
					t.Fatalf("%d of %d are missing", p.left, len(p.had))
				}
			}
			if held > maxFrame || len(a.underWay) > maxUnderWay || len(a.whole) > maxWhole || len(whole) > maxFrame {
				t.Fatalf("%d bytes of %d under way, %d whole, of %d bytes", held, len(a.underWay), len(a.whole), len(whole))
			}
		}
	})
}

func BenchmarkPieces(b *testing.B) {
	report := random(3<<20, 1)
	for id := uint64(1); b.Loop(); id++ {
		var a Assembler
		var whole []byte
		for _, p := range Split(id, report, 1<<20) {
			whole, _ = a.Add(p)
		}
		if len(whole) != len(report) {
			b.Fatal("not whole")
		}
	}
	b.SetBytes(int64(len(report)))
}
