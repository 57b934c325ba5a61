package iris

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// says returns an address where each connection receives an answer and is closed.
func says(t *testing.T, answer string) string {
	t.Helper()
	return trial.Serve(t, func(c net.Conn) {
		_, _ = io.WriteString(c, answer)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
}

// TestNonIrisServerIsRejected uses servers with wrong answers.
func TestNonIrisServerIsRejected(t *testing.T) {
	denial := string(text(text([]byte{opDeny}, relayMagic), "Unsupported protocol."))
	for name, test := range map[string]struct {
		answer string
		is     error
		says   string
	}{
		"HTTP":         {"HTTP/1.1 400 Bad Request\r\n\r\n", driver.ErrUnreachable, "not of the relay protocol of Iris"},
		"a denial":     {denial, driver.ErrUnsupported, "Unsupported protocol."},
		"no answer":    {"", driver.ErrUnreachable, "EOF"},
		"other magic":  {string(text([]byte{opInit}, "x")), driver.ErrUnreachable, "not of the relay protocol of Iris"},
		"a long magic": {"\x00\xff\xff\xff\xff\x7f", driver.ErrUnreachable, "of at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trial.Open(t, Definition(), driver.Run{}, nil, "address", says(t, test.answer), "timeout", "3s")
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestErrorsBeforeConnecting(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "no address", Set: []string{"address", ""}, Option: "address", Says: "is not an address"},
		trial.Mistake{Name: "a name of a host, with a namespace", Set: []string{"address", "localhost:1", "namespace", "f"}, Option: "address", Says: "is not an IP address"},
	)
	if _, err := trial.Open(t, Definition(), driver.Run{Existing: true}, nil); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("destinations that exist: %v", err)
	}
}

// TestTheNamespaceOfAProcess checks that errors explain what is wrong with the option.
func TestTheNamespaceOfAProcess(t *testing.T) {
	s := up(t)
	dir := t.TempDir()
	gone := exec.Command("true")
	must.Do(t, gone.Run())
	for name, test := range map[string]struct{ text, says string }{
		"none":      {"", "no such file"},
		"no number": {"x\n", "does not hold the number of a process"},
		"gone":      {strconv.Itoa(gone.Process.Pid), "the network namespace of process"},
	} {
		file := filepath.Join(dir, name)
		if test.text != "" {
			must.Do(t, os.WriteFile(file, []byte(test.text), 0o600))
		}
		_, err := trial.Open(t, Definition(), driver.Run{}, s.Options, "namespace", file)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheGuaranteeFollowsThePattern uses two nodes.
// TestDeleteDiscardsMessagesInFlight lets a producer opened before Delete send after the
// destination was recreated: the worst case of a slow node.
func TestDeleteDiscardsMessagesInFlight(t *testing.T) {
	for _, pattern := range []string{patternPublish, patternBroadcast} {
		t.Run(pattern, func(t *testing.T) {
			c := trial.Declared(t, Definition(), up(t).Options, "pattern", pattern)
			before, late := trial.Producer(t, c, "d")
			d := trial.Plain("d")
			must.Do(t, errors.Join(c.Delete(t.Context(), d), c.Declare(t.Context(), d)))
			k := trial.NewLog()
			consume(t, c, 0, k)
			after, fates := trial.Producer(t, c, "d")
			if got := late.Confirmed(t, before, 20); got != 20 {
				t.Errorf("%d of 20 sent", got)
			}
			if got := fates.Confirmed(t, after, 1); got != 1 {
				t.Errorf("%d of 1 sent", got)
			}
			if !trial.Eventually(func() bool { return count(k) > 0 }) {
				t.Error("nothing arrived")
			}
			if left := trial.Backlog(t, c); left != 0 || count(k) != 1 {
				t.Errorf("%d messages arrived, of 1 since Delete, and %d are to come", count(k), left)
			}
		})
	}
}

// TestWriteDoesNotAllocate writes to a socket that nobody reads.
func TestWriteDoesNotAllocate(t *testing.T) {
	s := &session{w: bufio.NewWriter(io.Discard)}
	payload := make([]byte, 1024)
	for what, f := range map[string]func() error{
		"a message": func() error { return s.message(opPublish, "topic", payload) },
		"a request": func() error { return s.request("cluster", payload, time.Second) },
		"a reply":   func() error { return s.reply(7, payload, false) },
		"a part":    func() error { return s.transfer(0, len(payload), payload) },
		"room":      func() error { return s.tell(opTunnelAllow, 7, 1024) },
	} {
		if n := testing.AllocsPerRun(100, func() { _ = f() }); n > 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

func FuzzMessagesOfARelay(f *testing.F) {
	sent := func(build func(*session)) {
		var b bytes.Buffer
		s := &session{w: bufio.NewWriter(&b)}
		build(s)
		f.Add(b.Bytes())
	}
	sent(func(s *session) { _ = s.message(opPublish, "t", []byte("abc")) })
	sent(func(s *session) { _ = s.reply(1, []byte("abc"), true) })
	f.Add([]byte{opBroadcast, 3, 'a', 'b', 'c', opReply, 1, 1, opClose, 0})
	sent(func(s *session) {
		_ = errors.Join(s.transfer(1, 3, []byte("abc")), s.tell(opTunnelAllow, 1, 3), s.flushed())
	})
	f.Add([]byte{opTunnelInit, 0, 9, opTunnelConfirm, 1, 1, opTunnelConfirm, 1, 0, 9, opTunnelClose, 1, 0})
	f.Add(append([]byte{opRequest, 1}, binary.AppendUvarint(nil, largest+1)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &session{r: bufio.NewReaderSize(bytes.NewReader(b), bufferedSize)}
		for {
			var e event
			if err := s.next(&e); err != nil {
				return
			}
			if len(e.body) > len(b) {
				t.Fatalf("a body of %d bytes from %d", len(e.body), len(b))
			}
		}
	})
}

func TestPageGuaranteesMatchServers(t *testing.T) {
	lent(t)
	served.Guarantees(t, Definition(), shared, "")
}
