package rabbitmq

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	const (
		queues    = "https://www.rabbitmq.com/docs/queues"
		exchanges = "https://www.rabbitmq.com/tutorials/amqp-concepts"
		raft      = "https://www.rabbitmq.com/docs/quorum-queues"
		confirms  = "https://www.rabbitmq.com/docs/confirms"
		acks      = "https://www.rabbitmq.com/docs/confirms#acknowledgement-modes"
	)
	received := driver.Confirms{Guarantee: driver.Received}
	handed := driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}
	synced := driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}
	replicated := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}
	return driver.Page{
		About: "RabbitMQ routes messages through exchanges to queues. A classic queue is on one node, a quorum queue has replicas that agree by Raft; this driver speaks AMQP 0-9-1 to both. " +
			"A persistent message is confirmed when its queue has written it, or when a consumer has acknowledged it before. With fast consumers most never reach the disk. " +
			"Up to 3.12 a classic queue of version 1 also syncs before it confirms, in batches. Version 2, and every classic queue since 3.13, leaves that to the operating system. Quorum queues always sync. " +
			"With the option confirm off a message is done when the operating system has its bytes. An event then reports what no queue took. " +
			"Several destinations of a consumer share its prefetch, at least 1 each. A quorum queue of RabbitMQ 4 drops a message that was given back twenty times (delivery-limit). " +
			"With settle auto the server counts a message as settled when it has sent it. What the client has not yet looked at when a run ends is lost. " +
			"AMQP shows neither the nodes of a cluster nor the replicas of a queue. Without the option management each address counts as a node. A quorum queue then counts as having the replicas asked for, where there are as many addresses. " +
			"A server that is short of memory or disk stops reading from connections that publish; a run notes that as an event. Servers before 3.8, the first with quorum queues, are refused. " +
			"By default messages leave by the client's publisher through a socket of weir's own, which gathers many in one write. weir reads confirmations from the frames. So the figures are not those of the client alone. " +
			"client-path: vendor measures the client alone. It writes each message to the connection by itself, within the call, and reports confirmations in the order of the messages (NotifyPublish). " +
			"Twelve interleaved pairs of runs of 40,000 messages in the closed loop (2026-11-23, amqp091-go v1.16.0, RabbitMQ 3.10.8, one node, a busy host with 2 cores) give these ratios of confirmed, vendor to weir: " +
			"geometric mean 1.07, 95 % interval 0.84 to 1.38, single pairs 0.51 to 1.71. They do not show which path is faster.",
		ClientWhy: "the vendor's own client for Go; confirmations are read below it, because it holds them back until all before them have come, and its recovery of connections, which does not report messages in flight, is not used",
		Features: driver.Features{
			Persistence: "memory or files, by message and queue",
			Replication: "quorum queues: Raft, a group for each queue; classic queues: none",
			Protocol:    "AMQP 0-9-1, binary over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word:   "destination",
				To:     "an exchange, weir.<run>.<destination>, of the kind that the option exchange names. Its alternate exchange leads to a queue for messages without a subscription; with default that queue alone. An existing destination is a queue, or with the option existing an exchange",
				Source: exchanges,
			},
			{Word: "partition", To: "none; more than one is refused", Source: queues},
			{
				Word:   "subscription",
				To:     "a queue for each of its destinations, made and bound when its first consumer is opened, so that each subscription gets every message from then on. A queue without an exchange before it has one subscription",
				Source: queues,
			},
			{Word: "consumer", To: "a connection with a channel for each of its queues, and its prefetch dealt over these (basic.qos); the consumers of a queue take turns", Source: "https://www.rabbitmq.com/docs/consumers"},
			{Word: "guarantee", To: "the server has confirmed the message (basic.ack): every queue that it was routed to has accepted it. A basic.nack is an overload, and lasting ones open a new channel (option reopen-after); a message that no queue takes comes back (mandatory) and fails", Source: confirms},
			{Word: "replication", To: "a quorum queue with that many members in its first group (x-quorum-initial-group-size)", Source: raft},
			{Word: "settle each", To: "basic.ack for each message", Source: acks},
			{Word: "settle batch", To: "one basic.ack (multiple) for all that the client yielded without a wait; each is delivered as it is yielded", Source: acks},
			{Word: "settle auto", To: "the server takes a message as settled when it has sent it (no-ack), and delivery is at most once; the client's memory is kept to the prefetch by not reading more", Source: acks},
			{Word: "redelivered", To: "the server's flag: the message was delivered before and given back (basic.nack with requeue), or its consumer's connection ended", Source: "https://www.rabbitmq.com/docs/reliability"},
			{Word: "resume", To: "a queue keeps what its consumers have not acknowledged. An existing queue is its own durable subscription; behind an existing exchange that is a queue of the name given", Source: queues},
		},
		Confirmations: []driver.Confirmation{
			{When: "confirm: no", Confirms: driver.Confirms{Guarantee: driver.Written}},
			{When: "delivery-mode: transient", Confirms: received},
			{When: "durable: no", Confirms: received},
			{When: "delivery-mode: persistent, classic-version: 2", Confirms: handed},
			{When: "delivery-mode: persistent, classic-version: 1", Confirms: synced},
			{When: "queue: quorum", Confirms: synced},
			{When: "queue: quorum, replication: 2 to 3", Confirms: replicated},
		},
	}
}
