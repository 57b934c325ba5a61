package kafka

import (
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// page is what the driver says to a reader.
func page() driver.Page {
	const (
		design  = "https://kafka.apache.org/43/design/design/"
		topics  = "https://kafka.apache.org/43/configuration/topic-configs/"
		produce = "https://kafka.apache.org/43/configuration/producer-configs/"
		consume = "https://kafka.apache.org/43/configuration/consumer-configs/"
	)
	rows := append(kafkaconn.Confirmations(), driver.Confirmation{
		// The decision to commit is in a log of the brokers' own.
		When:     "transaction: 100, replication: 1, flush-messages: 1",
		Confirms: driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS},
	})
	slices.SortStableFunc(rows, func(a, b driver.Confirmation) int { return int(a.Guarantee) - int(b.Guarantee) })
	return driver.Page{
		About: "Kafka keeps messages in partitioned logs, on one broker or copied by followers. " +
			"By default a broker never syncs its files by itself. A confirmed message is in the operating system's memory of min.insync.replicas brokers, and survives the processes. " +
			"Messages travel in batches. At a low rate a message is a batch; at a high one the client gathers messages while earlier requests are in flight. " +
			"Java compiles a new broker while it works: its first ten seconds under load are slower, at first by a factor of ten and more. A run that starts it needs --warmup 10s (the default is 2 s); the verdict says so. " +
			"weir concludes the version from the broker's request versions, because brokers do not report it. " +
			"Redpanda speaks the same protocol; weir has not been tried against it.",
		ClientWhy: "in Go throughout, with all of the protocol that is used here; TryProduce and one record kept for each message let it publish without waiting and without an allocation of the driver's own",
		Features: driver.Features{
			Persistence: "files of the operating system, synced when flush.messages says so; kept by time and size, read or not",
			Replication: "followers fetch from a partition's leader; those in sync may lead next (KRaft decides)",
			Protocol:    "Kafka's own, binary over TCP",
		},
		Maps: []driver.Mapping{
			{Word: "destination", To: "a topic, weir.<run>.<destination>; an existing destination is a topic's name", Source: design},
			{
				Word: "partition", To: "a partition; a message with a key goes by murmur2 of the key as the vendor's client has it, one without by the option partitioner (sticky: one partition until 64 KiB are together; round-robin; producer: the producer's index modulo partitions)",
				Source: produce,
			},
			{Word: "subscription", To: "a consumer group of the classic protocol, from the oldest message on or where consume.from says", Source: design},
			{Word: "consumer", To: "a member of the group, by a client of its own; the partitions are dealt over the members, and more members than partitions idle", Source: consume},
			{
				Word: "guarantee", To: "the answer to the produce request; what it means decide acks, the replicas, min.insync.replicas and flush.messages, read from every broker that holds the topic",
				Source: topics,
			},
			{
				Word: "settle batch", To: "what one poll yielded is committed by one request, beside the deliveries; what came meanwhile goes with the next",
				Source: consume,
			},
			{Word: "settle each", To: "a commit request for each message, one after the other: a consumer settles one message in the time that a commit takes", Source: consume},
			{
				Word: "settle auto", To: "committing at an interval: the client commits every auto-commit-interval what was polled before the last poll, and at the end the rest; after a crash what was delivered since comes again",
				Source: consume,
			},
			{
				Word: "transaction", To: "the option transaction: up to that many messages at once, which complete when they are committed together or fail together; consumers read what is committed",
				Source: "https://kafka.apache.org/43/design/design/#using-transactions",
			},
			{
				Word: "from", To: "a commit for the group before it has members, of what the topic's partitions hold then; an offset or a time beyond an end becomes that end",
				Source: "https://kafka.apache.org/43/operations/basic-kafka-operations/#managing-consumer-groups",
			},
			{
				Word: "durable", To: "the group of that name, which stays; it continues at the earliest message of each partition that is not committed",
				Source: design,
			},
			{
				Word: "batching", To: "a batch of a partition goes out as soon as a request slot of its broker is free (5 with idempotence, 1 without) or linger is over; it holds up to batch-max-bytes",
				Source: "https://pkg.go.dev/github.com/twmb/franz-go/pkg/kgo#ProducerLinger",
			},
			{
				Word: "retries", To: "without end within delivery-timeout, inside the client; with idempotence the broker drops what came twice",
				Source: "https://pkg.go.dev/github.com/twmb/franz-go/pkg/kgo#RecordDeliveryTimeout",
			},
			{
				Word: "prefetch", To: "most messages delivered and not committed; the client fetches ahead of that, up to fetch-max-bytes of each broker",
				Source: "https://pkg.go.dev/github.com/twmb/franz-go/pkg/kgo#FetchMaxBytes",
			},
		},
		Confirmations: rows,
	}
}
