package redispubsub

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	const docs = "https://redis.io/docs/latest/"
	return driver.Page{
		About: "Redis Pub/Sub passes messages to the subscribers of that moment and keeps none. The server answers a publisher when it has put the message into its subscribers' output buffers, however many these are. " +
			"A subscriber that is not there gets nothing; one too slow is cut off when its buffer is full, and loses what was in it. " +
			"All of it happens on the server's one thread, and each message costs it as many writes as there are subscribers. Valkey is driven by the same driver.",
		ClientWhy: "the vendor's own client for Go, and of the vendor's two the one that takes commands without waiting for their answers on one ordered connection; the other, rueidis, has a goroutine wait for each",
		Features: driver.Features{
			Persistence: "none",
			Replication: "none kept; a master passes messages on to its replicas' subscribers",
			Protocol:    "RESP over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a channel, weir:<run>:<destination>; nothing is made in the server. Existing destinations are channels as they are",
				Source: docs + "develop/pubsub/",
			},
			{Word: "partition", To: "none; more than one is refused (sharded channels belong to Redis Cluster)", Source: docs + "develop/pubsub/"},
			{Word: "subscription", To: "one subscriber of its channels", Source: docs + "commands/subscribe/"},
			{
				Word: "consumer", To: "the subscriber, with a connection of its own; a second one of a subscription is refused, since each would get every message",
				Source: docs + "develop/pubsub/",
			},
			{
				Word: "guarantee", To: "the server has answered PUBLISH: it had the message, and gave it to the subscribers it then had, be it none",
				Source: docs + "commands/publish/",
			},
			{Word: "settle none", To: "delivery is at most once, there is nothing to acknowledge", Source: docs + "develop/pubsub/"},
			{
				Word: "slow consumer", To: "is disconnected at client-output-buffer-limit pubsub, which a run reads from the server and prints; what was in the buffer is lost",
				Source: docs + "develop/reference/clients/",
			},
		},
		Confirmations: []driver.Confirmation{
			{When: "", Confirms: driver.Confirms{Guarantee: driver.Received}},
		},
	}
}
