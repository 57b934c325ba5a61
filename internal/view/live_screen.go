package view

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"
)

// ECMA-48 control sequences, known to every terminal but a dumb one.
const (
	toEndOfLine = "\x1b[K"
	toEnd       = "\x1b[J"
)

// usualColumns is used if the terminal's width is unknown.
const usualColumns = 80

// A rewriter writes lines and, if allowed, a block below them that it rewrites. The cursor rests at the
// start of the line below the block.
type rewriter struct {
	out     io.Writer
	rewrite bool
	colour  bool
	size    func() (cols, lines int)

	shown []int // characters in each line of the block on screen
	buf   bytes.Buffer
}

// measured returns the size of the terminal, 0 lines if unknown.
func (s *rewriter) measured() (cols, lines int) {
	if s.size != nil {
		cols, lines = s.size()
	}
	if cols <= 0 {
		cols = usualColumns
	}
	return cols, max(lines, 0)
}

// lines writes permanent lines.
func (s *rewriter) lines(lines ...string) {
	s.buf.Reset()
	for _, l := range lines {
		s.buf.WriteString(l + "\n")
	}
	s.flush()
}

// A paintedLine is a line of the block: its text, and the same with colours.
type paintedLine struct{ text, painted string }

// block writes permanent lines and replaces the block, in a single write to avoid flicker.
func (s *rewriter) block(above []string, lines []paintedLine) {
	cols, _ := s.measured()
	s.buf.Reset()
	if n := len(s.shown); n > 0 && s.fits(cols) {
		s.buf.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
	if len(above) > 0 || len(lines) == 0 {
		// These lines may fill the last column, where erasing the rest of the line would erase the last
		// character on some terminals.
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

// fits reports whether the block still takes as many lines on screen as when written. If the window has
// become narrower, terminals either cut or wrap its lines, so it is left alone rather than risk erasing the
// text above it.
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
		_, _ = s.out.Write(s.buf.Bytes()) // write errors cannot be reported anywhere
	}
}
