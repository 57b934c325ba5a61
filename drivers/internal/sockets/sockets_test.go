package sockets_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/drivers/internal/sockets"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// listener accepts connections but sends nothing.
func listener(t *testing.T) string {
	t.Helper()
	return trial.Serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// TestClosingSocketEndsCall also checks that only Kill allows the client to reconnect.
func TestClosingSocketEndsCall(t *testing.T) {
	at := listener(t)
	for what, again := range map[string]bool{"kill": true, "refuse": false} {
		var s sockets.Set
		c, err := s.Dial(t.Context(), "tcp", at, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, shows := c.(syscall.Conn); !shows {
			t.Error("a TCP socket does not show its descriptor")
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		if again {
			s.Kill()
		} else {
			s.Refuse()
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
			t.Errorf("%s: the read ends with %v", what, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: the client's own close gives %v", what, err)
		}
		c, err = s.Dial(t.Context(), "tcp", at, time.Minute)
		if again != (err == nil) || !again && !errors.Is(err, net.ErrClosed) || s.Refused() == again {
			t.Errorf("%s: connecting again: %v", what, err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}

func TestEpochsTellConnectionsApart(t *testing.T) {
	var s sockets.Set
	seen := map[uint64]string{}
	note := func(what string, up bool) {
		t.Helper()
		e := s.Epoch()
		if before, ok := seen[e]; ok {
			t.Errorf("%s has the epoch of %s", what, before)
		}
		if seen[e] = what; sockets.Up(e) != up {
			t.Errorf("%s: up %v", what, sockets.Up(e))
		}
	}
	track := func() net.Conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		c := must.Get(s.Track(a))(t)
		return c
	}
	note("nothing yet", false)
	first := track()
	note("the first", true)
	_ = first.Close()
	note("none", false)
	_ = first.Close() // closing again changes nothing
	second := track()
	note("the second", true)
	third := track()
	note("two", true)
	_ = second.Close()
	note("the third", true)
	s.Kill()
	note("killed", false)
	e := s.Epoch()
	_ = third.Close()
	if s.Epoch() != e {
		t.Error("the end of a killed socket is an epoch of its own")
	}
}

func TestADialEndsWithItsContext(t *testing.T) {
	var s sockets.Set
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Dial(ctx, "tcp", listener(t), time.Minute); err == nil {
		t.Error("connects after the end of its context")
	}
}
