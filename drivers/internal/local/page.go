package local

import "github.com/weirmq/weir/driver"

// Page returns the page of an in-process queue's driver; queue is the queue's name with an article,
// and about its special traits.
func Page(queue, about string) driver.Page {
	return driver.Page{
		About: about + " A payload is copied into a cell, allocated beforehand, and copied out of it again. " +
			"When all cells of a subscription are in use, the producer waits. " +
			"A destination without a subscription discards what it is sent, as a topic without subscribers does.",
		Features: driver.Features{Persistence: "memory of the process", Replication: "none", Protocol: "none"},
		Maps: []driver.Mapping{
			{Word: "destination", To: "a name inside the process; no two runs share any"},
			{Word: "partition", To: "none; more than one is refused"},
			{Word: "subscription", To: queue + " of its own for each destination, with as many cells as the option capacity says, " +
				"from the opening of its first consumer to the end of the run"},
			{Word: "consumer", To: "a goroutine for each of its destinations; the consumers of a subscription compete"},
			{Word: "guarantee", To: "every subscription has taken the message, in the memory of this process"},
			{Word: "settle none", To: "what a consumer took is gone; nothing is acknowledged"},
		},
		Confirmations: driver.Confirmations{{Confirms: driver.Confirms{Guarantee: driver.Buffered}}},
	}
}
