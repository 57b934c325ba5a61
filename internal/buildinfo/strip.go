package buildinfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// Offsets in the header of a 64-bit ELF file, and in its program headers.
const (
	elfHeader    = 64
	elfPrograms  = 32 // offset of the program headers
	elfSections  = 40 // offset of the section headers
	elfProgram   = 54 // size of a program header
	elfCount     = 56 // number of program headers
	elfNames     = 58 // size and number of section headers, and the index of their names
	fileOffset   = 8  // in a program header
	fileSize     = 32
	leastProgram = 56
)

var elfMagic = []byte("\x7fELF\x02\x01") // 64 bits, little-endian

// Stripped reads a program without what the kernel does not load: the symbols and debugging data of an
// ELF file, which make up a third of it. A program that was stripped so is the same to Identity. Files in other
// formats are read whole.
func Stripped(f *os.File) (io.Reader, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	whole := io.NewSectionReader(f, 0, st.Size())
	head := make([]byte, elfHeader)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.HasPrefix(head, elfMagic) {
		return whole, nil
	}
	at := int64(binary.LittleEndian.Uint64(head[elfPrograms:]))
	size := int64(binary.LittleEndian.Uint16(head[elfProgram:]))
	count := int64(binary.LittleEndian.Uint16(head[elfCount:]))
	if at < elfHeader || size < leastProgram || at > st.Size()-size*count {
		return whole, nil
	}
	end := at + size*count
	for i := range count {
		program := make([]byte, leastProgram)
		if _, err := f.ReadAt(program, at+i*size); err != nil {
			return nil, err
		}
		offset, length := int64(binary.LittleEndian.Uint64(program[fileOffset:])), int64(binary.LittleEndian.Uint64(program[fileSize:]))
		if offset < 0 || length < 0 || offset > st.Size()-length {
			return whole, nil
		}
		end = max(end, offset+length)
	}
	clear(head[elfSections : elfSections+8])
	clear(head[elfNames:elfHeader])
	return io.MultiReader(bytes.NewReader(head), io.NewSectionReader(f, elfHeader, end-elfHeader)), nil
}
