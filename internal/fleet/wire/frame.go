package wire

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// A report as bytes: four of magic, the last of them the version; one that says
// how the body is written; the body's length not deflated, in four; the body;
// and the CRC-32C of all before it, in four. Numbers are big-endian.
const (
	magic    = "wrp"
	version  = 1
	headLen  = len(magic) + 1 + 1 + 4
	crcLen   = 4
	maxFrame = headLen + MaxReport + crcLen

	bodyPlain    = 0
	bodyDeflated = 1
)

// maxInflated is what one deflated byte makes at most: deflate's longest match
// has 258 bytes and takes two bits.
const maxInflated = 258 * 4

// A coder holds the memory with which reports are encoded and decoded.
type coder struct {
	plain  []byte
	packed sink
	zip    *flate.Writer
	from   bytes.Reader
	unzip  io.Reader // a flate.Resetter
}

// A sink appends what is written to it.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

func (c *coder) append(b []byte, r *Report) ([]byte, error) {
	var err error
	if c.plain, err = appendBody(c.plain[:0], r); err != nil {
		return b, fmt.Errorf("encode report %d of agent %q: %w", r.Seq, whole(r.Agent, MaxName), err)
	}
	out := append(b, magic...)
	out = append(out, version, bodyDeflated)
	out = binary.BigEndian.AppendUint32(out, uint32(len(c.plain)))
	body := len(out)
	c.packed.b = out
	if c.zip == nil {
		// The least effort: it is done beside the measuring.
		c.zip, _ = flate.NewWriter(&c.packed, flate.BestSpeed) // fails for unknown levels only
	} else {
		c.zip.Reset(&c.packed)
	}
	if _, err := c.zip.Write(c.plain); err != nil {
		return b, fmt.Errorf("deflate report %d: %w", r.Seq, err)
	}
	if err := c.zip.Close(); err != nil {
		return b, fmt.Errorf("deflate report %d: %w", r.Seq, err)
	}
	out, c.packed.b = c.packed.b, nil
	if len(out)-body >= len(c.plain) {
		out = append(out[:body], c.plain...)
		out[len(b)+len(magic)+1] = bodyPlain
	}
	return binary.BigEndian.AppendUint32(out, checksum(out[len(b):])), nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func (c *coder) decode(b []byte, into *Report) error {
	body, err := c.open(b)
	if err == nil {
		err = decodeBody(body, into)
	}
	if err != nil {
		return fmt.Errorf("decode report of %d bytes: %w", len(b), err)
	}
	return nil
}

// open returns the body of the report that b is, which holds until the next
// call or as long as b.
func (c *coder) open(b []byte) ([]byte, error) {
	switch {
	case len(b) <= len(magic) || string(b[:len(magic)]) != magic:
		return nil, fmt.Errorf("%w: it is not a report", ErrFormat)
	case b[len(magic)] != version:
		return nil, fmt.Errorf("%w: a report of version %d, this weir reads version %d", ErrVersion, b[len(magic)], version)
	case len(b) > maxFrame:
		return nil, fmt.Errorf("%w: at most %d bytes", ErrTooLarge, maxFrame)
	case len(b) < headLen+crcLen:
		return nil, fmt.Errorf("%w: it ends within the head", ErrFormat)
	}
	sealed, sum := b[:len(b)-crcLen], binary.BigEndian.Uint32(b[len(b)-crcLen:])
	if got := checksum(sealed); got != sum {
		return nil, fmt.Errorf("%w: its checksum is %08x and should be %08x", ErrFormat, got, sum)
	}
	how, size, body := b[headLen-5], int64(binary.BigEndian.Uint32(b[headLen-4:])), sealed[headLen:]
	switch {
	case size > MaxReport:
		return nil, fmt.Errorf("%w: a body of %d bytes", ErrTooLarge, size)
	case how == bodyPlain && size == int64(len(body)):
		return body, nil
	case how != bodyDeflated || size > maxInflated*int64(len(body)):
		return nil, fmt.Errorf("%w: a body of %d bytes in %d, written in way %d", ErrFormat, size, len(body), how)
	}
	return c.inflate(body, int(size))
}

// inflate returns the size bytes that body was made of.
func (c *coder) inflate(body []byte, size int) ([]byte, error) {
	c.from.Reset(body)
	if c.unzip == nil {
		c.unzip = flate.NewReader(&c.from)
	} else if err := c.unzip.(flate.Resetter).Reset(&c.from, nil); err != nil {
		return nil, fmt.Errorf("inflate: %w", err)
	}
	if cap(c.plain) < size {
		c.plain = make([]byte, size)
	}
	c.plain = c.plain[:size]
	if _, err := io.ReadFull(c.unzip, c.plain); err != nil {
		return nil, fmt.Errorf("%w: inflate: %w", ErrFormat, err)
	}
	var more [1]byte
	if n, err := io.ReadFull(c.unzip, more[:]); n != 0 || err != io.EOF || c.from.Len() > 0 {
		return nil, fmt.Errorf("%w: inflate: more than the %d bytes it says", ErrFormat, size)
	}
	return c.plain, nil
}
