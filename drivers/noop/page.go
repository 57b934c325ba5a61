package noop

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	return driver.Page{
		About: "There is no system: a message is confirmed inside the call that publishes it, before it has gone anywhere, and no consumer receives it. " +
			"What a run shows is what weir itself costs, how fast it can go and how punctual it is: the ceiling that figures of real systems are held against.",
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
