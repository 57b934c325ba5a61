package rabbitmq

import "encoding/binary"

// A listener is told what the server sends, by the goroutine that reads, before
// the client library knows it.
type listener interface {
	// confirmed says that the message with the tag, and with multiple all before
	// it, were confirmed, or refused.
	confirmed(tag uint64, multiple, ok bool)
	// returned says that no queue took a message with this body. Its confirmation
	// follows. body is the caller's again on return.
	returned(code uint16, body []byte)
	// delivered says that a message is on its way to a consumer.
	delivered()
	// reading says that the client has looked at all that was read, and wants more.
	// It may wait, and the server with it.
	reading()
}

// What is looked for in the protocol.
// (https://www.rabbitmq.com/amqp-0-9-1-reference)
const (
	frameMethod, frameHeader, frameBody     = 1, 2, 3
	classBasic                              = 60
	basicReturn, basicDeliver               = 50, 60
	basicAck, basicNack                     = 80, 120
	frameHead                               = 7  // type, channel, size
	kept                                    = 13 // bytes of a payload: an acknowledgement whole
	returnNone, returnHeader, returnContent = 0, 1, 2
)

// frames finds the frames in what a connection reads. A connection has one channel
// that publishes, or several that consume: a returned message has the channel to
// itself.
type frames struct {
	to listener

	head [frameHead]byte
	have int    // bytes of head
	left uint32 // bytes of the payload, and the octet behind it, still to come
	body [kept]byte
	n    int // bytes of body

	returning int
	code      uint16
	content   []byte
	wanted    uint64
}

// read looks at bytes as they come.
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
				octets = p[:n-1] // the octet behind the payload
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

// whole looks at a frame that has come.
func (f *frames) whole() {
	switch f.head[0] {
	case frameMethod:
		// Others may come between the frames of a returned message: connection.blocked.
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

// full tells of a returned message when all of it is there.
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
