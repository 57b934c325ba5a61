// Package sockets knows the open sockets of a client library, and ends them. Use a Set
// as the client's dialer wherever a call of the client waits for the network and heeds
// no context: the end of the socket ends the call. It also tells whether two moments
// had the same connection.
package sockets

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Set is the open sockets of one client. Its zero value is empty; its methods may be
// called concurrently.
type Set struct {
	epoch atomic.Uint64 // odd: there is one

	mu      sync.Mutex
	open    map[net.Conn]struct{}
	refused bool
}

// Dial connects within ctx and limit, and tracks the socket. After Refuse it is
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

// Track returns c as one of the Set's until it is closed. After Refuse it closes c and
// is net.ErrClosed. Use it for a socket that something else has made, TLS for one.
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

// Epoch returns a number that differs between any two sockets, and between one and
// none. What was done between two equal readings was done on one connection, where the
// client has one at a time.
func (s *Set) Epoch() uint64 { return s.epoch.Load() }

// Up reports whether there is a socket in an epoch.
func Up(epoch uint64) bool { return epoch%2 == 1 }

// Kill closes the open sockets: calls that wait for the network go on, with an error.
// The client may connect again.
func (s *Set) Kill() { s.kill(false) }

// Refuse is Kill for good: the client cannot connect again.
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

// turn begins an epoch. s.mu is held.
func (s *Set) turn() {
	next := s.epoch.Load() + 1
	if Up(next) != (len(s.open) > 0) {
		next++
	}
	s.epoch.Store(next)
}

// close forgets a socket and closes it. Where Kill or Refuse has closed it, or does so
// now, the client's own Close is not an error.
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

// A socket is forgotten when it is closed.
type socket struct {
	net.Conn
	of *Set
}

func (s *socket) Close() error {
	return s.of.close(s.Conn)
}

// A tcpSocket is a socket that shows its descriptor, by which a client sees that an idle
// connection was closed at the other end.
type tcpSocket struct {
	*net.TCPConn
	of *Set
}

func (s *tcpSocket) Close() error {
	return s.of.close(s.TCPConn)
}
