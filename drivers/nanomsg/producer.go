package nanomsg

import (
	"errors"
	"fmt"
	"sync/atomic"

	"go.nanomsg.org/mangos/v3"
	"go.nanomsg.org/mangos/v3/protocol/pub"
	"go.nanomsg.org/mangos/v3/protocol/pull"
	"go.nanomsg.org/mangos/v3/protocol/push"
	"go.nanomsg.org/mangos/v3/protocol/sub"
	_ "go.nanomsg.org/mangos/v3/transport/inproc" // registers itself
	_ "go.nanomsg.org/mangos/v3/transport/ipc"    // registers itself
	_ "go.nanomsg.org/mangos/v3/transport/tcp"    // registers itself

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh"
)

// A socket is a mangos socket, for producers and consumers alike.
type socket struct {
	s     mangos.Socket
	peers atomic.Int64
}

// kinds has a constructor for each kind of socket, and the option for its queue.
var kinds = map[mesh.Kind]struct {
	open  func() (mangos.Socket, error)
	queue string
}{
	mesh.Push: {push.NewSocket, mangos.OptionWriteQLen},
	mesh.Pull: {pull.NewSocket, mangos.OptionReadQLen},
	mesh.Pub:  {pub.NewSocket, mangos.OptionWriteQLen},
	mesh.Sub:  {sub.NewSocket, mangos.OptionReadQLen},
}

// open returns a socket with queues of hwm messages.
func open(kind mesh.Kind, hwm int) (mesh.Socket, error) {
	s, err := kinds[kind].open()
	if err != nil {
		return nil, err
	}
	options := map[string]any{
		kinds[kind].queue:        hwm,
		mangos.OptionMaxRecvSize: 0, // unlimited; the peers are in this process
	}
	if kind == mesh.Sub {
		options[mangos.OptionSubscribe] = ""
	}
	for name, value := range options {
		if err := s.SetOption(name, value); err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	x := &socket{s: s}
	s.SetPipeEventHook(x.pipe)
	return x, nil
}

// pipe counts connections. An attached connection is known to the protocol.
func (x *socket) pipe(e mangos.PipeEvent, _ mangos.Pipe) {
	switch e {
	case mangos.PipeEventAttached:
		x.peers.Add(1)
	case mangos.PipeEventDetached:
		x.peers.Add(-1)
	}
}

func (x *socket) Listen(address string) (string, error) {
	l, err := x.s.NewListener(address, nil)
	if err != nil {
		return "", err
	}
	err = l.Listen()
	return l.Address(), err
}

func (x *socket) Connect(address string) (stop func(), err error) {
	d, err := x.s.NewDialer(address, nil)
	if err != nil {
		return nil, err
	}
	return func() { _ = d.Close() }, d.Dial()
}

func (x *socket) Peers() int { return int(x.peers.Load()) }

func (x *socket) Send(payload []byte) error { return failure(x.s.Send(payload)) }

func (x *socket) Receive(take func(payload []byte)) error {
	m, err := x.s.RecvMsg()
	if err != nil {
		return failure(err)
	}
	take(m.Body)
	m.Free()
	return nil
}

func (x *socket) Close() error {
	if err := x.s.Close(); !errors.Is(err, mangos.ErrClosed) {
		return err
	}
	return nil
}

// failure maps a mangos error to the contract's.
func failure(err error) error {
	if errors.Is(err, mangos.ErrClosed) {
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	return err
}
