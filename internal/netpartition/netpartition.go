// Package netpartition has nothing pass between nodes of a system on one host, or between a node and
// clients, and no process is told. The nodes share the host's network, and so its addresses. What
// tells them apart is a control group of version 2 for the processes of each.
//
// Two small eBPF programs are attached to the group of a node, for the packets that its sockets
// receive and send. They look up the socket at the other end: it is in the group of another node,
// or it is a client's, as each on another host is. A map says from whom the node is cut off. While
// it is cut off from none, a program reads that word and lets the packet pass.
//
// Programs and map belong to this process, by descriptors, and end with it. Nothing of the host's
// network changes: no address, route, rule or mark of a packet. The groups are folders: who ends
// the processes in them removes these.
package netpartition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"path"
	"strings"
	"syscall"
)

// ErrMissing: this host does not let weir cut nodes off.
var ErrMissing = errors.New("this host does not let weir cut off nodes that share its network")

// Means is what cuts a node off, for results.
const Means = "eBPF programs at control groups"

// MostNodes is how many there may be.
const MostNodes = 62

// Clients stands for all that are not nodes.
const Clients = 0

// shared is the number of the group of what all nodes share. No cut touches it.
const shared = 63

// missing is ErrMissing with what could not be done, and what is needed.
func missing(what string, err error, need string) error {
	return fmt.Errorf("%w: %s: %w (%s)", ErrMissing, what, err, need)
}

// rows say for each node, by its number, from whom it is cut off: bit 0 stands for the clients,
// bit n for node n.
type rows [shared + 1]uint64

// rowsOf are the rows of pairs of nodes that nothing passes between, 0 being the clients.
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

// below returns where a control group of that name is, below that of a process. groups and mounts
// are what the kernel says in cgroup and mountinfo of the process.
func below(name, groups, mounts string) (string, error) {
	own := ""
	for line := range strings.Lines(groups) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = rest
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) == 0 || kind[0] != "cgroup2" {
			continue
		}
		root, at := fields[3], fields[4]
		if rest, ok := strings.CutPrefix(own, strings.TrimSuffix(root, "/")); ok && own != "" && !strings.Contains(own, "/..") {
			return path.Join(at, rest, name), nil
		}
	}
	if own == "" {
		return "", fmt.Errorf("%w: the kernel has no control groups of version 2 (mount -t cgroup2 none /sys/fs/cgroup)", ErrMissing)
	}
	return "", fmt.Errorf("%w: the control group %s of this process is not mounted here (mount -t cgroup2 none /sys/fs/cgroup)", ErrMissing, own)
}

// failWord begins the line of a process of Check that cannot do what it is for.
const failWord = "failed "

// Main is the process that Check starts: `weir internal cut GROUP`. args are what follows cut. It
// makes that group, goes into the one of node 1 there, says where on loopback it listens, and
// answers each connection until ctx ends or SIGTERM comes; it returns nil then.
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
