package jetstream

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	received := driver.Confirms{Guarantee: driver.Received}
	receivedOS := driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}
	replicated := driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum}
	replicatedOS := driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS}
	persisted := driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}
	persistedQuorum := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}
	return driver.Page{
		About: "JetStream is the part of a NATS server that keeps messages in streams: in memory or in files, on one node or replicated over several by Raft. " +
			"By default a server syncs its files every two minutes, after it has confirmed. A confirmed message survives the process, not the machine. " +
			"Whether a server syncs each write is its own setting, which clients cannot see. weir asks for it where it can: at the embedded server, at others by the option monitor. A server that does not answer counts as not syncing. " +
			"By default weir publishes past the client's own publisher, and the figures are those of weir's; client-path: vendor measures the client's own. " +
			"Ten interleaved pairs of runs of 4 s (2026-11-23, nats.go v1.55.0, nats-server 2.15.2, embedded server, a host with 2 busy cores) give these ratios of medians, vendor to weir: " +
			"confirmed in the closed loop (rate: max) 0.73, single pairs 0.35 to 0.88; send p50 at 5,000/s 1.6, single pairs 0.15 to 20, which decides nothing at that rate.",
		ClientWhy: "the vendor's own client for Go; messages carry reply subjects from a fixed table instead of the client's futures, which take half as long again and over five times the allocations",
		Embeds:    "github.com/nats-io/nats-server/v2",
		Features: driver.Features{
			Persistence: "memory or files, by stream",
			Replication: "Raft, a group for each stream",
			Protocol:    "NATS, text over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a stream of one subject, weir.<run>.<destination>, with limits retention and no limits. An existing destination is a stream's name, or a subject that a stream takes",
				Source: "https://docs.nats.io/nats-concepts/jetstream/streams",
			},
			{
				Word: "partition", To: "none; more than one is refused (the server can partition subjects by a mapping, each then a stream of its own)",
				Source: "https://docs.nats.io/nats-concepts/subject_mapping",
			},
			{Word: "subscription", To: "a durable pull consumer of its name on each of its streams", Source: "https://docs.nats.io/nats-concepts/jetstream/consumers"},
			{
				Word: "consumer", To: "a client with a connection of its own that pulls from the durable; all that pull from one compete",
				Source: "https://docs.nats.io/nats-concepts/jetstream/consumers",
			},
			{
				Word: "guarantee", To: "the stream's leader has acknowledged the message (PubAck); what that means decide storage, replicas and whether the server syncs always",
				Source: "https://docs.nats.io/reference/config/jetstream/sync_interval",
			},
			{
				Word: "position", To: "the durable's deliver policy: all, new, by_start_sequence (an offset is a sequence of the stream, 1 or more) or by_start_time. " +
					"An offset that is gone begins at the first message left, one beyond the end passes over what comes before it, a time in the future begins at the next message",
				Source: "https://docs.nats.io/nats-concepts/jetstream/consumers",
			},
			{
				Word: "durable", To: "the durable pull consumer of that name on each stream, which takes all destinations there and continues with the settings that it has. " +
					"What a killed process had received comes again after the durable's ack_wait, behind what was not delivered yet",
				Source: "https://docs.nats.io/nats-concepts/jetstream/consumers",
			},
			{Word: "settle each", To: "every message is acknowledged by itself, when it has been taken", Source: "https://docs.nats.io/nats-concepts/jetstream/consumers"},
			{
				Word: "settle batch", To: "each message of a fetch is delivered as it is yielded; when no more is at hand each of them is acknowledged, and all leave in one write",
				Source: "https://docs.nats.io/nats-concepts/jetstream/consumers",
			},
			{
				Word: "settle auto", To: "ack policy none: the server forgets a message when it has sent it, and delivery is at most once",
				Source: "https://docs.nats.io/nats-concepts/jetstream/consumers",
			},
			{Word: "settle none", To: "the same as auto", Source: "https://docs.nats.io/nats-concepts/jetstream/consumers"},
		},
		Confirmations: []driver.Confirmation{
			{When: "storage: memory, replication: 1", Confirms: received},
			{When: "storage: file, replication: 1", Confirms: receivedOS},
			{When: "storage: memory, replication: 2 to 5", Confirms: replicated},
			{When: "storage: file, replication: 2 to 5", Confirms: replicatedOS},
			{When: "storage: file, replication: 1, server.sync-always: true", Confirms: persisted},
			{When: "storage: file, replication: 2 to 5, server.sync-always: true", Confirms: persistedQuorum},
		},
	}
}
