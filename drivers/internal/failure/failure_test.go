package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

var errFull = errors.New("queue 4f2a is full")

// words is a Map like a driver's.
var words = failure.Map{
	Is: func(err error) error {
		if errors.Is(err, errFull) {
			return driver.ErrOverloaded
		}
		return nil
	},
	Hide: regexp.MustCompile(`queue [0-9a-f]{4}`), With: "queue *",
}

// reset returns a socket's error.
func reset(port int) error {
	return &net.OpError{
		Op: "read", Net: "tcp", Err: syscall.ECONNRESET,
		Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379},
	}
}

// TestErrorsMapToContractErrors checks each kind's error in the three situations, and its text.
func TestErrorsMapToContractErrors(t *testing.T) {
	odd := errors.New("odd")
	for _, tc := range []struct {
		err                      error
		cause, lost, unreachable error
		text                     string // from Cause
	}{
		{nil, nil, driver.ErrDisconnected, nil, ""},
		{errFull, driver.ErrOverloaded, driver.ErrOverloaded, driver.ErrOverloaded, "system overloaded: queue * is full"},
		{io.EOF, driver.ErrDisconnected, driver.ErrDisconnected, driver.ErrUnreachable, "connection lost: EOF"},
		{reset(50312), driver.ErrDisconnected, driver.ErrDisconnected, driver.ErrUnreachable, "connection lost: read tcp 127.0.0.1:6379: connection reset by peer"},
		{context.DeadlineExceeded, driver.ErrTimeout, driver.ErrDisconnected, driver.ErrUnreachable, "confirmation timed out: context deadline exceeded"},
		{fmt.Errorf("login: %w", driver.ErrAuth), driver.ErrAuth, driver.ErrAuth, driver.ErrAuth, "login: credentials refused"},
		{errors.New("write: no space left on device"), driver.ErrBlocked, driver.ErrBlocked, driver.ErrBlocked, "system takes no messages: write: no space left on device"},
		{errors.New("database or disk is full (13)"), driver.ErrBlocked, driver.ErrBlocked, driver.ErrBlocked, "system takes no messages: database or disk is full (13)"},
		{odd, odd, driver.ErrDisconnected, driver.ErrUnreachable, "odd"},
	} {
		cause := words.Cause(tc.err)
		if !errors.Is(cause, tc.cause) || cause != nil && cause.Error() != tc.text {
			t.Errorf("Cause(%v) = %v; want %q, which is %v", tc.err, cause, tc.text, tc.cause)
		}
		if err := words.Lost(tc.err); !errors.Is(err, tc.lost) {
			t.Errorf("Lost(%v) = %v; want %v", tc.err, err, tc.lost)
		}
		if err := words.Unreachable(tc.err); !errors.Is(err, tc.unreachable) {
			t.Errorf("Unreachable(%v) = %v; want %v", tc.err, err, tc.unreachable)
		}
		if !errors.Is(cause, tc.err) {
			t.Errorf("Cause(%v) does not wrap it", tc.err)
		}
	}
}

func TestCauseOmitsClientPort(t *testing.T) {
	var none failure.Map
	if a, b := none.Cause(reset(1)), none.Cause(reset(2)); a.Error() != b.Error() {
		t.Errorf("%v and %v", a, b)
	}
}

func TestServerMessageIsOneLine(t *testing.T) {
	for said, want := range map[string]string{
		"exists": "exists",
		"":       "",
		"\n --- An unexpected error occurred in the server ---\n\nMessage: Bookie is gone\n\nStacktrace:\n\norg.example.Gone: x\n\tat org.example.A.b(A.java:1)\n": "Bookie is gone",
		" --- An unexpected error occurred in the server ---\n\nMessage: null\n\nStacktrace:\n\norg.example.Gone\n\tat org.example.A.b(A.java:1)\n":                "org.example.Gone",
		" --- An unexpected error ---\n":    "An unexpected error",
		strings.Repeat("word ", 100):        strings.Repeat("word ", 40) + "...",
		strings.Repeat("\u00e9", 150) + "x": strings.Repeat("\u00e9", 100) + " ...",
	} {
		if got := failure.Brief(said); got != want {
			t.Errorf("%q: %q; want %q", said, got, want)
		}
	}
	err := errors.New("the server says: org.example.Gone: no\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n\tat x.Y.z(Y.java:1)")
	if got := words.Cause(err).Error(); got != "the server says: org.example.Gone: no" {
		t.Errorf("with a stack: %q", got)
	}
	both := errors.Join(errors.New("one"), errors.New("at two"))
	if got := words.Cause(both).Error(); got != "one\nat two" {
		t.Errorf("two errors: %q", got)
	}
}

func TestSaidWrapsBothErrors(t *testing.T) {
	err := errors.New("Exception (403) Reason: refused")
	m := failure.Map{Is: func(err error) error { return failure.Said(driver.ErrAuth, err, "403 refused") }}
	got := m.Cause(fmt.Errorf("dialing: %w", err))
	if want := driver.ErrAuth.Error() + ": 403 refused"; got.Error() != want || !errors.Is(got, driver.ErrAuth) || !errors.Is(got, err) {
		t.Errorf("%v; want %s", got, want)
	}
}
