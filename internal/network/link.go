package network

import (
	"errors"
	"fmt"

	"github.com/weirmq/weir/result"
)

// ErrMissing is returned when the host lacks something that a network needs.
var ErrMissing = errors.New("this host lends weir no network")

// Addresses of the two ends, unreachable from outside the two namespaces.
const (
	ClientAddress = "10.77.1.1"
	SystemAddress = "10.77.1.2"
)

// means names, for results, what carries the packets.
const means = "weir's own link between two TUN devices"

// CutMeans names, for results, what partitions a node.
const CutMeans = "routing rules between network namespaces"

// A Spec describes the network to create.
type Spec struct {
	To    Conditions `json:"to"`              // towards the system
	From  Conditions `json:"from"`            // away from the system
	Seed  uint64     `json:"seed"`            // for random draws
	Nodes int        `json:"nodes,omitempty"` // nodes that can be partitioned; 0: all servers are in one place
}

// A Node locates the servers of one node, in their own namespace.
type Node struct {
	Number  int    `json:"number"`  // from 1
	Address string `json:"address"` // where its servers listen and are reached
	Space   string `json:"space"`   // path of its network namespace
}

// MostNodes is the largest number of nodes in a Spec.
const MostNodes = 64

// allNetworks contains the addresses of clients and nodes.
const allNetworks = "10.77.0.0/16"

// nodeNetwork contains the addresses of all nodes, four for each.
const nodeNetwork = "10.77.2.0/24"

// NodeAddress returns the listen address of a node's servers; nodes count from 1.
func NodeAddress(node int) string { return fmt.Sprintf("10.77.2.%d", 4*(node-1)+2) }

// gatewayOf returns the address of the other end of a node's wire.
func gatewayOf(node int) string { return fmt.Sprintf("10.77.2.%d", 4*(node-1)+1) }

// A Pair is two addresses that cannot reach each other: of two nodes, or of a node and the clients.
type Pair [2]string

// An order is a request from weir to the link.
type order struct {
	Cut   *cut    `json:"cut,omitempty"`
	Sever *[]Pair `json:"sever,omitempty"` // all pairs that cannot reach each other from now on
	Stat  bool    `json:"stat,omitempty"`
}

// A cut says which directions are cut from now on.
type cut struct {
	To   bool `json:"to"`
	From bool `json:"from"`
}

// An answer is the link's reply to an order.
type answer struct {
	To, From Counts
	Error    string `json:"error,omitempty"`
}

// An announcement is what the link prints when the network is ready and verified.
type announcement struct {
	Space   string         `json:"space"` // of the servers
	Nodes   []Node         `json:"nodes,omitempty"`
	Network result.Network `json:"network"`
	To      Counts         `json:"to"` // including the probes
	From    Counts         `json:"from"`
}

// readyWord starts the line of an announcement.
const readyWord = "ready "
