package hub

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A refused client can return arbitrarily often, under arbitrarily many names, and must not fill a disk.
// Suppressed lines are counted.
func TestPeerLogLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := NewLimitedLog(slog.New(slog.NewTextHandler(&b, nil)))
		lines := func(what string) (n int) {
			for line := range strings.Lines(b.String()) {
				if strings.Contains(line, what) {
					n++
				}
			}
			return n
		}
		for range 7000 {
			l.Warn("refused", "one")
		}
		l.Warn("refused", "two")
		l.Warn("other", "one")
		if n := lines("msg=refused from=one"); n != LogEachMost {
			t.Errorf("%d lines of one peer; want %d", n, LogEachMost)
		}
		if lines("from=two") != 1 || lines("msg=other") != 1 {
			t.Errorf("one peer that floods hides another, or another kind:\n%s", &b)
		}
		time.Sleep(logWindow + time.Second)
		l.Tick()
		if n := lines("lines=6990"); n != 1 {
			t.Errorf("%d lines say how many were left out; want one:\n%s", n, &b)
		}
		b.Reset()
		for i := range 7000 {
			l.Warn("refused", fmt.Sprint("peer-", i))
		}
		if n := lines("refused"); n != logMost {
			t.Errorf("%d lines of many peers; want %d", n, logMost)
		}
		l.End()
		if n := lines("lines=6950"); n != 1 {
			t.Errorf("%d lines say how many were left out; want one:\n%s", n, &b)
		}
		b.Reset()
		l.End()
		l.Tick()
		if b.Len() > 0 {
			t.Errorf("told twice: %s", &b)
		}
	})
}
