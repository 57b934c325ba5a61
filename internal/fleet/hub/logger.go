package hub

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
)

// A logger forwards the server's warnings and refused clients, rate-limited.
type logger struct {
	log   *LimitedLog
	loud  atomic.Bool            // after the start and before the end; otherwise level debug
	last  atomic.Pointer[string] // latest line of level error
	fatal chan error
	full  atomic.Bool // the disk was full
}

func newLogger(log *slog.Logger) *logger {
	return &logger{log: NewLimitedLog(log), fatal: make(chan error, 1)}
}

// say writes a line unless over the limit.
func (l *logger) say(kind, from string, args ...any) {
	level := slog.LevelWarn
	if !l.loud.Load() {
		level = slog.LevelDebug
	}
	l.log.Write(level, kind, from, args...)
}

// refuse logs a refused connection. Errors of package admission contain no token.
func (l *logger) refuse(from string, why error) {
	peer, port, err := net.SplitHostPort(from)
	if err != nil {
		peer, port = from, ""
	}
	l.say("a connection to the fleet was refused", peer, "port", port, "why", why)
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

// Warnf implements server.Logger.
func (l *logger) Warnf(format string, args ...any) {
	l.say("fleet hub", "", "warning", fmt.Sprintf(format, args...))
}

// Errorf implements server.Logger.
func (l *logger) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, "authentication error") {
		return // refuse logged it, with the reason
	}
	l.last.Store(&text)
	if strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, syscall.EDQUOT.Error()) {
		l.full.Store(true)
	}
	l.say("fleet hub", "", "error", text)
}

// Fatalf implements server.Logger. It fails Start instead of ending the process.
func (l *logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, x := range args {
		// The server's formats do not wrap errors.
		if cause, ok := x.(error); ok && errors.Is(cause, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: %w", ErrPortTaken, err)
		}
	}
	select {
	case l.fatal <- err:
	default: // one reason is enough
	}
}
