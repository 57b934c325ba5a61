package kmq

import (
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

// page is what the driver says to a reader.
func page() driver.Page {
	const (
		article = "https://softwaremill.com/using-kafka-as-a-message-queue/"
		code    = "https://github.com/softwaremill/kmq"
		design  = "https://kafka.apache.org/43/design/design/"
		topics  = "https://kafka.apache.org/43/configuration/topic-configs/"
		produce = "https://kafka.apache.org/43/configuration/producer-configs/"
	)
	return driver.Page{
		About: "KMQ uses Kafka as a queue. A client writes a marker to a second topic when it begins to process a message, and another when it has. A message that is begun and not ended in time is sent again. " +
			"A message costs two markers, and waits for the first of them to be confirmed before it is delivered. " +
			"weir does in Go what KMQ's own client and tracker for Java do, with the same markers; their code does not run. " +
			"The redelivery tracker, in KMQ a program of its own, runs inside weir and takes part of its processor time. " +
			"A message that is never accepted comes again without end; later versions of KMQ put it aside after three times, which weir does not. " +
			"The page of kafka says what sending means, and how long a new broker needs (--warmup 10s).",
		ClientWhy: "the one by which weir measures kafka, so that the two differ by the markers alone; KMQ's own client is for Java",
		Features: driver.Features{
			Persistence: "files of the operating system, as Kafka's; markers too",
			Replication: "as Kafka's: followers fetch from a partition's leader; markers have as many replicas as their messages",
			Protocol:    "Kafka's own, binary over TCP",
		},
		Maps: []driver.Mapping{
			{Word: "destination", To: "a topic, weir.<run>.<destination>, with a topic of markers of as many partitions, <topic>.markers", Source: article},
			{Word: "partition", To: "a partition, chosen as by the driver kafka; a message that comes again stays in its own, and its markers are in the one of the same number", Source: produce},
			{
				Word: "subscription", To: "the queue: one consumer group, and no second, which would be given what comes again to the first; it begins at the oldest message or where consume.from says",
				Source: article,
			},
			{Word: "consumer", To: "a member of the group, by a client of its own, which also writes its markers; more members than partitions idle", Source: code},
			{
				Word: "guarantee", To: "the answer to the produce request, as with the driver kafka: acks, the replicas, min.insync.replicas and flush.messages decide; the markers have the same settings",
				Source: topics,
			},
			{Word: "settle each", To: "an end marker for each message, which is settled when its own is confirmed; the client sends those together that are there", Source: code},
			{Word: "settle batch", To: "the same markers; what one poll yielded is settled together, when the last of them is confirmed", Source: code},
			{
				Word: "redelivery", To: "appended to the same partition redeliver-after later, with the header kmq-redelivery-count; done by a tracker inside weir, for each partition of markers one",
				Source: code,
			},
			{
				Word: "from", To: "a commit for the group before it has members; an offset or a time beyond an end becomes that end",
				Source: "https://kafka.apache.org/43/operations/basic-kafka-operations/#managing-consumer-groups",
			},
			{
				Word: "durable", To: "the group of that name with the markers <topic>.<name>.markers, which stay; what was left unsettled comes redeliver-after later",
				Source: design,
			},
			{Word: "prefetch", To: "most messages accepted without a confirmed end marker", Source: code},
		},
		Confirmations: kafkaconn.Confirmations(),
	}
}
