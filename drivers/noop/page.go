package noop

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	return driver.Page{
		About: "The driver noop does nothing. It confirms a message inside the call that publishes it, and no consumer receives the message. " +
			"A run shows what weir itself costs, how fast it can go and how punctual it is: the ceiling for figures of real systems.",
		Features: driver.Features{Persistence: "none", Replication: "none", Protocol: "none"},
		Maps: []driver.Mapping{
			{Word: "destination", To: "a name; nothing is behind it"},
			{Word: "partition", To: "none; more than one is refused"},
			{Word: "subscription", To: "none: nothing can be received"},
			{Word: "consumer", To: "none"},
			{Word: "guarantee", To: "the call returned"},
		},
		Confirmations: []driver.Confirmation{
			{When: "", Confirms: driver.Confirms{Guarantee: driver.Buffered}},
		},
	}
}
