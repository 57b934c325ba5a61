package result

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A lineReader reads the lines of a log that may still be written, or was torn when its writer was
// killed. It tracks the line number.
type lineReader struct {
	scan *bufio.Scanner
	n    int  // lines read
	open bool // the last line was not terminated
}

// newLineReader reads lines of at most that many bytes.
func newLineReader(r io.Reader, most int) *lineReader {
	l := &lineReader{scan: bufio.NewScanner(r)}
	l.scan.Buffer(nil, most)
	l.scan.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF && len(data) > 0 {
			l.open = true
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	return l
}

// next returns the next line without its end, or io.EOF; it is valid until the
// next call.
func (l *lineReader) next() ([]byte, error) {
	if l.scan.Scan() {
		l.n++
		return l.scan.Bytes(), nil
	}
	err := l.scan.Err()
	switch {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		// Nothing can be read after it: its end is unknown.
		return nil, &FileError{Line: l.n + 1, Err: fmt.Errorf("%w: the line is longer than any of its kind", ErrNotResult)}
	}
	return nil, &FileError{Line: l.n + 1, Err: err}
}

// wrong returns an error about the line just read. An unterminated line was cut short, whatever
// else it looks like.
func (l *lineReader) wrong(err error) error {
	if l.open {
		err = fmt.Errorf("%w: the last line is not whole", ErrTorn)
	}
	return &FileError{Line: l.n, Err: err}
}
