package redisstreams

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// holding forwards connections to a server, but delays acknowledgements until release is closed.
func holding(t *testing.T, server string, release <-chan struct{}) (address string) {
	t.Helper()
	return trial.Serve(t, func(in net.Conn) {
		out, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(in, out)
			_ = in.Close()
		}()
		defer out.Close() // ends the other copy
		b := make([]byte, 64<<10)
		for {
			n, err := in.Read(b)
			if bytes.Contains(b[:n], []byte("xack")) {
				<-release
			}
			if _, werr := out.Write(b[:n]); err != nil || werr != nil {
				return
			}
		}
	})
}

// TestEntriesBeingAckedAreNotClaimed has acknowledgements in flight while the consumer checks a
// second time for entries left by others.
func TestEntriesBeingAckedAreNotClaimed(t *testing.T) {
	s := redistest.Start(t)
	stream(t, raw(t, s.Address), 10)
	release := make(chan struct{})
	c := durably(t, "a", holding(t, s.Address, release))
	sink := trial.NewLog()
	member(t, c, driver.ConsumerSpec{From: driver.Position{At: driver.AtEarliest}}, sink)
	eventually(t, "all arrive", func() bool { return len(sink.Distinct()) == 10 })
	time.Sleep(5 * lookAgain)
	close(release)
	trial.Drained(t, c, "s", "d")
	if got := look(sink, func() []string { return slices.Clone(sink.Got) }); !slices.Equal(got, entries(0, 10)) {
		t.Errorf("delivered %v", got)
	}
	if got := look(sink, func() []string { return sink.Again }); len(got) > 0 {
		t.Errorf("taken over from itself: %v", got)
	}
}
