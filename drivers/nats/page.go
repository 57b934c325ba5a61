package nats

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	return driver.Page{
		About: "Core NATS passes messages to the subscribers of that moment and keeps none. " +
			"A subscriber that is not there, or too slow, loses messages, and the publisher does not learn of it. " +
			"The server confirms nothing by itself: read send figures with the guarantee beside them. It is the client's buffer unless the option confirm asks for more.",
		ClientWhy: "the vendor's own client for Go, used by nearly all Go programs",
		Embeds:    "github.com/nats-io/nats-server/v2",
		Features: driver.Features{
			Persistence: "none",
			Replication: "none; a cluster routes messages to where somebody is subscribed",
			Protocol:    "NATS, text over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a subject, weir.<run>.<destination>; nothing is made in the server. Existing destinations are subjects as they are, for consumers also wildcards",
				Source: "https://docs.nats.io/concepts/subjects",
			},
			{
				Word: "partition", To: "none; more than one is refused (the server can partition subjects by a mapping of its operator's, which is a matter of subjects)",
				Source: "https://docs.nats.io/nats-concepts/subject_mapping",
			},
			{Word: "subscription", To: "a queue group of the subscription's name on each of its subjects", Source: "https://docs.nats.io/concepts/queue-groups"},
			{Word: "consumer", To: "a member of the queue group with a connection of its own; the server picks one member at random for each message", Source: "https://docs.nats.io/concepts/queue-groups"},
			{
				Word: "guarantee", To: "with confirm none the client has copied the message into its write buffer; with confirm flush the server has answered a PING sent behind it, and so has read it",
				Source: "https://docs.nats.io/reference/reference-protocols/nats-protocol",
			},
			{Word: "settle none", To: "core NATS knows no acknowledgement", Source: "https://docs.nats.io/nats-concepts/core-nats"},
		},
		Confirmations: []driver.Confirmation{
			{When: "confirm: none", Confirms: driver.Confirms{Guarantee: driver.Buffered}},
			{When: "confirm: flush", Confirms: driver.Confirms{Guarantee: driver.Received}},
		},
	}
}
