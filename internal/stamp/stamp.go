// Package stamp writes and verifies the 32-byte header at the start of every payload. It identifies
// a message by run, stream and sequence, and records when it was due, when it was handed over, how
// much of the time between was lateness, and a checksum of the body. The layout is
// docs/formats/stamp.md; it is the same for every driver.
//
// All functions may be called from any goroutine, never block and allocate nothing.
package stamp

import (
	"encoding/binary"
	"hash/crc32"
)

// Size is the length of a header in bytes; the smallest payload.
const Size = 32

// The largest values that the layout can hold. A run with instants, sequences or streams beyond the
// first three is rejected before it starts; a longer delay is written as MaxDelay.
const (
	MaxDue    int64  = 1<<48 - 1 // ns, 78 h 11 min
	MaxSeq    uint64 = 1<<40 - 1 // messages of one stream, less one
	MaxStream uint32 = 1<<24 - 1 // streams of a run, less one
	MaxDelay  int64  = 1<<40 - 1 // ns from due to start, 18 min 19 s
)

// A Stamp is the contents of a header.
type Stamp struct {
	Run    uint32 // of the run; another run's messages are foreign
	Stream uint32 // one producer's messages to one destination, at most MaxStream
	CRC    uint32 // Checksum of what follows the header
	Seq    uint64 // in the stream, from 0, at most MaxSeq
	Due    int64  // ns since the run's epoch, 0 to MaxDue
	Start  int64  // ns since the run's epoch; no less than Due, at most Due + MaxDelay
	Share  uint8  // how much of Start - Due was lateness: see Share
}

// whole is the Share of a delay that was entirely lateness.
const whole = 255

// Share returns the fraction of a delay that was lateness, both in ns, in 255ths: 255 if nothing
// else delayed the message, which is exact, else the nearest.
func Share(lateness, delay int64) uint8 {
	switch {
	case lateness >= delay:
		return whole
	case lateness <= 0:
		return 0
	}
	return uint8((whole*lateness + delay/2) / delay)
}

// Lateness returns the lateness in ns that Share encoded as share: it is off by at most 0.2 % of
// the delay, which is from 0 to MaxDelay.
func Lateness(share uint8, delay int64) int64 {
	return (int64(share)*delay + whole/2) / whole
}

// Status is the result of Read.
type Status uint8

// The results. A foreign payload says nothing about the system that carried it; a corrupted one
// does.
const (
	Foreign   Status = iota // no header of this run
	Good                    // header and body as they were sent
	Corrupted               // the header is intact, the body is not
)

// String returns the status's name in reports.
func (s Status) String() string {
	switch s {
	case Foreign:
		return "foreign"
	case Good:
		return "good"
	case Corrupted:
		return "corrupted"
	}
	return "invalid"
}

const (
	magic    = 0x02d7     // first byte 0xd7, then the version: 2
	magicCRC = 0x5126031c // CRC-32C of the bytes d7 02, from which the header check continues
)

// castagnoli is the table of CRC-32C (RFC 3720, appendix B.4), for which amd64
// and arm64 have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of body, which is what follows the header; 0 for an empty one. A
// run's bodies are fixed, so it is computed once per body, not per message.
func Checksum(body []byte) uint32 { return crc32.Checksum(body, castagnoli) }

// MoreChecksum returns the Checksum of a body whose beginning has the checksum sum, of 0 bytes 0, and
// which continues with more.
func MoreChecksum(sum uint32, more []byte) uint32 { return crc32.Update(sum, castagnoli, more) }

// BodyChecksum returns the body's Checksum in the header of b.
func BodyChecksum(b []byte) uint32 { return binary.LittleEndian.Uint32(b[12:]) }

// Put writes s to the first Size bytes of b. It panics if b is shorter. A Start before Due is
// written as Due, one after Due + MaxDelay as that; of Due, Seq and Stream the lowest 48, 40 and 24
// bits are written, so callers must keep them within MaxDue, MaxSeq and MaxStream.
func Put(b []byte, s *Stamp) {
	b = b[:Size]
	delay := uint64(min(max(s.Start-s.Due, 0), MaxDelay))
	due := uint64(s.Due & MaxDue)
	binary.LittleEndian.PutUint64(b[8:], uint64(s.Stream&MaxStream)|uint64(s.Share)<<24|uint64(s.CRC)<<32)
	binary.LittleEndian.PutUint64(b[16:], s.Seq&MaxSeq|due<<40)
	binary.LittleEndian.PutUint64(b[24:], due>>24|delay<<24)
	binary.LittleEndian.PutUint32(b[4:], s.Run)
	binary.LittleEndian.PutUint32(b, magic|uint32(check(b))<<16)
}

// RunOf returns the run number in the header of b; ok is false if b has none.
func RunOf(b []byte) (run uint32, ok bool) {
	if len(b) < Size {
		return 0, false
	}
	first := binary.LittleEndian.Uint64(b)
	return uint32(first >> 32), uint16(first) == magic && uint16(first>>16) == check(b)
}

// Of returns the stream and the sequence number in the header of b, which need not be a whole payload;
// ok is false if b does not begin with a header of run.
func Of(b []byte, run uint32) (stream uint32, seq uint64, ok bool) {
	if r, has := RunOf(b); !has || r != run {
		return 0, 0, false
	}
	return uint32(binary.LittleEndian.Uint64(b[8:])) & MaxStream, binary.LittleEndian.Uint64(b[16:]) & MaxSeq, true
}

// Read verifies the whole payload b against run. It sets s for Good and Corrupted and leaves it
// unchanged for Foreign. The header of a corrupted payload is valid too: it has a checksum of its
// own.
func Read(b []byte, run uint32, s *Stamp) Status {
	if len(b) < Size {
		return Foreign
	}
	first := binary.LittleEndian.Uint64(b)
	if uint16(first) != magic || uint32(first>>32) != run || uint16(first>>16) != check(b) {
		return Foreign
	}
	second := binary.LittleEndian.Uint64(b[8:])
	third := binary.LittleEndian.Uint64(b[16:])
	fourth := binary.LittleEndian.Uint64(b[24:])
	s.Run = run
	s.Stream = uint32(second) & MaxStream
	s.Share = uint8(second >> 24)
	s.CRC = uint32(second >> 32)
	s.Seq = third & MaxSeq
	s.Due = int64(third>>40 | fourth&(1<<24-1)<<24)
	s.Start = s.Due + int64(fourth>>24)
	if Checksum(b[Size:]) != s.CRC {
		return Corrupted
	}
	return Good
}

// check returns the header checksum of b: the CRC-32C of its first 32 bytes without the two that
// hold the checksum, the halves folded by exclusive or. The two magic bytes are constant, so the
// sum starts from theirs and one call suffices.
func check(b []byte) uint16 {
	c := crc32.Update(magicCRC, castagnoli, b[4:Size])
	return uint16(c ^ c>>16)
}
