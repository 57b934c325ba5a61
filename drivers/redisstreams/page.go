package redisstreams

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	const docs = "https://redis.io/docs/latest/"
	received := driver.Confirms{Guarantee: driver.Received}
	receivedOS := driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}
	replicated := driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum}
	persisted := driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}
	persistedQuorum := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}
	return driver.Page{
		About: "Redis keeps streams in memory, on one server. Out of the box it writes a snapshot now and then and nothing else: a confirmed message dies with the process. " +
			"An append-only file makes it durable, as often as appendfsync says; with always one sync serves all commands that the server has at hand. " +
			"Replicas follow a master without its waiting for them, unless WAIT is asked for; even then a failover may choose one that lacks a message. " +
			"Streams keep what was acknowledged: without max-len a run fills the server's memory with all that it sends. Valkey is driven by the same driver.",
		ClientWhy: "the vendor's own client for Go, and of the vendor's two the one that takes commands without waiting for their answers on one ordered connection; the other, rueidis, has a goroutine wait for each",
		Features: driver.Features{
			Persistence: "memory, with an append-only file if switched on",
			Replication: "replicas that follow one master; WAIT waits for them",
			Protocol:    "RESP over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a stream, the key weir:<run>:<destination>; a message is an entry of the fields p, its payload, and k, its key. An existing destination is a stream's key",
				Source: docs + "develop/data-types/streams/",
			},
			{Word: "partition", To: "none; more than one is refused (one makes several streams, and has several destinations)", Source: docs + "develop/data-types/streams/"},
			{
				Word: "subscription", To: "a consumer group of its name on each of its streams, which begins with the oldest entry unless told otherwise",
				Source: docs + "commands/xgroup-create/",
			},
			{
				Word: "consumer", To: "a member of the group, with a connection that reads and one that acknowledges; an entry goes to the member that asks first",
				Source: docs + "commands/xreadgroup/",
			},
			{
				Word: "guarantee", To: "the server has answered XADD with an ID, and with wait-replicas or wait-aof WAIT or WAITAOF with enough; what the former means on disk decide appendonly and appendfsync",
				Source: docs + "operate/oss_and_stack/management/persistence/",
			},
			{
				Word: "replay", To: "where a new group begins: earliest is 0, latest is $; offset is an entry's ID, and the first message is that entry or the next later one; time is an ID's first number, milliseconds of the server's clock. " +
					"An ID behind the last entry's is taken as it is: what comes with a lower one is passed over",
				Source: docs + "commands/xgroup-create/",
			},
			{
				Word: "resume", To: "a durable subscription is a group of that very name, made where it is not there, continued where it is, and left behind. " +
					"Its consumers are weir-0, weir-1 and so on; what an earlier one has not acknowledged is claimed and delivered first if CLIENT LIST shows no connection of it, and otherwise after claim-after",
				Source: docs + "commands/xclaim/",
			},
			{Word: "settle each", To: "one XACK a message, when it has been taken, without waiting for the one before", Source: docs + "commands/xack/"},
			{Word: "settle batch", To: "one XACK a stream for all that one read yielded", Source: docs + "commands/xack/"},
			{Word: "settle auto", To: "NOACK: the server counts an entry as acknowledged when it has handed it out, and delivery is at most once", Source: docs + "commands/xreadgroup/"},
			{
				Word: "refusal", To: "none; what was refused, or its consumer lost, stays pending and is claimed after claim-after, flagged as redelivered",
				Source: docs + "commands/xautoclaim/",
			},
			{
				Word: "replication", To: "wait-replicas, of all that the server holds; a destination has none of its own",
				Source: docs + "commands/wait/",
			},
			{
				Word: "appendfsync", To: "read from the server, as is appendonly: always is a sync before the answer, no leaves the file to the operating system, " +
					"everysec syncs once a second and may put a write off for 2 s, so that it counts for nothing",
				Source: docs + "operate/oss_and_stack/management/persistence/",
			},
			{
				Word: "max-len", To: "XADD MAXLEN ~, which keeps whole nodes of the stream (100 entries by default), or with max-len-exact MAXLEN =; what it cuts off unread is lost, and counted as that",
				Source: docs + "commands/xadd/",
			},
			{Word: "wait-aof", To: "WAITAOF, in Redis from 7.2 and in Valkey", Source: docs + "commands/waitaof/"},
			{Word: "batch", To: "one pipeline of XADD commands, written and answered together; not a transaction", Source: docs + "develop/using-commands/pipelining/"},
		},
		Confirmations: []driver.Confirmation{
			{When: "wait-replicas: 0", Confirms: received},
			{When: "server.appendonly: yes, server.appendfsync: everysec", Confirms: received},
			{When: "server.appendonly: yes, server.appendfsync: no", Confirms: receivedOS},
			{When: "wait-replicas: 1", Confirms: replicated},
			{When: "server.appendonly: yes, server.appendfsync: always", Confirms: persisted},
			{When: "wait-aof: true, server.appendonly: yes", Confirms: persisted},
			{When: "wait-replicas: 1, wait-aof: true, server.appendonly: yes", Confirms: persistedQuorum},
		},
	}
}
