package mqtt

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
)

// readAhead is the size of a connection's read buffer.
const readAhead = 16 << 10

// buffered is a connection whose reads are buffered: the clients read a packet in three pieces.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// A wire sends what is written between Lock and Unlock at once: the client for version 5 writes a
// packet in pieces, and locks a connection that has a lock.
type wire struct {
	buffered

	mu  sync.Mutex
	out []byte
	err error // of the last write; the connection is closed
}

func newWire(c net.Conn) *wire {
	return &wire{buffered: buffered{c, bufio.NewReaderSize(c, readAhead)}}
}

// Lock begins a packet.
func (w *wire) Lock() { w.mu.Lock() }

// Write adds to it. Only the holder of the lock may call it.
func (w *wire) Write(b []byte) (int, error) {
	w.out = append(w.out, b...)
	return len(b), w.err
}

// Unlock sends it. The reader of the connection learns of an error.
func (w *wire) Unlock() {
	_ = w.send(w.out)
	w.out = w.out[:0]
	w.mu.Unlock()
}

// sendAll sends whole packets, the end of the last one apart.
func (w *wire) sendAll(b, rest []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.send(b); err != nil {
		return err
	}
	return w.send(rest)
}

// send sends b, with the lock held.
func (w *wire) send(b []byte) error {
	if w.err == nil && len(b) > 0 {
		if _, w.err = w.Conn.Write(b); w.err != nil {
			_ = w.Close()
		}
	}
	return w.err
}

// appendPublish appends a PUBLISH packet of version 5 up to its payload, without properties (chapter
// 3.3 of the standard). The id belongs to levels above 0.
func appendPublish(b []byte, topic string, qos byte, id uint16, payload int) []byte {
	const publish, noProperties = 3 << 4, 0
	length := 2 + len(topic) + 1 + payload
	if qos > 0 {
		length += 2
	}
	b = binary.AppendUvarint(append(b, publish|qos<<1), uint64(length)) // the same form as the standard's
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(topic))), topic...)
	if qos > 0 {
		b = binary.BigEndian.AppendUint16(b, id)
	}
	return append(b, noProperties)
}
