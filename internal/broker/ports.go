package broker

import (
	"maps"
	"net"
	"slices"
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
	for node, ports := range p.ports {
		at := p.reach(node + 1)
		if p.apart() {
			at = loopback // a new network namespace, where every port is free
		}
		for _, name := range slices.Sorted(maps.Keys(ports)) {
			l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
			if err != nil {
				return err
			}
			held = append(held, l) // held until all are found, so that they differ
			ports[name] = l.Addr().(*net.TCPAddr).Port
		}
	}
	return nil
}
