// Package failure puts the errors of a client library into the contract's words. Use
// a Map in every driver, with what only its own client and server say; the ends of
// connections and of time limits are the same for all.
//
// Errors are tallied by their texts. What differs between two errors of one kind, such
// as the port of our own socket, is therefore taken out of the text.
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

// local is our own address in an error of a socket ("read tcp
// 127.0.0.1:50312->127.0.0.1:6379: ...").
var local = regexp.MustCompile(`\S+->`)

// full finds a disk without room in an error that the server has no number for.
var full = regexp.MustCompile(`(?i)no space left on device|disk(?: is)? full`)

// A Map says what the errors of one client are. The zero Map knows the network only.
type Map struct {
	// Is returns the contract's error for one of the client or the server, nil for
	// none. It may also return an error of its own that wraps one.
	Is func(err error) error
	// Hide finds what only one connection says: what it matches is replaced by With.
	Hide *regexp.Regexp
	With string
}

// A Table has the errors of a client that are values, each with the contract's error that
// it is; nil: none.
type Table map[error]error

func (t Table) Find(err error) (is error, ok bool) {
	for e, is := range t {
		if errors.Is(err, e) {
			return is, true
		}
	}
	return nil, false
}

// Cause returns err in the contract's words, with a text that is the same for all
// errors of its kind. What is of no kind keeps its own. It allocates.
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
		return is // it tells err already
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

// Lost is Cause for the end of a connection: what is of no other kind is
// ErrDisconnected. A nil err is an end without a reason.
func (m Map) Lost(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the server closed it", driver.ErrDisconnected)
	}
	if err = m.Cause(err); driver.IsContract(err) && !errors.Is(err, driver.ErrTimeout) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrDisconnected, err)
}

// Unreachable is Cause for a system that was asked: what is not an answer
// (driver.IsAnswer) is ErrUnreachable.
func (m Map) Unreachable(err error) error {
	if err = m.Cause(err); err == nil || errors.Is(err, driver.ErrUnreachable) || driver.IsAnswer(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
}

// mostBrief bounds what Brief returns, in bytes.
const mostBrief = 200

// Brief returns what a server says happened, on one line: without headings, without the
// stack of its program, and without what is beyond 200 bytes.
func Brief(text string) string {
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "Message:"))
		switch {
		case line == "", line == "null", strings.HasSuffix(line, ":"):
		case strings.HasPrefix(line, "---"): // as Pulsar's brokers begin
			heading = cmp.Or(heading, strings.Trim(line, "- "))
		default:
			return shorten(line)
		}
	}
	return shorten(heading)
}

// shorten cuts a text that is too long behind a word.
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

// stack finds the stack of a program on the JVM behind a message.
var stack = regexp.MustCompile(`(?s)\s*\n\s*(Stacktrace:|at [\w$.<>/@-]+\().*`)

// Plain takes from err's text what only one connection says, and a server's stack.
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

// Said returns an error that is both is and err, and has the text of what a server said
// without its client's words around it. Use it in Map.Is.
func Said(is, err error, text string) error {
	return &plainError{is.Error() + ": " + text, errors.Join(is, err)}
}

// Broken reports whether err is the end of a connection, or one that was refused.
func Broken(err error) bool {
	is := func(e error) bool { return errors.Is(err, e) }
	var op *net.OpError
	return errors.As(err, &op) || slices.ContainsFunc([]error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED,
	}, is)
}

// timedOut reports whether err is the end of a time limit of the network.
func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// Hopeless reports whether err comes again however often one tries.
func Hopeless(err error) bool {
	return errors.Is(err, driver.ErrAuth) || errors.Is(err, driver.ErrUnsupported)
}
