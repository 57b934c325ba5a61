package rabbitmq

import (
	"net"
	"sync"
	"sync/atomic"
)

// mostSpare bounds what a wire keeps of a buffer that grew.
const mostSpare = 1 << 20

// A wire is the connection below the client library; the package comment says why. It
// takes the client's bytes at once, and a goroutine of its own writes all that has
// gathered. It tells a listener of confirmations, returned messages and deliveries when
// their bytes are read.
//
// A plain wire does none of that: the client's calls are those of the connection.
type wire struct {
	net.Conn
	plain bool

	frames frames        // touched by whoever reads
	heard  atomic.Bool   // something was read
	out    atomic.Uint64 // bytes written

	mu      sync.Mutex
	pending []byte
	put     uint64 // bytes taken
	err     error  // nothing is taken any more
	wake    chan struct{}
	ended   chan struct{} // closed when nothing is written any more
}

// newWire returns a wire that tells hears, and a goroutine of its own, which ends with
// Close. Without a listener the wire is plain.
func newWire(c net.Conn, hears listener) *wire {
	w := &wire{Conn: c, plain: hears == nil, frames: frames{to: hears}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if w.plain {
		close(w.ended)
	} else {
		go w.run()
	}
	return w
}

// Read reads, and tells of what it read.
func (w *wire) Read(p []byte) (int, error) {
	if !w.plain {
		w.frames.to.reading()
	}
	n, err := w.Conn.Read(p)
	if n > 0 && !w.heard.Load() {
		w.heard.Store(true)
	}
	if !w.plain {
		w.frames.read(p[:n])
	}
	return n, err
}

// Write takes p. It does not wait, unless the wire is plain.
func (w *wire) Write(p []byte) (int, error) {
	if w.plain {
		return w.Conn.Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	first := len(w.pending) == 0
	w.pending = append(w.pending, p...)
	w.put += uint64(len(p))
	if first {
		w.signal()
	}
	return len(p), nil
}

func (w *wire) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// taken returns how many bytes were taken so far.
func (w *wire) taken() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put
}

// run writes what gathers.
func (w *wire) run() {
	defer close(w.ended)
	var spare []byte
	for range w.wake {
		for {
			w.mu.Lock()
			if w.err != nil {
				w.mu.Unlock()
				return
			}
			b := w.pending
			if len(b) == 0 {
				w.mu.Unlock()
				break
			}
			w.pending = spare[:0] // the other of two buffers
			w.mu.Unlock()
			if _, err := w.Conn.Write(b); err != nil {
				w.end(err)
				return
			}
			w.frames.to.written(w.out.Add(uint64(len(b))))
			if spare = b; cap(spare) > mostSpare {
				spare = nil
			}
		}
	}
}

// end ends the connection, and with it a read and a write that wait. The client
// then ends what is above it.
func (w *wire) end(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.signal()
	w.mu.Unlock()
	_ = w.Conn.Close()
}

// Close ends the connection. What is not written yet is not written.
func (w *wire) Close() error {
	w.end(net.ErrClosed)
	return nil
}
