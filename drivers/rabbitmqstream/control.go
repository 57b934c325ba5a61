package rabbitmqstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// mostFrame limits a frame from the server, in bytes.
const mostFrame = 64 << 20

// A control is a connection for requests. One goroutine at a time uses it.
type control struct {
	socket   net.Conn
	in       *bufio.Reader
	last     uint32            // number of the last request
	server   map[string]string // server properties
	frameMax uint32            // 0: unlimited
	address  string            // as advertised by the server
	chunk    *chunk            // the latest delivery
	nextID   uint8             // of the next subscription
}

func hostPort(host string, port uint32) string {
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
}

// dial connects to one address and signs in, within ctx.
func (c *Config) dial(ctx context.Context, s *sockets.Set, at endpoint.Endpoint, name string) (*control, error) {
	t, err := c.tls(at)
	if err != nil {
		return nil, err
	}
	socket, err := s.Dial(ctx, "tcp", at.HostPort(), c.Timeout)
	if err != nil {
		return nil, err
	}
	k := &control{socket: socket}
	if t != nil {
		k.socket = tls.Client(socket, t)
	}
	stop := context.AfterFunc(ctx, k.end)
	defer stop()
	k.in = bufio.NewReader(k.socket)
	if err := k.signIn(c, name); err != nil {
		k.end()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return k, nil
}

func (k *control) end() { _ = k.socket.Close() }

// signIn performs the handshake.
func (k *control) signIn(c *Config, name string) error {
	r, err := k.ask(newFrame(cmdPeerProperties), func(f frame) frame {
		return f.u32(2).text("product").text("weir").text("connection_name").text(name)
	})
	if err != nil {
		return err
	}
	k.server = r.pairs()
	release, err := rabbitserver.Release(k.server["version"])
	if err != nil {
		return fmt.Errorf("%w: what answers is not RabbitMQ: %w", driver.ErrUnreachable, err)
	}
	if err := release.AtLeast(3, 13); err != nil {
		return err
	}
	if _, err := k.ask(newFrame(cmdHandshake), nil); err != nil {
		return err
	}
	secret := "\x00" + c.User + "\x00" + rabbitserver.Password(c.User, c.Password)
	if _, err := k.ask(newFrame(cmdAuthenticate), func(f frame) frame {
		return append(f.text("PLAIN").u32(uint32(len(secret))), secret...)
	}); err != nil {
		return fmt.Errorf("user %s: %w", c.User, err)
	}
	if err := k.until(cmdTune, 0, nil); err != nil {
		return err
	}
	r, err = k.ask(newFrame(cmdOpen), func(f frame) frame { return f.text(c.Vhost) })
	if err != nil {
		return fmt.Errorf("vhost %s: %w", c.Vhost, err)
	}
	at := r.pairs()
	k.address = net.JoinHostPort(at["advertised_host"], at["advertised_port"])
	return nil
}

// ask sends a request and returns the rest of its answer after the code. A code other than OK is
// the error.
func (k *control) ask(f frame, fields func(frame) frame) (*reader, error) {
	r, err := k.answer(f, fields)
	if err != nil {
		return nil, err
	}
	if c := code(r.u16()); c != codeOK {
		return nil, c
	}
	return r, nil
}

// answer is ask for a request whose answer has no code.
func (k *control) answer(f frame, fields func(frame) frame) (*reader, error) {
	k.last++
	key := binary.BigEndian.Uint16(f[4:])
	f = f.u32(k.last)
	if fields != nil {
		f = fields(f)
	}
	if _, err := k.socket.Write(f.done()); err != nil {
		return nil, err
	}
	var r reader
	err := k.until(key|answerBit, k.last, &r)
	return &r, err
}

// until reads frames until one with a key arrives, and with a request's number unless that is 0.
func (k *control) until(key uint16, number uint32, into *reader) error {
	for {
		got, r, err := k.read()
		if err != nil {
			return err
		}
		switch {
		case got == key && got == cmdTune:
			k.frameMax = r.u32()
			// No heartbeats: requests have their own timeouts.
			_, err := k.socket.Write(newFrame(cmdTune | answerBit).u32(k.frameMax).u32(0).done())
			return err
		case got == key && r.u32() == number:
			*into = r
			return nil
		case got == cmdDeliver:
			c := r.chunk()
			k.chunk = &c
		case got == cmdClose:
			r.u32()
			return fmt.Errorf("%w: the server closed it: %w", driver.ErrDisconnected, code(r.u16()))
		}
	}
}

// read returns the next frame.
func (k *control) read() (key uint16, r reader, err error) {
	var head [8]byte
	if _, err := io.ReadFull(k.in, head[:]); err != nil {
		return 0, r, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 4 || n > mostFrame {
		return 0, r, fmt.Errorf("%w: a frame of %d bytes: what answers does not speak the stream protocol", driver.ErrUnreachable, n)
	}
	r.b = make([]byte, n-4)
	_, err = io.ReadFull(k.in, r.b)
	return binary.BigEndian.Uint16(head[4:]), r, err
}

// create creates a stream; an existing one stays unchanged.
func (k *control) create(stream string, arguments map[string]string) error {
	_, err := k.ask(newFrame(cmdCreate), func(f frame) frame {
		f = f.text(stream).u32(uint32(len(arguments)))
		for name, value := range arguments {
			f = f.text(name).text(value)
		}
		return f
	})
	if errors.Is(err, code(codeExists)) {
		return nil
	}
	return err
}

// remove deletes a stream; it is no error if it is missing.
func (k *control) remove(stream string) error {
	_, err := k.ask(newFrame(cmdDelete), func(f frame) frame { return f.text(stream) })
	if errors.Is(err, code(codeMissing)) {
		return nil
	}
	return err
}

func (k *control) topology(stream string) (topology, error) {
	r, err := k.answer(newFrame(cmdMetadata), func(f frame) frame { return f.u32(1).text(stream) })
	if err != nil {
		return topology{}, err
	}
	return r.topology()
}

func (k *control) stored(name, stream string) (offset uint64, found bool, err error) {
	r, err := k.ask(newFrame(cmdQueryOffset), func(f frame) frame { return f.text(name).text(stream) })
	if errors.Is(err, code(codeNoOffset)) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return r.u64(), true, nil
}

// Kinds of positions in the protocol.
const (
	fromFirst = 1
	fromLast  = 2
	fromTime  = 5
)

// at returns the chunk at a position, and whether there is one. The server sends what it has before
// it answers the request that follows the subscription.
func (k *control) at(stream string, kind uint16, time uint64) (c chunk, found bool, err error) {
	k.chunk = nil
	id := k.nextID
	k.nextID++ // the subscriptions end with the connection
	_, err = k.ask(newFrame(cmdSubscribe), func(f frame) frame {
		f = append(f, id).text(stream).u16(kind)
		if kind == fromTime {
			f = f.u64(time)
		}
		return f.u16(1)
	})
	if err == nil {
		_, _, err = k.stored("weir", stream)
	}
	if err == nil {
		const unsubscribe = 0x0c
		_, err = k.ask(newFrame(unsubscribe), func(f frame) frame { return append(f, id) })
	}
	if k.chunk != nil {
		c, found = *k.chunk, true
	}
	return c, found, err
}
