package view

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A terminal is what a Live is looked at on: the few control sequences that it
// uses, with the rule that the last column is filled before a line breaks.
type terminal struct {
	t          *testing.T
	cols, rows int
	cells      [][]rune
	scrolled   []string // what has left at the top
	x, y       int
	writes     int
}

func newTerminal(t *testing.T, cols, rows int) *terminal {
	s := &terminal{t: t, cols: cols, rows: rows}
	for range rows {
		s.cells = append(s.cells, nil)
	}
	return s
}

func (s *terminal) size() (cols, lines int) { return s.cols, s.rows }

func (s *terminal) Write(b []byte) (int, error) {
	s.writes++
	for in := string(b); in != ""; {
		if strings.HasPrefix(in, "\x1b[") {
			end := strings.IndexFunc(in[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				s.t.Fatalf("a control sequence is not whole: %q", in)
			}
			s.control(in[2:2+end], in[2+end])
			in = in[2+end+1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(in)
		in = in[n:]
		switch {
		case r == '\n': // a terminal's driver puts a return before it
			s.x = 0
			s.down()
		case r == '\r':
			s.x = 0
		case r < ' ' || r == '\x1b':
			s.t.Errorf("%q reached the terminal", r)
		default:
			s.put(r)
		}
	}
	return len(b), nil
}

func (s *terminal) put(r rune) {
	if s.x >= s.cols {
		s.x = 0
		s.down()
	}
	line := s.cells[s.y]
	for len(line) <= s.x {
		line = append(line, ' ')
	}
	line[s.x] = r
	s.cells[s.y] = line
	s.x++
}

func (s *terminal) down() {
	if s.y++; s.y < s.rows {
		return
	}
	s.scrolled = append(s.scrolled, string(s.cells[0]))
	s.cells = append(s.cells[1:], nil)
	s.y--
}

func (s *terminal) control(args string, what byte) {
	n := 0
	for _, r := range args {
		if r >= '0' && r <= '9' {
			n = n*10 + int(r-'0')
		}
	}
	switch what {
	case 'm':
	case 'A':
		s.y = max(0, s.y-max(1, n))
	case 'K':
		s.cells[s.y] = s.cells[s.y][:min(s.x, len(s.cells[s.y]))]
	case 'J':
		s.cells[s.y] = s.cells[s.y][:min(s.x, len(s.cells[s.y]))]
		for i := s.y + 1; i < s.rows; i++ {
			s.cells[i] = nil
		}
	default:
		s.t.Errorf("the terminal was sent CSI %s %c, which nobody restores", args, what)
	}
}

// String is all that was ever on the screen, the scrolled part above a rule.
func (s *terminal) String() string {
	var b strings.Builder
	for _, l := range s.scrolled {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	if len(s.scrolled) > 0 {
		b.WriteString("^ scrolled\n")
	}
	last := s.y
	for i, l := range s.cells {
		if len(l) > 0 {
			last = max(last, i)
		}
	}
	for i, l := range s.cells[:last+1] {
		mark := ""
		if i == s.y {
			mark = "_"
			if s.x > 0 {
				s.t.Errorf("the cursor rests in column %d", s.x)
			}
		}
		b.WriteString(strings.TrimRight(string(l), " ") + mark + "\n")
	}
	return b.String()
}
