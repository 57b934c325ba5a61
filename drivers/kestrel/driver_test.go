package kestrel

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The suite runs against a simulated server: no package registry offers a real one.
func TestConformance(t *testing.T) {
	for name, fanout := range map[string]string{"queue": "no", "fanout": "yes"} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t)
			drivertest.Run(t, Definition(), drivertest.Harness{
				Options: map[string][]string{"address": {s.Address}, "fanout": {fanout}, "wait": {"10ms"}, "poll": {"1ms"}},
				Quiet:   100 * time.Millisecond, Cut: s.Cut, Stall: s.Stall, Expect: 29,
			})
		})
	}
}

func TestFailedSetKeepsConnection(t *testing.T) {
	s := newFakeServer(t)
	c := trial.Opened(t, Definition(), driver.Run{ID: "stores"}, nil, "address", s.Address)
	p, f := trial.Producer(t, c, "full", "empty")
	for destination, want := range map[string]error{"full": driver.ErrOverloaded, "empty": nil} {
		p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte("x")})
		if err := f.Next(t); !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", destination, err, want)
		}
	}
}

func TestForeignProtocolIsRejected(t *testing.T) {
	address := trial.Serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	trial.Refuses(t, Definition(), nil, trial.Mistake{Name: "an HTTP server", Set: []string{"address", address}})
}

func FuzzAnswers(f *testing.F) {
	for _, s := range []string{"VALUE q 0 3\r\nabc\r\nEND\r\n", "END\r\n", "VALUE q 0 99\r\nabc", "STAT a b\r\nEND\r\n", "SERVER_ERROR x\r\n", "STORED\r\n", "VALUE q 0 -1\r\n", "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		answering := func() *session {
			return &session{r: bufio.NewReaderSize(bytes.NewReader(b), longestLine), w: bufio.NewWriter(io.Discard)}
		}
		item, ok, err := answering().get("q")
		if ok && (err != nil || len(item) > len(b)) {
			t.Errorf("an item of %d bytes and %v from %d", len(item), err, len(b))
		}
		if err := answering().set("q", 0, []byte("x")); err == nil && !strings.HasPrefix(string(b), "STORED") {
			t.Errorf("stored by %q", b)
		}
		if figures, err := answering().stats(); err == nil && figures == nil {
			t.Error("no figures and no error")
		}
	})
}

func TestACommandAllocatesNothing(t *testing.T) {
	const runs = 200
	item := bytes.Repeat([]byte("x"), 1024)
	for name, test := range map[string]struct {
		answer string
		do     func(s *session) error
	}{
		"set": {"STORED\r\n", func(s *session) error { return s.set("weir-run-d", 0, item) }},
		"get": {"VALUE q 0 1024\r\n" + string(item) + "\r\nEND\r\n", func(s *session) error { _, _, err := s.get("q"); return err }},
	} {
		s := &session{r: bufio.NewReader(strings.NewReader(strings.Repeat(test.answer, runs+2))), w: bufio.NewWriter(io.Discard)}
		if err := test.do(s); err != nil { // buffers grow once
			t.Fatal(err)
		}
		var err error
		most := map[string]float64{"set": 0, "get": 1}[name] // the words of an answer
		if got := testing.AllocsPerRun(runs-1, func() { err = errors.Join(err, test.do(s)) }); got > most || err != nil {
			t.Errorf("%s: %v allocations, %v", name, got, err)
		}
	}
}
