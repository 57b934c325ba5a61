package hosts

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/userfile"
)

// A binary is the program of a platform, without its symbols.
type binary struct {
	path        string
	sha256, crc string // as sha256sum and cksum print them
	size        int64
	packed      func() ([]byte, error) // compressed, for the first host that lacks it
}

// newBinary reads the program at path, or this one's.
func newBinary(path string) (*binary, error) {
	b := &binary{path: path}
	sum, crc := sha256.New(), new(cksum)
	err := b.read(io.MultiWriter(sum, crc))
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	b.sha256, b.crc, b.size = hex.EncodeToString(sum.Sum(nil)), crc.String(), crc.size
	b.packed = sync.OnceValues(func() ([]byte, error) {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		if err == nil {
			err = b.read(z)
		}
		if err == nil {
			err = z.Close()
		}
		return out.Bytes(), err
	})
	return b, nil
}

// read writes the program to w.
func (b *binary) read(w io.Writer) error {
	open := buildinfo.Program
	if b.path != own {
		open = func() (*os.File, error) { return userfile.Open(b.path) }
	}
	f, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	stripped, err := buildinfo.Stripped(f)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, stripped)
	return err
}

// A cksum is the checksum of POSIX's cksum, of what was written to it: a CRC-32 with the polynomial of
// Ethernet, most significant bit first, over the bytes and then their number.
type cksum struct {
	crc  uint32
	size int64
}

const polynomial = 0x04c11db7

// Write adds bytes.
func (c *cksum) Write(b []byte) (int, error) {
	table := crcTable()
	for _, x := range b {
		c.crc = c.crc<<8 ^ table[byte(c.crc>>24)^x]
	}
	c.size += int64(len(b))
	return len(b), nil
}

// String returns what cksum prints of its input.
func (c *cksum) String() string {
	crc, table := c.crc, crcTable()
	for n := c.size; n > 0; n >>= 8 {
		crc = crc<<8 ^ table[byte(crc>>24)^byte(n)]
	}
	return fmt.Sprintf("%d %d", ^crc, c.size)
}

var crcTable = sync.OnceValue(func() (t [256]uint32) {
	for i := range t {
		crc := uint32(i) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
})
