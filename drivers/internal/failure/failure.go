// Package failure maps the errors of a client library to the driver contract's errors. Every driver
// uses a Map, with the errors that only its own client and server return. Disconnects and timeouts
// are the same for all.
//
// Errors are counted by their texts. Details that differ between two errors of the same kind, such
// as a local port, are therefore removed.
package failure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/weirmq/weir/driver"
)

// local matches our own address in a socket error ("read tcp 127.0.0.1:50312->127.0.0.1:6379:
// ...").
var local = regexp.MustCompile(`\S+->`)

// full matches a disk-full message in an error that the server has no code for.
var full = regexp.MustCompile(`(?i)no space left on device|disk(?: is)? full`)

// A Map classifies one client's errors. The zero Map knows only network errors.
type Map struct {
	// Is maps an error of the client or the server to the contract's error, nil for none. It may
	// also return its own error that wraps one.
	Is func(err error) error
	// Hide matches text that is specific to one connection; With replaces it.
	Hide *regexp.Regexp
	With string
}

// A Table maps a client's error values to the contract's errors; nil: none.
type Table map[error]error

func (t Table) Find(err error) (is error, ok bool) {
	for e, is := range t {
		if errors.Is(err, e) {
			return is, true
		}
	}
	return nil, false
}

// Is is Find for Map.Is.
func (t Table) Is(err error) error {
	is, _ := t.Find(err)
	return is
}

// Cause returns err as the contract's error, with a text that is the same for all errors of its
// kind. An unknown error keeps its own text. Cause allocates.
func (m Map) Cause(err error) error {
	if err == nil {
		return nil
	}
	var is error
	switch {
	case driver.IsContract(err):
		return m.Plain(err)
	case m.Is != nil:
		is = m.Is(err)
	}
	switch {
	case is != nil && errors.Is(is, err):
		return is // it already includes err
	case is != nil:
	case full.MatchString(err.Error()):
		is = driver.ErrBlocked
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), timedOut(err):
		is = driver.ErrTimeout
	case Broken(err):
		is = driver.ErrDisconnected
	default:
		return m.Plain(err)
	}
	return fmt.Errorf("%w: %w", is, m.Plain(err))
}

// Lost is Cause for a lost connection: unknown errors become ErrDisconnected. A nil err is a
// disconnect without a reason.
func (m Map) Lost(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the server closed it", driver.ErrDisconnected)
	}
	if err = m.Cause(err); driver.IsContract(err) && !errors.Is(err, driver.ErrTimeout) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrDisconnected, err)
}

// Unreachable is Cause for a request: anything but an answer (driver.IsAnswer) becomes
// ErrUnreachable.
func (m Map) Unreachable(err error) error {
	if err = m.Cause(err); err == nil || errors.Is(err, driver.ErrUnreachable) || driver.IsAnswer(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
}

// mostBrief limits the result of Brief, in bytes.
const mostBrief = 200

// Brief returns the one line of a server's message that says what happened, without headings or a
// stack trace, cut at 200 bytes.
func Brief(text string) string {
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "Message:"))
		switch {
		case line == "", line == "null", strings.HasSuffix(line, ":"):
		case strings.HasPrefix(line, "---"): // the first line of Pulsar's messages
			heading = cmp.Or(heading, strings.Trim(line, "- "))
		default:
			return shorten(line)
		}
	}
	return shorten(heading)
}

// shorten cuts an overlong text at a word boundary.
func shorten(text string) string {
	if len(text) <= mostBrief {
		return text
	}
	text = strings.ToValidUTF8(text[:mostBrief], "")
	if i := strings.LastIndexByte(text, ' '); i > mostBrief/2 {
		text = text[:i]
	}
	return text + " ..."
}

// stack matches a JVM stack trace after a message.
var stack = regexp.MustCompile(`(?s)\s*\n\s*(Stacktrace:|at [\w$.<>/@-]+\().*`)

// Plain removes connection-specific details and stack traces from err's text.
func (m Map) Plain(err error) error {
	text := err.Error()
	plain := stack.ReplaceAllString(text, "")
	if strings.Contains(plain, "->") {
		plain = local.ReplaceAllString(plain, "")
	}
	if m.Hide != nil {
		plain = m.Hide.ReplaceAllString(plain, m.With)
	}
	if plain == text {
		return err
	}
	return &plainError{plain, err}
}

// A plainError is an error with a text of its own.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// Said returns an error that wraps both is and err, with the server's text but without the client's
// words around it. Use it in Map.Is.
func Said(is, err error, text string) error {
	return &plainError{is.Error() + ": " + text, errors.Join(is, err)}
}

// Broken reports whether err means a lost or refused connection.
func Broken(err error) bool {
	is := func(e error) bool { return errors.Is(err, e) }
	var op *net.OpError
	return errors.As(err, &op) || slices.ContainsFunc([]error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED,
	}, is)
}

// timedOut reports whether err is a network timeout.
func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// Hopeless reports whether err will recur on every retry.
func Hopeless(err error) bool {
	return errors.Is(err, driver.ErrAuth) || errors.Is(err, driver.ErrUnsupported)
}
