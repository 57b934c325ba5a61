package hub

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// The limits: in each logWindow, LogEachMost lines of one kind from one peer, and logMost in all.
const (
	logWindow   = 10 * time.Second
	LogEachMost = 10
	logMost     = 50
)

// A LimitedLog is a rate-limited log. Its methods may be called from any goroutine.
type LimitedLog struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time             // start of the window
	lines int                   // written in the window
	seen  map[logSource]*logRun // at most logMost
	rest  int                   // suppressed, of sources that are not in seen
}

// A logSource is a kind of line and its peer.
type logSource struct{ kind, peer string }

// A logRun counts a source's lines in a window.
type logRun struct{ written, left int }

// NewLimitedLog returns a LimitedLog that writes to log.
func NewLimitedLog(log *slog.Logger) *LimitedLog {
	return &LimitedLog{log: log, seen: map[logSource]*logRun{}}
}

// Write writes kind, the line's text, with the attributes args, unless over the limit. peer is its cause;
// "" if unknown.
func (l *LimitedLog) Write(level slog.Level, kind, peer string, args ...any) {
	if !l.May(kind, peer) {
		return
	}
	if peer != "" {
		args = append([]any{"from", peer}, args...)
	}
	l.log.Log(context.Background(), level, kind, args...)
}

// May reports whether one more line of a kind may be written, and counts it, for lines that do not go to
// the log.
func (l *LimitedLog) May(kind, peer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.turn(now)
	if len(l.seen) == 0 {
		l.since = now
	}
	s := logSource{kind, peer}
	r := l.seen[s]
	if r == nil {
		if l.lines >= logMost {
			l.rest++
			return false
		}
		r = &logRun{}
		l.seen[s] = r
	}
	if r.written >= LogEachMost || l.lines >= logMost {
		r.left++
		return false
	}
	r.written++
	l.lines++
	return true
}

// Warn is Write at level warning.
func (l *LimitedLog) Warn(kind, peer string, args ...any) {
	l.Write(slog.LevelWarn, kind, peer, args...)
}

// Tick reports the suppressed lines if the window is over.
func (l *LimitedLog) Tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
}

// End reports the lines suppressed so far.
func (l *LimitedLog) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell()
}

// turn ends a window that is over. The lock must be held.
func (l *LimitedLog) turn(now time.Time) {
	if now.Sub(l.since) > logWindow {
		l.tell()
	}
}

// tell reports the suppressed lines, and starts a window. The lock must be held.
func (l *LimitedLog) tell() {
	var all []logSource
	for s, r := range l.seen {
		if r.left > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b logSource) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.peer, b.peer)) })
	for _, s := range all {
		args := []any{"lines", l.seen[s].left}
		if s.peer != "" {
			args = append([]any{"from", s.peer}, args...)
		}
		l.log.Warn(s.kind+": more lines like this were left out", args...)
	}
	if l.rest > 0 {
		l.log.Warn("more lines that others caused were left out", "lines", l.rest)
	}
	clear(l.seen)
	l.lines, l.rest = 0, 0
}
