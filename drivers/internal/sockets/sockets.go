// Package sockets tracks the open sockets of a client library, and closes them. Use a Set as the
// client's dialer if a call of the client waits for the network and ignores contexts: closing the
// socket ends the call. It can also tell whether the connection was the same at two times.
package sockets

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Set holds the open sockets of one client. Its zero value is empty; its methods may be called
// concurrently.
type Set struct {
	epoch atomic.Uint64 // odd: connected

	mu      sync.Mutex
	open    map[net.Conn]struct{}
	refused bool
}

// Dial connects within ctx and limit, and tracks the socket. After Refuse, it returns
// net.ErrClosed.
func (s *Set) Dial(ctx context.Context, network, address string, limit time.Duration) (net.Conn, error) {
	if s.Refused() {
		return nil, net.ErrClosed
	}
	d := net.Dialer{Timeout: limit}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return s.Track(c)
}

// Track adds c to the Set until it is closed. After Refuse, it closes c and returns net.ErrClosed.
// Use it for a socket created elsewhere, by TLS for example.
func (s *Set) Track(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	if s.open == nil {
		s.open = map[net.Conn]struct{}{}
	}
	s.open[c] = struct{}{}
	s.turn()
	if t, ok := c.(*net.TCPConn); ok {
		return &tcpSocket{t, s}, nil
	}
	return &socket{c, s}, nil
}

// Epoch returns a number that differs between any two sockets, and between a socket and none. For a
// client with one connection at a time, equal readings mean the same connection.
func (s *Set) Epoch() uint64 { return s.epoch.Load() }

// Up reports whether an epoch has a socket.
func Up(epoch uint64) bool { return epoch%2 == 1 }

// Kill closes the open sockets, so that calls waiting for the network fail. The client may
// reconnect.
func (s *Set) Kill() { s.kill(false) }

// Refuse is Kill, but prevents reconnects.
func (s *Set) Refuse() { s.kill(true) }

// Refused reports whether Refuse was called.
func (s *Set) Refused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *Set) kill(forGood bool) {
	s.mu.Lock()
	s.refused = s.refused || forGood
	open := s.open
	s.open = nil
	if len(open) > 0 {
		s.turn()
	}
	s.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
}

// turn starts a new epoch. s.mu is held.
func (s *Set) turn() {
	next := s.epoch.Load() + 1
	if Up(next) != (len(s.open) > 0) {
		next++
	}
	s.epoch.Store(next)
}

// close removes and closes a socket. If Kill or Refuse also closes it, the client's own Close is
// not an error.
func (s *Set) close(c net.Conn) error {
	s.mu.Lock()
	_, open := s.open[c]
	if open {
		delete(s.open, c)
		s.turn()
	}
	s.mu.Unlock()
	err := c.Close()
	if !open && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// A socket is removed from its Set when closed.
type socket struct {
	net.Conn
	of *Set
}

func (s *socket) Close() error {
	return s.of.close(s.Conn)
}

// A tcpSocket exposes its file descriptor, so that a client can detect that an idle connection was
// closed by the peer.
type tcpSocket struct {
	*net.TCPConn
	of *Set
}

func (s *tcpSocket) Close() error {
	return s.of.close(s.TCPConn)
}
