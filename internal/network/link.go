package network

import (
	"errors"
	"fmt"

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

// CutMeans is what cuts a node off, for results.
const CutMeans = "routing rules between network namespaces"

// A Spec says which network is wanted.
type Spec struct {
	To    Conditions `json:"to"`              // the system
	From  Conditions `json:"from"`            // the system
	Seed  uint64     `json:"seed"`            // of what is drawn
	Nodes int        `json:"nodes,omitempty"` // of the system that can be severed from each other; 0: all servers are in one place
}

// A Node is where the servers of one node are, apart from those of the others.
type Node struct {
	Number  int    `json:"number"`  // 1 and up
	Address string `json:"address"` // where its servers listen and are reached
	Space   string `json:"space"`   // path of its network namespace
}

// MostNodes is how many a Spec may have.
const MostNodes = 64

// allNetworks has the addresses of clients and nodes.
const allNetworks = "10.77.0.0/16"

// nodeNetwork has the addresses of all nodes: four for each.
const nodeNetwork = "10.77.2.0/24"

// NodeAddress is where the servers of a node listen, 1 and up.
func NodeAddress(node int) string { return fmt.Sprintf("10.77.2.%d", 4*(node-1)+2) }

// gatewayOf is the other end of its wire.
func gatewayOf(node int) string { return fmt.Sprintf("10.77.2.%d", 4*(node-1)+1) }

// A Pair of addresses that do not reach each other: of nodes, or of one and the clients.
type Pair [2]string

// An order is what weir has the link do.
type order struct {
	Cut   *cut    `json:"cut,omitempty"`
	Sever *[]Pair `json:"sever,omitempty"` // all that do not reach each other from now on
	Stat  bool    `json:"stat,omitempty"`
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
	Nodes   []Node         `json:"nodes,omitempty"`
	Network result.Network `json:"network"`
	To      Counts         `json:"to"` // with the probes
	From    Counts         `json:"from"`
}

// readyWord begins the line of an announcement.
const readyWord = "ready "
