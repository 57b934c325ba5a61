// Package tcpreset resets TCP connections of processes on this host: both ends see a broken
// connection, as when a firewall or a load balancer drops it. The kernel does it without the
// processes' cooperation (SOCK_DESTROY, as used by ss -K).
package tcpreset

import "errors"

// ErrMissing is returned when this host does not let weir reset connections.
var ErrMissing = errors.New("this host does not let weir reset connections")

// Means names, for results, the mechanism that resets connections.
const Means = "SOCK_DESTROY"

// A Group selects connections between clients and servers.
type Group string

// The connections of clients.
const (
	Clients   Group = "clients"   // all
	Producers Group = "producers" // all except those that carried almost only what clients received
	Consumers Group = "consumers" // all except those that carried almost only what clients sent
)

// lopsided is the ratio of bytes in the two directions above which a connection serves only producers,
// or only consumers.
const lopsided = 4

// idle is the number of bytes, in both directions, below which a connection's purpose is unknown.
const idle = 4 << 10

// has reports whether a connection that carried these bytes to and from the servers belongs to the
// group.
func (w Group) has(sent, received uint64) bool {
	switch {
	case w == Clients:
		return true
	case sent+received < idle:
		return false // carries no messages
	case w == Producers:
		return received < lopsided*sent
	}
	return sent < lopsided*received
}
