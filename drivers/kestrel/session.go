package kestrel

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

const (
	longestLine = 64 << 10 // bytes of a line in an answer
	largest     = 64 << 20 // bytes of an item that a session accepts
)

// Errors that keep a connection usable.
var (
	errNotStored = errors.New("the server did not store the item")
	errRefused   = errors.New("the server refused the command")
	errServer    = errors.New("the server failed")
)

// answers maps them to the contract's errors.
var answers = failure.Table{errNotStored: driver.ErrOverloaded, errRefused: driver.ErrUnsupported, errServer: nil}

// errAnswer means that the server does not speak this protocol, or that an answer is incomplete.
var errAnswer = errors.New("the answer is not of the memcache protocol")

// A session is a connection, used by one goroutine at a time. Each method sends one command and
// reads its whole answer.
type session struct {
	r    *bufio.Reader
	w    *bufio.Writer
	c    net.Conn
	line []byte // of a command
	item []byte // the last item read
}

func newSession(c net.Conn) *session {
	return &session{r: bufio.NewReaderSize(c, longestLine), w: bufio.NewWriterSize(c, 32<<10), c: c}
}

func (s *session) Close() error { return s.c.Close() }

// command sends a line.
func (s *session) command(words ...string) error {
	s.line = s.line[:0]
	for i, w := range words {
		if i > 0 {
			s.line = append(s.line, ' ')
		}
		s.line = append(s.line, w...)
	}
	return s.flush(append(s.line, "\r\n"...))
}

func (s *session) flush(line []byte) error {
	s.line = line
	if _, err := s.w.Write(line); err != nil {
		return err
	}
	return s.w.Flush()
}

// answer reads a line without its line ending. The line is valid until the next call.
func (s *session) answer() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: a line has more than 64 KiB", errAnswer)
	}
	if err != nil {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	for _, e := range [...]struct {
		prefix string
		is     error
	}{{"NOT_STORED", errNotStored}, {"CLIENT_ERROR", errRefused}, {"ERROR", errRefused}, {"SERVER_ERROR", errServer}} {
		if rest, ok := bytes.CutPrefix(line, []byte(e.prefix)); ok {
			if rest = bytes.TrimSpace(rest); len(rest) == 0 {
				return nil, e.is
			}
			return nil, fmt.Errorf("%w: %.200q", e.is, rest)
		}
	}
	return line, nil
}

// set stores an item. expiry is in seconds; 0: never.
func (s *session) set(queue string, expiry int64, item []byte) error {
	s.line = append(append(s.line[:0], "set "...), queue...)
	s.line = strconv.AppendInt(append(s.line, " 0 "...), expiry, 10)
	s.line = strconv.AppendInt(append(s.line, ' '), int64(len(item)), 10)
	if _, err := s.w.Write(append(s.line, "\r\n"...)); err != nil {
		return err
	}
	if _, err := s.w.Write(item); err != nil {
		return err
	}
	if err := s.flush(append(s.line[:0], "\r\n"...)); err != nil {
		return err
	}
	line, err := s.answer()
	if err == nil && string(line) != "STORED" {
		err = fmt.Errorf("%w: %.200q to a set", errAnswer, line)
	}
	return err
}

// get sends a get of the whole key, with its options. The item is valid until the next get; ok is
// false if there is none.
func (s *session) get(key string) (item []byte, ok bool, err error) {
	if err := s.command("get", key); err != nil {
		return nil, false, err
	}
	line, err := s.answer()
	if err != nil || string(line) == "END" {
		return nil, false, err
	}
	words := bytes.Fields(line)
	if len(words) != 4 || string(words[0]) != "VALUE" {
		return nil, false, fmt.Errorf("%w: %.200q to a get", errAnswer, line)
	}
	n, err := strconv.ParseUint(string(words[3]), 10, 64)
	if err != nil || n > largest {
		return nil, false, fmt.Errorf("%w: an item of %.20q bytes", errAnswer, words[3])
	}
	if uint64(cap(s.item)) < n+2 {
		s.item = make([]byte, n+2)
	}
	s.item = s.item[:n+2]
	if _, err := io.ReadFull(s.r, s.item); err != nil {
		return nil, false, err
	}
	end, err := s.answer()
	if err == nil && (!bytes.HasSuffix(s.item, []byte("\r\n")) || string(end) != "END") {
		err = fmt.Errorf("%w: an item has no end", errAnswer)
	}
	return s.item[:n], err == nil, err
}

// tell sends a command with a one-line answer.
func (s *session) tell(words ...string) (string, error) {
	if err := s.command(words...); err != nil {
		return "", err
	}
	line, err := s.answer()
	return string(line), err
}

// stats returns the server's statistics by name.
func (s *session) stats() (map[string]string, error) {
	if err := s.command("stats"); err != nil {
		return nil, err
	}
	figures := map[string]string{}
	for len(figures) < maxFigures {
		line, err := s.answer()
		if err != nil || string(line) == "END" {
			return figures, err
		}
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != "STAT" {
			return nil, fmt.Errorf("%w: %.200q to stats", errAnswer, line)
		}
		figures[string(words[1])] = string(bytes.Join(words[2:], []byte(" ")))
	}
	return nil, fmt.Errorf("%w: stats has more than %d figures", errAnswer, maxFigures)
}

// maxFigures limits the number of statistics: a server reports about 20 per queue.
const maxFigures = 1 << 20
