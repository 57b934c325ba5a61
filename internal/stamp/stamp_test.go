package stamp

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/golden"
)

// message returns a payload of n bytes with a header and random content.
func message(rng *rand.Rand, n int) ([]byte, Stamp) {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	s := Stamp{
		Run: rng.Uint32(), Stream: rng.Uint32() & MaxStream, CRC: Checksum(b[Size:]),
		Seq: rng.Uint64N(MaxSeq + 1), Due: rng.Int64N(MaxDue + 1), Share: uint8(rng.Uint32()),
	}
	s.Start = s.Due + rng.Int64N(MaxDelay+1)
	Put(b, &s)
	return b, s
}

func TestMagicCRCMatchesMagicBytes(t *testing.T) {
	if got := crc32.Checksum([]byte{magic & 0xff, magic >> 8}, castagnoli); got != magicCRC {
		t.Errorf("CRC-32C of the magic bytes = %#x; want %#x", magicCRC, got)
	}
}

func TestReadReturnsWhatPutWrote(t *testing.T) {
	for _, test := range []struct {
		name      string
		put, want Stamp
	}{
		{"all zero", Stamp{}, Stamp{}},
		{
			"all at their largest",
			Stamp{Run: 1<<32 - 1, Stream: MaxStream, Seq: MaxSeq, Due: MaxDue, Start: MaxDue + MaxDelay, Share: 255},
			Stamp{Run: 1<<32 - 1, Stream: MaxStream, Seq: MaxSeq, Due: MaxDue, Start: MaxDue + MaxDelay, Share: 255},
		},
		{"a delay of one", Stamp{Due: 1 << 24, Start: 1<<24 + 1}, Stamp{Due: 1 << 24, Start: 1<<24 + 1}},
		{"a delay beyond the field saturates", Stamp{Due: 5, Start: 6 + MaxDelay}, Stamp{Due: 5, Start: 5 + MaxDelay}},
		{"a start before due is due", Stamp{Due: 5, Start: 4}, Stamp{Due: 5, Start: 5}},
		{"a sequence beyond the field keeps its low bits", Stamp{Seq: MaxSeq + 3}, Stamp{Seq: 2}},
		{"a stream beyond the field keeps its low bits", Stamp{Stream: MaxStream + 3, Share: 7}, Stamp{Stream: 2, Share: 7}},
		{"a due beyond the field keeps its low bits", Stamp{Due: MaxDue + 3, Start: MaxDue + 4}, Stamp{Due: 2, Start: 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := make([]byte, Size)
			Put(b, &test.put)
			var got Stamp
			if status := Read(b, test.put.Run, &got); status != Good {
				t.Fatalf("Read = %v; want good", status)
			}
			golden.Equal(t, test.want, got, "Read after Put")
		})
	}
}

func TestReadGivesBackRandomHeaders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		b, want := message(rng, Size+rng.IntN(100))
		var got Stamp
		if status := Read(b, want.Run, &got); status != Good || got != want {
			t.Fatalf("Read = %v %+v; want good %+v", status, got, want)
		}
	}
}

// Exact if the message was only late, or not late at all.
func TestLatenessPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 100_000 {
		delay := rng.Int64N(1 << rng.IntN(41))
		late := rng.Int64N(delay + 1)
		got := Lateness(Share(late, delay), delay)
		if off := max(got-late, late-got); got < 0 || got > delay || off > delay/510+1 {
			t.Fatalf("%d of %d ns is read as %d", late, delay, got)
		}
	}
	for _, delay := range []int64{0, 1, 254, 12_345, MaxDelay} {
		if all, none := Lateness(Share(delay, delay), delay), Lateness(Share(0, delay), delay); all != delay || none != 0 {
			t.Errorf("of %d ns, all is read as %d and nothing as %d", delay, all, none)
		}
	}
	for late, want := range map[int64]uint8{-5: 0, 20: 255, MaxDue: 255} {
		if got := Share(late, 10); got != want {
			t.Errorf("late by %d of 10 ns: %d; want %d", late, got, want)
		}
	}
	if got := Share(MaxDue/2, MaxDue); got < 127 || got > 128 {
		t.Errorf("half of the longest delay is %d 255ths", got)
	}
}

func TestReadForeignPayloadKeepsHeader(t *testing.T) {
	b := make([]byte, 64)
	s := Stamp{Run: 7, CRC: Checksum(b[Size:])}
	Put(b, &s)
	for _, test := range []struct {
		name    string
		payload []byte
		run     uint32
	}{
		{"nothing", nil, 7},
		{"one byte less than a stamp", b[:Size-1], 7},
		{"zeros", make([]byte, 64), 0},
		{"ones", bytes.Repeat([]byte{0xff}, 64), 1<<32 - 1},
		{"text", []byte("what somebody else wrote to the same queue, long enough"), 7},
		{"another run", b, 8},
		{"shifted by a byte", append([]byte{0}, b...), 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := Stamp{Seq: 42}
			got := before
			if status := Read(test.payload, test.run, &got); status != Foreign {
				t.Errorf("Read = %v; want foreign", status)
			}
			if got != before {
				t.Errorf("Read changed the stamp to %+v", got)
			}
		})
	}
}

func TestReadOfAnotherBodyIsCorrupted(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b, want := message(rng, 100)
	for _, test := range []struct {
		name    string
		payload []byte
	}{
		{"cut short", b[:99]},
		{"cut to the stamp", b[:Size]},
		{"longer by a zero", append(bytes.Clone(b), 0)},
		{"another body", append(bytes.Clone(b[:Size]), make([]byte, 68)...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got Stamp
			if status := Read(test.payload, want.Run, &got); status != Corrupted || got != want {
				t.Errorf("Read = %v %+v; want corrupted %+v", status, got, want)
			}
		})
	}
}

// A flipped bit of the header could by chance give a valid header with other contents; with this
// checksum it never does.
func TestEveryFlippedBitIsDetected(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		b, want := message(rng, Size+rng.IntN(64))
		for bit := range len(b) * 8 {
			b[bit/8] ^= 1 << (bit % 8)
			var got Stamp
			status := Read(b, want.Run, &got)
			b[bit/8] ^= 1 << (bit % 8)
			if bit < Size*8 && status != Foreign {
				t.Fatalf("bit %d of the header flipped: %v %+v; want foreign", bit, status, got)
			}
			if bit >= Size*8 && (status != Corrupted || got != want) {
				t.Fatalf("bit %d of the body flipped: %v %+v; want corrupted %+v", bit-Size*8, status, got, want)
			}
		}
	}
}

// CRC-32C alone detects every two flipped bits at this length; folded to 16 bits it cannot. The
// number of undetected pairs is a constant of the layout, because the checksum is linear: it
// measures the strength of the header check.
func TestUndetectedDoubleBitFlipsMatchPage(t *testing.T) {
	b := make([]byte, Size)
	Put(b, &Stamp{})
	pass := 0
	for i := range Size * 8 {
		for j := range i {
			b[i/8] ^= 1 << (i % 8)
			b[j/8] ^= 1 << (j % 8)
			var got Stamp
			if Read(b, 0, &got) != Foreign {
				pass++
			}
			b[i/8] ^= 1 << (i % 8)
			b[j/8] ^= 1 << (j % 8)
		}
	}
	if pass != 3 {
		t.Errorf("%d pairs of flipped bits pass; docs/formats/stamp.md says 3", pass)
	}
}

func TestNothingAllocates(t *testing.T) {
	b, s := message(rand.New(rand.NewPCG(7, 8)), 64)
	var got Stamp
	if n := testing.AllocsPerRun(100, func() {
		Put(b, &s)
		if Read(b, s.Run, &got) != Good {
			t.Error("Read is not good")
		}
	}); n != 0 {
		t.Errorf("Put and Read allocate %v times", n)
	}
}

func FuzzRead(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{Size, Size + 1, 64} {
		b, s := message(rng, n)
		f.Add(b, s.Run)
		f.Add(b[:n-1], s.Run)
	}
	f.Add([]byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, run uint32) {
		var s Stamp
		status := Read(b, run, &s)
		if status == Foreign {
			if s != (Stamp{}) {
				t.Errorf("a foreign payload set the stamp to %+v", s)
			}
			return
		}
		if s.Run != run || s.Seq > MaxSeq || s.Due < 0 || s.Due > MaxDue || s.Start < s.Due || s.Start-s.Due > MaxDelay {
			t.Errorf("Read = %v %+v, out of range", status, s)
		}
		if (status == Good) != (Checksum(b[Size:]) == s.CRC) {
			t.Errorf("Read = %v with a body of checksum %#x and %#x in the stamp", status, Checksum(b[Size:]), s.CRC)
		}
		again := make([]byte, Size)
		if Put(again, &s); !bytes.Equal(again, b[:Size]) {
			t.Errorf("Put of what Read gave = %x; want %x", again, b[:Size])
		}
	})
}

func BenchmarkPut(b *testing.B) {
	m, s := message(rand.New(rand.NewPCG(1, 1)), 64)
	b.ReportAllocs()
	for b.Loop() {
		s.Seq++
		Put(m, &s)
	}
}

func BenchmarkChecksum(b *testing.B) {
	m, _ := message(rand.New(rand.NewPCG(1, 1)), 64)
	b.ReportAllocs()
	for b.Loop() {
		Checksum(m[Size:])
	}
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int{64, 1024} {
		m, s := message(rand.New(rand.NewPCG(1, 1)), size)
		b.Run(map[int]string{64: "64B", 1024: "1KiB"}[size], func(b *testing.B) {
			b.ReportAllocs()
			var got Stamp
			for b.Loop() {
				if Read(m, s.Run, &got) != Good {
					b.Fatal("not good")
				}
			}
		})
	}
}
