package broker

import (
	"maps"
	"net"
	"slices"
)

// choosePorts gives every port of the plan a number that was free a moment ago,
// where they will listen: the processes must know those of the others before any listens.
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
			at = loopback // it has a namespace of its own, where every port is free
		}
		for _, name := range slices.Sorted(maps.Keys(ports)) {
			l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
			if err != nil {
				return err
			}
			held = append(held, l) // until all are found, so that they differ
			ports[name] = l.Addr().(*net.TCPAddr).Port
		}
	}
	return nil
}
