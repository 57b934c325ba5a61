// Package netpartition drops packets between nodes of a system on one host, or between a node and
// clients, silently. The nodes share the host's network and addresses. They are distinguished by a
// version 2 control group for each node's processes.
//
// Two small eBPF programs are attached to each node's group, for the packets that its sockets receive
// and send. They look up the socket at the other end, which is either in another node's group or
// belongs to a client, as does any socket on another host. A map tells from whom the node is
// partitioned. While a node is not partitioned, a program reads that word and passes the packet.
//
// This process holds programs and map by descriptors, and they end with it. The host's network is not
// changed: no address, route, rule or packet mark. The groups are folders, which must be removed by
// whoever ends the processes in them.
package netpartition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"strings"
	"syscall"
)

// ErrMissing is returned when this host does not let weir partition nodes.
var ErrMissing = errors.New("this host does not let weir cut off nodes that share its network")

// Means names, for results, the mechanism that partitions nodes.
const Means = "eBPF programs at control groups"

// MostNodes is the largest number of nodes.
const MostNodes = 62

// Clients stands for everything that is not a node.
const Clients = 0

// shared is the number of the group for what all nodes share. No partition affects it.
const shared = 63

// missing returns ErrMissing with what failed and what is needed.
func missing(what string, err error, need string) error {
	return fmt.Errorf("%w: %s: %w (%s)", ErrMissing, what, err, need)
}

// rows holds, by node number, from whom each node is partitioned: bit 0 stands for the clients, bit n
// for node n.
type rows [shared + 1]uint64

// rowsOf returns the rows for the pairs to partition; 0 is the clients.
func rowsOf(pairs [][2]int) (r rows, err error) {
	for _, p := range pairs {
		for _, n := range p {
			if n < Clients || n > MostNodes {
				return r, fmt.Errorf("cutting nodes off: there is no node %d", n)
			}
		}
		r[p[0]] |= 1 << p[1]
		r[p[1]] |= 1 << p[0]
	}
	return r, nil
}

// failWord starts the line of a Check process that failed.
const failWord = "failed "

// Main is the process that Check starts: `weir internal cut GROUP`. args are the arguments after cut.
// It creates that group, enters the group of node 1 in it, prints its loopback listen address, and
// answers each connection until ctx ends or SIGTERM arrives; then it returns nil.
func Main(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New("cut: wants a control group")
	}
	err := Make(args[0], 1)
	if err == nil {
		err = enter(args[0])
	}
	if err != nil {
		_, _ = fmt.Fprintln(stdout, failWord+strings.ReplaceAll(err.Error(), "\n", "; "))
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = l.Close() })
	if _, err := fmt.Fprintln(stdout, l.Addr()); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		_, _ = c.Write([]byte{1})
		_ = c.Close()
	}
}
