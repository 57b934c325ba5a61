package natsstreaming

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	const (
		concepts  = "https://nats-io.gitbook.io/legacy-nats-docs/nats-streaming-server-aka-stan/stan-concepts"
		client    = "https://github.com/nats-io/stan.go"
		queues    = client + "#durable-queue-groups"
		publish   = client + "#asynchronous-publishing"
		acks      = client + "#message-acknowledgements-and-redelivery"
		start     = client + "#subscription-start-ie-replay-options"
		reconnect = client + "#important-things-to-know-about-reconnections"
	)
	return driver.Page{
		About: "NATS Streaming is a log on top of a NATS server, which JetStream has replaced. Its vendor ended its support, security fixes included, in June 2023. This driver is for systems that still use it, and for comparison. " +
			"No client can remove a channel or a message. After a run weir removes its subscriptions, but the messages stay until the channel's limits drop them, or the server's max_inactivity has passed. By default the limits drop the oldest beyond a million or 1 GB, consumed or not. " +
			"weir reads what a confirmation means at the monitoring addresses (option monitor), which a system that weir starts has. Without them a confirmation counts as received by one node, in memory. " +
			"No endpoint shows whether a server syncs its files (file_sync is on by default, cluster_sync off), so it counts as not syncing. A server that does sync is shown with a lower guarantee than it has.",
		ClientWhy: "the vendor's own client for Go; its asynchronous publishing with an ack handler, the only way to have many messages in flight",
		Features: driver.Features{
			Persistence: "memory, files or an SQL database, by server",
			Replication: "Raft, one group for all channels",
			Protocol:    "protocol buffers in NATS messages over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a channel, weir.<run>.<destination>, which stays after the run. An existing destination is a channel's name; one that is not there is refused where the option monitor is given, and made by the server where it is not",
				Source: concepts,
			},
			{Word: "partition", To: "none; more than one is refused (partitioning in the server's configuration gives whole channels to servers)", Source: concepts},
			{
				Word: "subscription", To: "a durable queue group of its name on each of its channels, that begins behind the last message. With durable it is the group that the name says, \"durable:group\" or one word for both; durables that are not queue groups belong to one client and cannot be shared",
				Source: queues,
			},
			{Word: "consumer", To: "a member of the group in a session on a connection of its own, with a client ID that no other has; prefetch is MaxInflight", Source: queues},
			{
				Word: "guarantee", To: "the server has acknowledged the message's GUID; what that means decide the store and whether the servers form a cluster",
				Source: publish,
			},
			{
				Word: "in-flight", To: "the client's MaxPubAcksInflight. A message that meets no leader, as while a cluster elects, gets no answer, and fails after ack-timeout",
				Source: client + "#publisher-rate-limiting",
			},
			{Word: "settle each", To: "every message is acknowledged by itself, when it has been taken; acknowledgements are not confirmed", Source: acks},
			{Word: "settle auto", To: "every message is acknowledged when it has been handed over, whatever becomes of it", Source: acks},
			{Word: "refuse", To: "nothing in the protocol: a message that is not acknowledged comes again after ack-wait, 30s unless set, 1s at least", Source: acks},
			{
				Word: "replication", To: "1, which says nothing, or the number of nodes: a cluster keeps every channel on every node. Others are refused",
				Source: concepts,
			},
			{
				Word: "offset", To: "the sequence number in the channel, from 1; before the first that is still there it is that, beyond the last it is the next to come. A time is told to the server as one ago, by the clock of weir's host",
				Source: start,
			},
			{
				Word: "reconnect", To: "the session of a consumer goes on in the next connection, unless the server has forgotten it, which is told within session-ping-interval; then it is made again, and a group that is forgotten too begins such that nothing is left out. A producer has a new session for each connection",
				Source: reconnect,
			},
		},
		Confirmations: []driver.Confirmation{
			{When: "server.store: memory, replication: 1", Confirms: driver.Confirms{Guarantee: driver.Received}},
			{When: "server.store: file, replication: 1", Confirms: driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
			{
				When:     "server.store: file, replication: 3",
				Confirms: driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS},
			},
		},
	}
}
