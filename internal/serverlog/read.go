package serverlog

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
)

// Limits on the report of a window.
const (
	Most      = 15       // lines
	MostEach  = 5        // lines per process, counting only the first of lines that differ only in numbers
	mostRead  = 64 << 20 // bytes read of all logs, for all windows
	longLine  = 16 << 10 // bytes kept of a line until it is cleaned
	mostRaw   = 64       // distinct lines remembered before cleaning
	backwards = 4 << 10  // how far before a window to look for the start of a line
)

// A Window is a time span on the clock of Follow.
type Window struct{ From, To int64 }

// A Line is a line of a log.
type Line struct {
	At      int64 // when weir saw it: it was written by then, and after the previous reading
	Process string
	Node    int
	Text    string // cleaned
}

// An Excerpt is what logs contain for a window.
type Excerpt struct {
	Lines   []Line // in order of time; at most Most
	More    uint64 // number of further lines in the window
	AtLeast bool   // More is a lower bound
}

// Read returns what the logs contain for each window. secrets are texts to hide.
func (f *Follower) Read(windows []Window, secrets []string) []Excerpt {
	if f == nil {
		return nil
	}
	f.look() // what has arrived since
	f.mu.Lock()
	defer f.mu.Unlock()
	left := int64(mostRead)
	all := make([]Excerpt, len(windows))
	clean := cleaner(secrets)
	for i, w := range windows {
		var x Excerpt
		said := make([][]Line, len(f.logs))
		for k, l := range f.logs {
			p := &reading{window: w, left: &left, clean: clean, log: &l.Log, alike: map[string]bool{}, raw: map[string]bool{}}
			for _, g := range l.files {
				p.read(g)
			}
			said[k] = p.lines
			x.More += p.more
			x.AtLeast = x.AtLeast || p.cut
		}
		x.take(said)
		all[i] = x
	}
	return all
}

// take adds the lines of all logs, first the first one of each.
func (x *Excerpt) take(said [][]Line) {
	for i := range MostEach {
		for _, lines := range said {
			switch {
			case i >= len(lines):
			case len(x.Lines) < Most:
				x.Lines = append(x.Lines, lines[i])
			default:
				x.More++
			}
		}
	}
	slices.SortStableFunc(x.Lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Process, b.Process))
	})
}

// A reading reads a log for a window.
type reading struct {
	window Window
	left   *int64 // bytes that may still be read
	clean  func([]byte) string
	log    *Log

	lines []Line
	alike map[string]bool // texts of lines, without numbers
	raw   map[string]bool // likewise before cleaning; at most mostRaw
	key   []byte          // of the current line, as in raw
	more  uint64
	cut   bool
}

// read reads the part of a file that was written in the window.
func (p *reading) read(g *grown) {
	first := sort.Search(len(g.mark), func(i int) bool { return g.mark[i].at >= p.window.From })
	after := sort.Search(len(g.mark), func(i int) bool { return g.mark[i].at > p.window.To })
	if first >= after {
		return
	}
	from, to := g.from, g.mark[after-1].size
	if first > 0 {
		from = g.mark[first-1].size
	}
	start := g.lineAt(from)
	p.cut = p.cut || to-start > *p.left
	section := io.NewSectionReader(g.file, start, min(to-start, *p.left))
	r := bufio.NewReaderSize(section, 64<<10)
	whole := after == len(g.mark) // include a last line without a newline
	marks, at := g.mark[first:after], start
	for {
		text, n, err := line(r)
		*p.left -= n
		if at += n; err != nil && !errors.Is(err, io.EOF) || n == 0 || err != nil && (!whole || at < g.size) {
			return
		}
		for len(marks) > 1 && marks[0].size < at {
			marks = marks[1:]
		}
		if at <= from || len(text) == 0 { // from before the window
			continue
		}
		p.add(text, marks[0].at)
	}
}

// add adds a line.
func (p *reading) add(text []byte, at int64) {
	if len(p.lines) >= MostEach {
		if len(trimmed(text)) > 0 {
			p.more++
		}
		return
	}
	// Cleaning takes some microseconds, and a server may repeat itself a million times.
	p.key = appendNumberless(p.key[:0], text)
	if p.raw[string(p.key)] {
		p.more++
		return
	}
	s := p.clean(text)
	if s == "" {
		return
	}
	if len(p.raw) < mostRaw {
		p.raw[string(p.key)] = true
	}
	switch key := numberless(s); {
	case p.alike[key]: // it adds little, and would hide the others
		p.more++
	default:
		p.alike[key] = true
		p.lines = append(p.lines, Line{At: at, Process: p.log.Process, Node: p.log.Node, Text: s})
	}
}

// appendNumberless appends a line without its digits.
func appendNumberless(to, line []byte) []byte {
	for _, b := range line {
		if b < '0' || b > '9' {
			to = append(to, b)
		}
	}
	return to
}

// numberless returns a text without its numbers, such as times and connections.
func numberless(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// lineAt returns the start of the line at a place.
func (g *grown) lineAt(place int64) int64 {
	start := max(0, place-backwards)
	b := make([]byte, place-start)
	if _, err := g.file.ReadAt(b, start); err != nil {
		return place
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == '\n' {
			return start + int64(i) + 1
		}
	}
	return start // a long line: keep what comes late in it
}

// line reads a line, and returns its start and its full length including the newline. At the end of
// the input the error is io.EOF.
func line(r *bufio.Reader) (text []byte, n int64, err error) {
	for {
		b, err := r.ReadSlice('\n')
		n += int64(len(b))
		text = append(text, b[:min(len(b), longLine-len(text))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, n, err
		}
	}
}
