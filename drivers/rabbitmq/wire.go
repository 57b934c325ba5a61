package rabbitmq

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// mostSpare limits the size of a kept buffer.
const mostSpare = 1 << 20

// A wire is the connection below the client library. It reports confirmations, returned messages
// and deliveries to a listener as their bytes are read; without a listener it only passes bytes.
type wire struct {
	net.Conn
	silence time.Duration // a server that is silent for longer counts as gone
	gone    *time.Timer   // then closes the connection
	frames  frames        // used only by the reading goroutine
	heard   atomic.Bool   // something was read
}

func newWire(c net.Conn, silence time.Duration, hears listener) *wire {
	return &wire{
		Conn: c, silence: silence, frames: frames{to: hears},
		gone: time.AfterFunc(silence, func() { _ = c.Close() }),
	}
}

// SetReadDeadline implements net.Conn and does nothing. The client does not extend its deadline
// while a write waits, which a server in an alarm may cause for long. Read therefore has its own
// limit.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// Read reads and examines the frames. An error closes the connection, and with it a waiting write,
// because the client would wait for that write before it closes the connection.
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
