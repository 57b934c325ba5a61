package rabbitmq

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// mostSpare bounds what is kept of a buffer that grew.
const mostSpare = 1 << 20

// A wire is the connection below the client library. It tells a listener of
// confirmations, returned messages and deliveries when their bytes are read; without a
// listener it is the connection alone.
type wire struct {
	net.Conn
	silence time.Duration // a server that sends nothing for longer counts as gone
	gone    *time.Timer   // ends the connection then
	frames  frames        // used by the reading goroutine only
	heard   atomic.Bool   // something was read
}

func newWire(c net.Conn, silence time.Duration, hears listener) *wire {
	return &wire{
		Conn: c, silence: silence, frames: frames{to: hears},
		gone: time.AfterFunc(silence, func() { _ = c.Close() }),
	}
}

// SetReadDeadline implements net.Conn. The client does not extend its deadline while a
// write waits, which a server in an alarm may cause for long. So Read has a limit of its own.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// Read reads and notes the frames that came. An error ends the connection, and with it a write
// that waits: the client would wait for that write before it ended the connection.
func (w *wire) Read(p []byte) (int, error) {
	if w.frames.to != nil {
		w.frames.to.reading()
	}
	w.gone.Reset(w.silence)
	n, err := w.Conn.Read(p)
	late := !w.gone.Stop()
	if err != nil && late {
		err = fmt.Errorf("nothing came for %v: %w", w.silence, err)
	}
	if err != nil {
		_ = w.Close()
	}
	if n > 0 && !w.heard.Load() {
		w.heard.Store(true)
	}
	if w.frames.to != nil {
		w.frames.read(p[:n])
	}
	return n, err
}
