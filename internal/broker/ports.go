package broker

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// choosePorts gives every port of the plan a number that was free a moment ago at its listen address:
// each process must know the others' ports before any of them listens.
func (p *plan) choosePorts() error {
	p.numbered()
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	low := firstEphemeral()
	for node, ports := range p.ports {
		at := p.reach(node + 1)
		if p.apart() {
			at = loopback // a new network namespace, where every port is free
		}
		for _, name := range slices.Sorted(maps.Keys(ports)) {
			l, err := listenBelow(at, low)
			if err != nil {
				return err
			}
			held = append(held, l) // held until all are found, so that they differ
			ports[name] = l.Addr().(*net.TCPAddr).Port
		}
	}
	return nil
}

const (
	portSpan  = 10_000 // ports to choose from
	portLimit = 30_000 // Kubernetes gives those above it to services
	portTries = 100
)

// listenBelow listens at a port below those that the kernel chooses from, which begin at low. Otherwise
// an outgoing connection could be given a server's port while that server is down, perhaps one that
// tries to reach this very server, and would then be connected to itself.
func listenBelow(at string, low int) (net.Listener, error) {
	for to, n := min(low, portLimit), 0; to > portSpan && n < portTries; n++ {
		l, err := net.Listen("tcp", net.JoinHostPort(at, strconv.Itoa(to-1-rand.IntN(portSpan))))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return net.Listen("tcp", net.JoinHostPort(at, "0"))
}

// firstEphemeral returns the lowest port that the kernel gives to sockets that name none.
func firstEphemeral() (low int) {
	b, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if _, err := fmt.Sscan(string(b), &low); err != nil {
		return 49152 // not Linux; RFC 6335, section 6
	}
	return low
}
