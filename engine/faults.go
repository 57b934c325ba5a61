package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/weirmq/weir/driver"
)

// maxTexts bounds how many failure texts a run distinguishes.
const maxTexts = 64

// A tally counts failures by text. It is off the hot path; a run in which every message fails may
// spend its time here.
type tally struct {
	mu   sync.Mutex
	seen map[string]*ErrorCount
	said map[string]bool
}

// add counts err, which failed no message, and reports whether it is the first with its text.
func (t *tally) add(err error) (first bool) { return t.count(err, 0) }

// fail is add for an error that failed a message.
func (t *tally) fail(err error) (first bool) { return t.count(err, 1) }

func (t *tally) count(err error, failed uint64) (first bool) {
	text := err.Error()
	if len(text) > 300 {
		text = text[:300]
	}
	text = general(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]*ErrorCount{}
	}
	e := t.seen[text]
	if e == nil {
		if len(t.seen) >= maxTexts {
			text = "(further kinds of failure)"
		}
		if e = t.seen[text]; e == nil {
			e = &ErrorCount{Class: class(err), Text: text}
			t.seen[text] = e
			first = true
		}
	}
	e.Count++
	e.Failed += failed
	return first
}

// list returns the counts, most frequent first.
func (t *tally) list() []ErrorCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]ErrorCount, 0, len(t.seen))
	for _, e := range t.seen {
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b ErrorCount) int {
		if a.Count != b.Count {
			return int(b.Count) - int(a.Count)
		}
		return strings.Compare(a.Text, b.Text)
	})
	return list
}

// ClassBlocked is the ErrorCount.Class of driver.ErrBlocked.
const ClassBlocked = "blocked"

// class names the sentinel that err wraps.
func class(err error) string {
	for _, c := range []struct {
		is   error
		name string
	}{
		{driver.ErrTimeout, "timeout"},
		{driver.ErrDisconnected, "disconnected"},
		{driver.ErrOverloaded, "overloaded"},
		{driver.ErrBlocked, ClassBlocked},
		{driver.ErrTooLarge, "too large"},
		{driver.ErrUnreachable, "unreachable"},
		{driver.ErrAuth, "refused"},
		{driver.ErrUnsupported, "not supported"},
		{driver.ErrClosed, "closed"},
		{errCorruptedReply, "corrupted reply"},
		{errForeignReply, "foreign reply"},
		{errMisroutedReply, "misrouted reply"},
		{errMisrouted, "misrouted"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "closed"},
	} {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return "other"
}

// first reports whether this is its first call with what.
func (t *tally) first(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said == nil {
		t.said = map[string]bool{}
	}
	was := t.said[what]
	t.said[what] = true
	return !was
}

// general replaces runs of four or more digits (ports, sequences, IDs), so that failures of one
// kind have one text; shorter runs may be part of names.
func general(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		n := 0
		for i+n < len(text) && text[i+n] >= '0' && text[i+n] <= '9' {
			n++
		}
		switch {
		case n >= 4:
			b.WriteByte('#')
		case n > 0:
			b.WriteString(text[i : i+n])
		default:
			b.WriteByte(text[i])
			n = 1
		}
		i += n
	}
	return b.String()
}
