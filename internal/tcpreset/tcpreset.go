// Package tcpreset resets TCP connections of processes on this host: both ends see a
// connection that breaks, as they do when a firewall or a load balancer drops it. Neither
// process is asked. The kernel does it (SOCK_DESTROY), which ss -K uses, too.
package tcpreset

import "errors"

// ErrMissing: this host does not let weir reset connections.
var ErrMissing = errors.New("this host does not let weir reset connections")

// Means is what resets connections, for results.
const Means = "SOCK_DESTROY"

// A Group of connections between clients and servers.
type Group string

// The connections of clients.
const (
	Clients   Group = "clients"   // all
	Producers Group = "producers" // all but those that carried nearly nothing but what clients received
	Consumers Group = "consumers" // all but those that carried nearly nothing but what clients sent
)

// lopsided is how many times as many bytes went one way as the other on a connection that
// serves only producers, or only consumers.
const lopsided = 4

// idle is how few bytes, both ways together, say nothing about what a connection is for.
const idle = 4 << 10

// has reports whether a connection that carried so many bytes to and from the servers is one.
func (w Group) has(sent, received uint64) bool {
	switch {
	case w == Clients:
		return true
	case sent+received < idle:
		return false // it carries no messages
	case w == Producers:
		return received < lopsided*sent
	}
	return sent < lopsided*received
}
