package rabbitmqstream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

// Command keys, and codes of their answers
// (https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbitmq_stream/docs/PROTOCOL.adoc).
const (
	cmdSubscribe      = 0x07
	cmdDeliver        = 0x08
	cmdQueryOffset    = 0x0b
	cmdCreate         = 0x0d
	cmdDelete         = 0x0e
	cmdMetadata       = 0x0f
	cmdPeerProperties = 0x11
	cmdHandshake      = 0x12
	cmdAuthenticate   = 0x13
	cmdTune           = 0x14
	cmdOpen           = 0x15
	cmdClose          = 0x16
	answerBit         = 0x8000
	protocol          = 1 // version of each command

	codeOK           = 1
	codeMissing      = 2
	codeExists       = 5
	codeNotAvailable = 6
	codeNoOffset     = 19
)

// A code is the code of an error answer.
type code uint16

// codes has the client's error for each code, since the client does not export its own table.
var codes = map[code]error{
	codeMissing: stream.StreamDoesNotExist, codeExists: stream.StreamAlreadyExists, codeNotAvailable: stream.StreamNotAvailable,
	8: stream.AuthenticationFailure, 9: errMechanism, 10: errMechanism, 11: stream.AuthenticationFailureLoopbackError,
	12: stream.VirtualHostAccessFailure, 13: stream.UnknownFrame, 14: stream.FrameTooLarge, 15: stream.InternalError,
	16: stream.CodeAccessRefused, 17: stream.PreconditionFailed, codeNoOffset: stream.OffsetNotFoundError,
}

var errMechanism = errors.New("authentication needs another mechanism")

func (c code) Error() string {
	if err := codes[c]; err != nil {
		return err.Error()
	}
	return fmt.Sprintf("code %d", uint16(c))
}

func (c code) Unwrap() error { return codes[c] }

// A reader reads fields from a frame. A missing field is 0, and sets cut.
type reader struct {
	b   []byte
	cut bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.cut = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(int(r.u16()))) }

func (r *reader) pairs() map[string]string {
	all := map[string]string{}
	for n := r.u32(); n > 0 && !r.cut; n-- {
		name := r.text()
		all[name] = r.text()
	}
	return all
}

// A topology is the location of a stream.
type topology struct {
	leader  string // host:port; "": none at the moment
	members int    // including the leader
}

// topology parses the answer to a metadata request for one stream.
func (r *reader) topology() (t topology, err error) {
	at := map[uint16]string{}
	for n := r.u32(); n > 0 && !r.cut; n-- {
		ref, host, port := r.u16(), r.text(), r.u32()
		at[ref] = hostPort(host, port)
	}
	if r.u32() == 0 {
		return t, code(codeMissing)
	}
	r.text() // the stream
	switch is := code(r.u16()); is {
	case codeOK:
	case codeNotAvailable:
		return t, nil
	default:
		return t, is
	}
	if t.leader = at[r.u16()]; t.leader != "" {
		t.members = 1
	}
	for n := r.u32(); n > 0 && !r.cut; n-- {
		if at[r.u16()] != "" {
			t.members++
		}
	}
	return t, nil
}

// A chunk is a group of messages that the server delivers together.
type chunk struct {
	first   uint64 // offset
	records uint32
}

// chunk parses the header of a delivery.
func (r *reader) chunk() chunk {
	r.take(1 + 1 + 1 + 2) // subscription, magic and version, kind, entries
	records := r.u32()
	r.take(8 + 8) // time, epoch
	return chunk{r.u64(), records}
}

// A frame is a frame being written.
type frame []byte

func newFrame(key uint16) frame {
	return append(binary.BigEndian.AppendUint16(make(frame, 4, 64), key), 0, protocol)
}

func (f frame) u16(n uint16) frame { return binary.BigEndian.AppendUint16(f, n) }
func (f frame) u32(n uint32) frame { return binary.BigEndian.AppendUint32(f, n) }
func (f frame) u64(n uint64) frame { return binary.BigEndian.AppendUint64(f, n) }
func (f frame) text(s string) frame {
	return append(f.u16(uint16(len(s))), s...)
}

func (f frame) done() []byte {
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	return f
}
