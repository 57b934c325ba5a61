package rabbitmq

import "encoding/binary"

// A listener receives what the server sends, from the reading goroutine, before the client library
// sees it.
type listener interface {
	// confirmed reports that the message with the tag, and with multiple all earlier ones, were
	// confirmed or refused.
	confirmed(tag uint64, multiple, ok bool)
	// returned reports that no queue accepted a message with this body. Its confirmation follows.
	// body belongs to the caller again on return.
	returned(code uint16, body []byte)
	// delivered reports that a message for a consumer is arriving.
	delivered()
	// reading is called when the client has processed everything and wants to read more. It may
	// block, which blocks the server too.
	reading()
}

// The parts of the protocol that are recognized (https://www.rabbitmq.com/amqp-0-9-1-reference).
const (
	frameMethod, frameHeader, frameBody     = 1, 2, 3
	classBasic                              = 60
	basicReturn, basicDeliver               = 50, 60
	basicAck, basicNack                     = 80, 120
	frameHead                               = 7  // type, channel, size
	kept                                    = 13 // bytes of a payload: a whole acknowledgement
	returnNone, returnHeader, returnContent = 0, 1, 2
)

// frames finds frames in the bytes read from a connection. A connection has one publishing channel,
// or several consuming ones: a returned message has the channel to itself.
type frames struct {
	to listener

	head [frameHead]byte
	have int    // bytes of head
	left uint32 // remaining bytes of the payload and its end octet
	body [kept]byte
	n    int // bytes of body

	returning int
	code      uint16
	content   []byte
	wanted    uint64
}

// read examines bytes as they arrive.
func (f *frames) read(p []byte) {
	for len(p) > 0 {
		if f.have < frameHead {
			n := copy(f.head[f.have:], p)
			f.have, p = f.have+n, p[n:]
			if f.have < frameHead {
				return
			}
			f.left, f.n = binary.BigEndian.Uint32(f.head[3:])+1, 0
			if f.left == 0 { // no frame is that large: this is not the protocol
				f.have = 0
			}
			continue
		}
		n := min(uint32(min(len(p), 1<<30)), f.left)
		if f.n < kept {
			f.n += copy(f.body[f.n:], p[:n])
		}
		if f.returning == returnContent && f.head[0] == frameBody {
			octets := p[:n]
			if n == f.left {
				octets = p[:n-1] // end octet of the payload
			}
			f.content = append(f.content, octets...)
		}
		f.left, p = f.left-n, p[n:]
		if f.left == 0 {
			f.have = 0
			f.whole()
		}
	}
}

// whole examines a complete frame.
func (f *frames) whole() {
	switch f.head[0] {
	case frameMethod:
		// Other frames, such as connection.blocked, may arrive between those of a returned message.
		if f.n >= 4 && binary.BigEndian.Uint16(f.body[:]) == classBasic {
			f.returning = returnNone
			f.method(binary.BigEndian.Uint16(f.body[2:]))
		}
	case frameHeader:
		if f.returning == returnHeader && f.n >= 12 {
			f.returning, f.content = returnContent, f.content[:0]
			f.wanted = binary.BigEndian.Uint64(f.body[4:])
			f.full()
		}
	case frameBody:
		if f.returning == returnContent {
			f.full()
		}
	}
}

func (f *frames) method(id uint16) {
	switch {
	case id == basicDeliver:
		f.to.delivered()
	case (id == basicAck || id == basicNack) && f.n >= kept:
		f.to.confirmed(binary.BigEndian.Uint64(f.body[4:]), f.body[12]&1 != 0, id == basicAck)
	case id == basicReturn && f.n >= 6:
		f.returning, f.code = returnHeader, binary.BigEndian.Uint16(f.body[4:])
	}
}

// full reports a returned message once it is complete.
func (f *frames) full() {
	if uint64(len(f.content)) < f.wanted {
		return
	}
	f.returning = returnNone
	f.to.returned(f.code, f.content)
	if cap(f.content) > mostSpare {
		f.content = nil
	}
}
