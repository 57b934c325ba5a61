package nsq

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	memory := driver.Confirms{Guarantee: driver.Received}
	disk := driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}
	return driver.Page{
		About: "NSQ passes messages from topics to channels, on servers (nsqd) that do not know each other. Consumers ask nsqlookupd which server has which topic. " +
			"It has neither replicas nor order. A queue is in memory up to mem-queue-size messages and on disk beyond. No confirmation waits for a sync: what a killed nsqd had in memory is lost. " +
			"A server takes messages up to its max-msg-size, 1 MiB by default. " +
			"nsqd gathers what it sends to a consumer until it has output-buffer bytes or output-buffer-timeout is over. At low rates that is most of a message's way: " +
			"with the client's defaults, 16 KiB and 250 ms, at 1000 messages of 1 KiB a second the buffer fills in 16 ms, and e2e's median is 8 ms; with output-buffer: 0 it was 0.1 ms on the same host. " +
			"By default weir publishes by the client's Conn, past its Producer, and the figures are those of weir's; client-path: vendor measures the client's own, Producer.PublishAsync and, for batches, MultiPublishAsync. " +
			"Twelve interleaved pairs of runs of 60,000 messages in the closed loop (2026-11-23, go-nsq v1.1.0, nsqd 1.3.0, one server, a busy host with 2 cores) give these ratios of confirmed, vendor to weir: " +
			"geometric mean 1.01, 95 % interval 0.75 to 1.36, single pairs 0.59 to 2.48. They do not show which path is faster.",
		ClientWhy: "the vendor's own client for Go, by its Conn: the Producer and Consumer above that do not report a lost connection or a subscription in force, and the Consumer backs off and gives up messages on its own",
		Features: driver.Features{
			Persistence: "memory, and files beyond mem-queue-size messages",
			Replication: "none",
			Protocol:    "NSQ V2, binary over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a topic, weir.<run>.<destination>, on every server. An existing destination is a topic's name",
				Source: "https://nsq.io/overview/design.html",
			},
			{Word: "partition", To: "none; more than one is refused", Source: "https://nsq.io/overview/design.html"},
			{
				Word: "subscription", To: "a channel of its name on each of its topics, made when its first consumer is opened; the topic copies each message to each channel",
				Source: "https://nsq.io/overview/design.html",
			},
			{
				Word: "consumer", To: "a client with a connection to each of its topics on each server; its prefetch is dealt over these (RDY), and the channel gives each message to one of those that are ready",
				Source: "https://nsq.io/clients/tcp_protocol_spec.html#rdy",
			},
			{
				Word: "guarantee", To: "nsqd has answered OK to PUB, or MPUB: the message is in the topic's queue in memory, or where that has no room written to a file that is synced later; an ephemeral topic drops it there without a word",
				Source: "https://nsq.io/overview/features_and_guarantees.html",
			},
			{
				Word: "settle each", To: "FIN for each message taken, REQ for each refused; nsqd confirms neither, and sends again what was not settled within msg-timeout",
				Source: "https://nsq.io/clients/tcp_protocol_spec.html#fin",
			},
			{
				Word: "batch", To: "one MPUB, which nsqd takes as a whole",
				Source: "https://nsq.io/clients/tcp_protocol_spec.html#mpub",
			},
			{
				Word: "redelivered", To: "attempts of the message above 1: also after a consumer gave it back without having looked at it",
				Source: "https://nsq.io/clients/tcp_protocol_spec.html",
			},
		},
		Confirmations: []driver.Confirmation{
			{When: "server.mem-queue-size: 10000", Confirms: memory},
			{When: "topics: ephemeral", Confirms: memory},
			{When: "channels: ephemeral, server.mem-queue-size: 0", Confirms: memory},
			{When: "server.mem-queue-size: 0", Confirms: disk},
		},
	}
}
