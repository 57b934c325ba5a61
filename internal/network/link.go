package network

import (
	"errors"

	"github.com/weirmq/weir/result"
)

// ErrMissing: the host lacks what a network needs.
var ErrMissing = errors.New("this host lends weir no network")

// Addresses of the two ends. Nothing outside the two namespaces reaches them.
const (
	ClientAddress = "10.77.1.1"
	SystemAddress = "10.77.1.2"
)

// means is what carries the packets, for results.
const means = "weir's own link between two TUN devices"

// A Spec says which network is wanted.
type Spec struct {
	To   Conditions `json:"to"`   // the system
	From Conditions `json:"from"` // the system
	Seed uint64     `json:"seed"` // of what is drawn
}

// An order is what weir has the link do.
type order struct {
	Cut  *cut `json:"cut,omitempty"`
	Stat bool `json:"stat,omitempty"`
}

// A cut says which directions are cut, from now on.
type cut struct {
	To   bool `json:"to"`
	From bool `json:"from"`
}

// An answer is what the link says to an order.
type answer struct {
	To, From Counts
	Error    string `json:"error,omitempty"`
}

// An announcement is what the link prints when the network is there and is as asked.
type announcement struct {
	Space   string         `json:"space"` // of the servers
	Network result.Network `json:"network"`
	To      Counts         `json:"to"` // with the probes
	From    Counts         `json:"from"`
}

// readyWord begins the line of an announcement.
const readyWord = "ready "
