package iris

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// First byte of a relay protocol message, in both directions.
const (
	opInit      = 0x00
	opDeny      = 0x01
	opClose     = 0x02
	opBroadcast = 0x03
	opRequest   = 0x04
	opReply     = 0x05
	opSubscribe = 0x06
	opPublish   = 0x08
)

const (
	protocol     = "v1.0-draft2"
	ourMagic     = "iris-client-magic"
	relayMagic   = "iris-relay-magic"
	largest      = 64 << 20 // bytes of a message that a session accepts
	longestText  = 64 << 10 // bytes of a name, or of a reason
	bufferedSize = 32 << 10 // bytes, per direction
)

var (
	errRelay  = errors.New("the answer is not of the relay protocol of Iris")
	errDenied = errors.New("the relay denied the connection")
)

// answers are the errors that keep a connection usable; a denied connection is not retried.
var answers = failure.Table{errDenied: driver.ErrUnsupported, errFault: nil, errNoReply: driver.ErrTimeout}

// A session is a connection to a relay. Several goroutines may send; one reads.
type session struct {
	c net.Conn
	r *bufio.Reader

	mu     sync.Mutex
	w      *bufio.Writer
	head   []byte        // of the message being sent
	writes atomic.Uint64 // started plus finished: odd during a write

	body []byte // of the last message read
}

// An event is a message from the relay. The session reuses the body for the next event.
type event struct {
	op   byte
	id   uint64 // of a request, reply or tunnel
	n    uint64 // bytes, in a tunnel message
	body []byte
	err  error // of a failed request
}

// errFault means that a responder refused a request.
var errFault = errors.New("the responder refused the request")

// errNoReply is the relay's timeout for a request.
var errNoReply = errors.New("the relay got no reply within the time of the request")

// newSession starts a session as a member of a cluster, or as a client if cluster is "". It owns c
// even on failure. It stops when ctx ends.
func newSession(ctx context.Context, c net.Conn, cluster string) (*session, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	s := &session{c: c, r: bufio.NewReaderSize(c, bufferedSize), w: bufio.NewWriterSize(c, bufferedSize)}
	err := s.flush(text(text(text([]byte{opInit}, ourMagic), protocol), cluster), nil)
	if err == nil {
		err = s.welcome()
	}
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return s, nil
}

// welcome reads the relay's answer to the first message.
func (s *session) welcome() error {
	op, err := s.r.ReadByte()
	if err != nil {
		return err
	}
	if op != opInit && op != opDeny {
		return fmt.Errorf("%w: it begins with byte %d", errRelay, op)
	}
	magic, err := s.text()
	if err != nil {
		return err
	}
	if magic != relayMagic {
		return fmt.Errorf("%w: it has %.40q", errRelay, magic)
	}
	said, err := s.text()
	if err == nil && op == opDeny {
		err = fmt.Errorf("%w: %.200q", errDenied, said)
	}
	return err
}

// text appends a text with its length.
func text(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// flush sends head, which the session then owns, followed by payload. s.mu is held, or nobody else
// has the session yet.
func (s *session) flush(head, payload []byte) error {
	err := s.put(head, payload)
	if err == nil {
		err = s.out()
	}
	return err
}

// put is flush, but the data may wait for the next flush.
func (s *session) put(head, payload []byte) error {
	s.writes.Add(1)
	defer s.writes.Add(1)
	s.head = head
	_, err := s.w.Write(head)
	if err == nil {
		_, err = s.w.Write(payload)
	}
	return err
}

// out sends buffered data. s.mu is also held.
func (s *session) out() error {
	s.writes.Add(1)
	defer s.writes.Add(1)
	return s.w.Flush()
}

// message sends a payload to a cluster (opBroadcast) or a topic (opPublish).
func (s *session) message(op byte, to string, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush(binary.AppendUvarint(text(append(s.head[:0], op), to), uint64(len(payload))), payload)
}

// request sends a request to a cluster. The relay answers it within limit, in whole milliseconds.
func (s *session) request(cluster string, payload []byte, limit time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := text(append(s.head[:0], opRequest, 0), cluster)
	head = append(binary.AppendUvarint(head, uint64(len(payload))), payload...)
	return s.flush(binary.AppendUvarint(head, uint64(limit.Milliseconds())), nil)
}

// reply answers a request, with a fault if refused is set. A relay treats an empty reply as none,
// so no reply is empty.
func (s *session) reply(id uint64, payload []byte, refused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	head, good := binary.AppendUvarint(append(s.head[:0], opReply), id), byte(1)
	if refused {
		good, payload = 0, []byte("refused")
	}
	return s.flush(binary.AppendUvarint(append(head, good), uint64(len(payload))), payload)
}

// subscribe subscribes to a topic.
func (s *session) subscribe(topic string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush(text(append(s.head[:0], opSubscribe), topic), nil)
}

// leaveLimit limits how long a relay may take to release a session.
const leaveLimit = 2 * time.Second

// leave asks the relay to end the session. The relay first handles everything it was sent, which it
// would drop if the connection were simply closed. After that, next returns io.EOF.
func (s *session) leave() {
	time.AfterFunc(leaveLimit, func() { _ = s.Close() })
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.flush(append(s.head[:0], opClose), nil); err != nil {
		_ = s.Close()
	}
}

// left leaves, and waits until the relay has released the session.
func (s *session) left() error {
	s.leave()
	for {
		var e event
		if err := s.next(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// next reads a message. io.EOF means the end of the session.
func (s *session) next(e *event) error {
	op, err := s.r.ReadByte()
	if err != nil {
		return err
	}
	*e = event{op: op}
	switch op {
	case opBroadcast:
		e.body, err = s.bytes()
	case opPublish:
		if _, err = s.text(); err == nil {
			e.body, err = s.bytes()
		}
	case opRequest:
		if e.id, err = binary.ReadUvarint(s.r); err == nil {
			e.body, err = s.bytes()
		}
		if err == nil {
			_, err = binary.ReadUvarint(s.r) // how long the relay waits for it
		}
	case opReply:
		err = s.replied(e)
	case opTunnelInit, opTunnelConfirm, opTunnelAllow, opTunnelTransfer, opTunnelClose:
		err = s.tunnelled(e)
	case opClose:
		var why string
		if why, err = s.text(); err == nil && why == "" {
			err = io.EOF
		} else if err == nil {
			err = fmt.Errorf("%w: the relay closed it: %.200q", driver.ErrDisconnected, why)
		}
	default:
		err = fmt.Errorf("%w: a message begins with byte %d", errRelay, op)
	}
	return err
}

// replied reads the rest of a reply.
func (s *session) replied(e *event) (err error) {
	if e.id, err = binary.ReadUvarint(s.r); err != nil {
		return err
	}
	late, err := s.r.ReadByte()
	if err != nil {
		return err
	}
	if late != 0 {
		e.err = errNoReply
		return nil
	}
	good, err := s.r.ReadByte()
	if err != nil {
		return err
	}
	if e.body, err = s.bytes(); err == nil && good == 0 {
		e.err = fmt.Errorf("%w: %.100q", errFault, e.body)
	}
	return err
}

// bytes reads bytes with their length.
func (s *session) bytes() ([]byte, error) { return s.atMost(largest) }

// text reads a text with its length.
func (s *session) text() (string, error) {
	b, err := s.atMost(longestText)
	return string(b), err
}

func (s *session) atMost(most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(s.r)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("%w: %d bytes, of at most %d", errRelay, n, most)
	}
	if uint64(cap(s.body)) < n {
		s.body = make([]byte, n)
	}
	s.body = s.body[:n]
	_, err = io.ReadFull(s.r, s.body)
	return s.body, err
}

// ask sends a request and reads its answer; the relay always sends one. It is for a session that
// receives no other messages. The reply is valid until the next call.
func (s *session) ask(cluster string, payload []byte, limit time.Duration) (reply []byte, err error) {
	if err := s.request(cluster, payload, limit); err != nil {
		return nil, err
	}
	var e event
	if err := s.next(&e); err != nil {
		return nil, err
	}
	if e.op != opReply {
		return nil, fmt.Errorf("%w: byte %d begins the answer to a request", errRelay, e.op)
	}
	return e.body, e.err
}

func (s *session) Close() error { return s.c.Close() }
