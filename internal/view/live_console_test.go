package view

import (
	"strings"
	"syscall"
	"testing"
)

func TestWritesAppearAboveLiveView(t *testing.T) {
	var out strings.Builder
	c := &Console{Out: &out}
	say := func(s string) {
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	say("before\n")
	v, done := c.View(Terminal{Rewrite: true, Size: func() (cols, lines int) { return 80, 24 }}, LivePlan{Sends: true}, false)
	v.Doing("connecting")
	say("meanwhile\n")
	done()
	say("after\n")
	if got := out.String(); !strings.HasPrefix(got, "before\n") || !strings.Contains(got, "meanwhile") || !strings.HasSuffix(got, "after\n") {
		t.Errorf("%q", got)
	}
	out.Reset()
	v, done = c.View(Terminal{}, LivePlan{}, true)
	v.Doing("connecting")
	say("quiet\n")
	done()
	if out.String() != "quiet\n" {
		t.Errorf("a quiet view: %q", out.String())
	}
}

// leaving is a pipe that has no reader after its first line.
type leaving struct{ lines int }

func (l *leaving) Write(b []byte) (int, error) {
	if l.lines++; l.lines > 1 {
		return 0, syscall.EPIPE
	}
	return len(b), nil
}

func TestClosedPipeIsNotFailure(t *testing.T) {
	l := &leaving{}
	w := IgnoreClosedPipe(l)
	for range 5 {
		if n, err := w.Write([]byte("line\n")); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if l.lines != 2 {
		t.Errorf("%d writes; want none after the reader left", l.lines)
	}
}
