package exec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/weirmq/weir/driver"
)

// A kind is a kind of frame. docs/examples/exec/README.md describes each.
type kind byte

// The kinds of frame.
const (
	hello    kind = iota + 1 // child, first on each connection: fields
	ask                      // weir, control: number, fields
	answer                   // child, control: number, fields
	publish                  // weir, producer: messages
	complete                 // child, producer: outcomes of messages
	run                      // weir, consumer: start
	ready                    // child, consumer: subscription established
	deliver                  // child, consumer: number, messages
	settle                   // weir, consumer: number, whether they were accepted
	settled                  // child, consumer: number, error
	fault                    // child, consumer: survived error
	lost                     // child, consumer: error that ended the subscription
	end                      // weir, producer and consumer: finish and close
)

const (
	header    = 5        // bytes of a frame's length and kind
	mostFrame = 65 << 20 // bytes of a frame without its length field
	mostText  = 1 << 20  // the same for a frame of fields
	growth    = 1 << 20  // bytes allocated for a frame before they arrive
	none      = 1<<32 - 1
	nowhere   = 1<<16 - 1

	isAgain = 1 // flag of a message: delivered before
	hasKey  = 2 // flag of a message: a key follows
)

// errMalformed means that the child violates the protocol.
var errMalformed = errors.New("malformed frame")

// frames reads frames.
type frames struct {
	from *bufio.Reader
	head [header]byte
	body []byte // of the last frame
}

func newFrames(from io.Reader) *frames { return &frames{from: bufio.NewReaderSize(from, 64<<10)} }

// next returns the next frame. Its body is valid until the next call. io.EOF means that the other
// side closed the connection between two frames.
func (f *frames) next() (kind, []byte, error) {
	if _, err := io.ReadFull(f.from, f.head[:]); err != nil {
		return 0, nil, err
	}
	n, k := int(binary.BigEndian.Uint32(f.head[:])), kind(f.head[4])
	most := mostText
	if k == deliver || k == complete || k == publish {
		most = mostFrame
	}
	switch {
	case k < hello || k > end:
		return 0, nil, fmt.Errorf("%w: kind %d is not known", errMalformed, k)
	case n < 1 || n > most:
		return 0, nil, fmt.Errorf("%w: kind %d of %d bytes (1 to %d)", errMalformed, k, n, most)
	}
	// A length alone must not cost memory.
	f.body = f.body[:0]
	for n--; len(f.body) < n; {
		have := len(f.body)
		step := min(n-have, max(growth, cap(f.body)-have))
		if cap(f.body) < have+step {
			f.body = append(make([]byte, 0, max(have+step, min(n, 2*cap(f.body)))), f.body...)
		}
		f.body = f.body[:have+step]
		if _, err := io.ReadFull(f.from, f.body[have:]); err != nil {
			return 0, nil, fmt.Errorf("%w: it ends after %d of %d bytes", errMalformed, have, n)
		}
	}
	return k, f.body, nil
}

// begin appends a frame header. finish fills in its length.
func begin(b []byte, k kind) []byte { return append(b, 0, 0, 0, 0, byte(k)) }

// finish writes the length of the frame that begins at start and ends with b.
func finish(b []byte, start int) {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
}

// A cursor reads the parts of a body. After a missing part, failed is set and all parts are empty.
type cursor struct {
	b      []byte
	failed bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.b, c.failed = nil, true
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}

func (c *cursor) number(size int) (n uint64) {
	for _, b := range c.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

// err returns an error unless the body was well formed and fully read.
func (c *cursor) err(k kind) error {
	switch {
	case c.failed:
		return fmt.Errorf("%w: kind %d is cut off", errMalformed, k)
	case len(c.b) > 0:
		return fmt.Errorf("%w: kind %d has %d bytes too many", errMalformed, k, len(c.b))
	}
	return nil
}

// fields maps names to values, as in control frames. A name may have several values.
type fields map[string][]string

// mostFields limits the values in a frame.
const mostFields = 10_000

func (f fields) get(name string) string {
	if vs := f[name]; len(vs) > 0 {
		return vs[0]
	}
	return ""
}

func (f fields) append(b []byte) []byte {
	for name, values := range f {
		for _, v := range values {
			b = binary.BigEndian.AppendUint16(b, uint16(len(name)))
			b = append(b, name...)
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
		}
	}
	return b
}

// readFields reads the rest of a body.
func readFields(c *cursor) fields {
	f := fields{}
	for n := 0; len(c.b) > 0; n++ {
		if n == mostFields {
			c.failed = true
			break
		}
		name := string(c.take(int(c.number(2))))
		f[name] = append(f[name], string(c.take(int(c.number(4)))))
	}
	return f
}

// A named is an error with its name in the protocol.
type named struct {
	word string
	err  error
}

// causes lists the errors that a child may report: by index in complete and settled, by name in
// fields.
var causes = []named{
	{"", nil},
	{"unreachable", driver.ErrUnreachable},
	{"auth", driver.ErrAuth},
	{"unsupported", driver.ErrUnsupported},
	{"too-large", driver.ErrTooLarge},
	{"timeout", driver.ErrTimeout},
	{"disconnected", driver.ErrDisconnected},
	{"overloaded", driver.ErrOverloaded},
	{"closed", driver.ErrClosed},
	{"other", errors.New("the child reports an error")},
	{"blocked", driver.ErrBlocked},
}

// cause reads a message's error: a number, followed by a text if it is not 0.
func cause(c *cursor) error {
	n := int(c.number(1))
	if n == 0 {
		return nil
	}
	text := string(c.take(int(c.number(2))))
	if n >= len(causes) {
		c.failed = true
		return nil
	}
	return said(causes[n].err, text)
}

// err returns the error in the fields; nil if none.
func (f fields) err() error {
	word := f.get("error")
	if word == "" {
		return nil
	}
	for _, x := range causes[1:] {
		if x.word == word {
			return said(x.err, f.get("text"))
		}
	}
	return said(causes[len(causes)-1].err, word+": "+f.get("text"))
}

// said adds the child's text to an error.
func said(err error, text string) error {
	const most = 400 // bytes of text shown to people
	if len(text) > most {
		text = text[:most] + "..."
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// A fate is the outcome of a message.
type fate struct {
	slot uint32
	took int64 // ns from the child's receipt of the message to its client's confirmation
	err  error
}

// readFate reads one outcome from a complete frame.
func readFate(c *cursor) fate {
	f := fate{slot: uint32(c.number(4)), took: int64(c.number(8))}
	f.err = cause(c)
	return f
}

// readDelivery reads one message of a deliver frame, from one of that many destinations.
func readDelivery(c *cursor, destinations int) driver.Delivery {
	d := driver.Delivery{Partition: -1, Source: -1}
	if n := c.number(4); n < 1<<31 {
		d.Partition = int32(n)
	}
	if n := int(c.number(2)); n != nowhere {
		d.Source = int32(n)
		c.failed = c.failed || n >= destinations
	}
	flags := c.number(1)
	d.Redelivered = flags&isAgain != 0
	if flags&hasKey != 0 {
		d.Key = c.take(int(c.number(4)))
	}
	d.Payload = c.take(int(c.number(4)))
	return d
}

// appendMessage appends one message of a publish frame.
func appendMessage(b []byte, slot uint32, destination uint16, m *driver.Message) []byte {
	b = binary.BigEndian.AppendUint32(b, slot)
	b = binary.BigEndian.AppendUint16(b, destination)
	if m.Key == nil {
		b = append(b, 0)
	} else {
		b = append(b, hasKey)
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Key)))
		b = append(b, m.Key...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Payload)))
	return append(b, m.Payload...)
}
