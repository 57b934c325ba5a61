package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A voice passes on what the server warns of, and who was refused. Whoever is refused
// can come again as often as it likes: of lines that others can cause, at most burst are
// written in a window, and then how many were not.
type voice struct {
	log   *slog.Logger
	loud  atomic.Bool            // between the start and the end; otherwise all is said at level debug
	last  atomic.Pointer[string] // line of level error
	fatal chan error
	full  atomic.Bool // what was to be stored had no room

	mu     sync.Mutex
	since  time.Time
	lines  int
	unsaid int
}

const (
	window = 10 * time.Second
	burst  = 50
)

func newVoice(log *slog.Logger) *voice { return &voice{log: log, fatal: make(chan error, 1)} }

// say writes a line unless there were too many.
func (v *voice) say(level slog.Level, text string, args ...any) {
	if !v.loud.Load() {
		level = slog.LevelDebug
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if now.Sub(v.since) > window {
		if v.unsaid > 0 {
			v.log.Log(context.Background(), slog.LevelWarn, "the fleet's hub had more to say", "lines", v.unsaid)
		}
		v.since, v.lines, v.unsaid = now, 0, 0
	}
	if v.lines++; v.lines > burst {
		v.unsaid++
		return
	}
	v.log.Log(context.Background(), level, text, args...)
}

// refuse tells of a connection that was refused. Errors of package join hold no token.
func (v *voice) refuse(from string, why error) {
	v.say(slog.LevelWarn, "a connection to the fleet was refused", "from", from, "why", why)
}

func (v *voice) Noticef(string, ...any) {}
func (v *voice) Debugf(string, ...any)  {}
func (v *voice) Tracef(string, ...any)  {}

// Warnf implements server.Logger.
func (v *voice) Warnf(format string, args ...any) {
	v.say(slog.LevelWarn, "fleet hub: "+fmt.Sprintf(format, args...))
}

// Errorf implements server.Logger.
func (v *voice) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, "authentication error") {
		return // refuse told of it, with the reason
	}
	v.last.Store(&text)
	if strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, syscall.EDQUOT.Error()) {
		v.full.Store(true)
	}
	v.say(slog.LevelWarn, "fleet hub: "+text)
}

// Fatalf implements server.Logger. It is not the end of the process here, but of Start.
func (v *voice) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, x := range args {
		// The server's formats do not wrap.
		if cause, ok := x.(error); ok && errors.Is(cause, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: %w", ErrPortTaken, err)
		}
	}
	select {
	case v.fatal <- err:
	default: // one reason is enough
	}
}
