package view

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"
)

// Control sequences of ECMA-48 that every terminal but a dumb one knows.
const (
	toEndOfLine = "\x1b[K"
	toEnd       = "\x1b[J"
	reset       = "\x1b[0m"
	bold        = "\x1b[1m"
	dim         = "\x1b[2m"
	red         = "\x1b[1;31m"
)

// usualColumns are the columns of a terminal that does not tell.
const usualColumns = 80

// A screen writes lines, and below them, where it may, a block that it
// rewrites. The cursor rests at the beginning of the line below the block.
type rewriter struct {
	out     io.Writer
	rewrite bool
	colour  bool
	size    func() (cols, lines int)

	shown []int // characters of each line of the block on the screen
	buf   bytes.Buffer
}

// measured returns the size of the terminal, 0 lines where it is not known.
func (s *rewriter) measured() (cols, lines int) {
	if s.size != nil {
		cols, lines = s.size()
	}
	if cols <= 0 {
		cols = usualColumns
	}
	return cols, max(lines, 0)
}

// lines writes lines that stay.
func (s *rewriter) lines(lines ...string) {
	s.buf.Reset()
	for _, l := range lines {
		s.buf.WriteString(l + "\n")
	}
	s.flush()
}

// A line of the block: its text, and the same with its colours.
type paintedLine struct{ text, painted string }

// block writes lines that stay and replaces the block, in a single write so that
// nothing flickers.
func (s *rewriter) block(above []string, lines []paintedLine) {
	cols, _ := s.measured()
	s.buf.Reset()
	if n := len(s.shown); n > 0 && s.fits(cols) {
		s.buf.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
	if len(above) > 0 || len(lines) == 0 {
		// These may fill a line to its last column, where taking away the rest of
		// the line would take the last character on some terminals.
		s.buf.WriteString("\r" + toEnd)
	}
	for _, l := range above {
		s.buf.WriteString(l + "\n")
	}
	s.shown = s.shown[:0]
	for _, l := range lines {
		s.buf.WriteString("\r" + l.painted + toEndOfLine + "\n")
		s.shown = append(s.shown, utf8.RuneCountInString(l.text))
	}
	if len(lines) > 0 {
		s.buf.WriteString(toEnd)
	}
	s.flush()
}

// fits reports whether the block on the screen is still in as many lines as it
// was written in. In a window that has become narrower its lines are cut or
// broken, which one differs; it is left there rather than to wipe out what
// stands above it.
func (s *rewriter) fits(cols int) bool {
	for _, n := range s.shown {
		if n >= cols {
			return false
		}
	}
	return true
}

func (s *rewriter) flush() {
	if s.buf.Len() > 0 {
		_, _ = s.out.Write(s.buf.Bytes()) // no place to report it
	}
}
