package omb

import (
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
)

const (
	ownTopics = "weir makes topics of its own, and ends with them"
	clientOwn = "the client library of weir is another one, with threads and connections of its own"
)

var yesNo = map[string]string{"true": "yes", "false": "no"}

// kafka is the driver of Kafka, and of Redpanda, which has the same keys and protocol.
var kafka = system{
	driver: "kafka",
	rules: map[string]rule{
		"replicationFactor":                                    to("topology.replication"),
		"topicConfig.min.insync.replicas":                      to(options + "min-insync"),
		"topicConfig.flush.messages":                           to(options + "flush-messages"),
		"topicConfig.flush.ms":                                 same("0", "weir sets no flush.ms of topics"),
		"commonConfig.bootstrap.servers":                       server(options+"address", nil),
		"commonConfig.security.protocol":                       same("PLAINTEXT", "for TLS write --address tls://HOST:PORT and --option tls.ca=FILE, for SASL --option user=NAME"),
		"commonConfig.sasl.mechanism":                          word(options+"sasl", map[string]string{"plain": "plain", "scram-sha-256": "scram-sha-256", "scram-sha-512": "scram-sha-512"}),
		"commonConfig.sasl.jaas.config":                        not("a scenario holds no secrets (--option user=NAME --option password='${env:NAME}')"),
		"producerConfig.acks":                                  word(options+"acks", map[string]string{"all": "all", "-1": "all", "0": "0", "1": "1"}),
		"producerConfig.linger.ms":                             amount(options+"linger", "ms", 0),
		"producerConfig.batch.size":                            amount(options+"batch-max-bytes", "B", 512),
		"producerConfig.compression.type":                      word(options+"compression", map[string]string{"none": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}),
		"producerConfig.enable.idempotence":                    word(options+"idempotence", map[string]string{"true": "on", "false": "off"}),
		"producerConfig.delivery.timeout.ms":                   amount(options+"delivery-timeout", "ms", 1000),
		"producerConfig.retries":                               same("2147483647", "weir's client retries without end within --option delivery-timeout"),
		"producerConfig.max.in.flight.requests.per.connection": not("with idempotence weir's client has 5 requests in flight, otherwise what --option requests-in-flight says"),
		"producerConfig.max.request.size":                      not("weir's client bounds a batch (--option batch-max-bytes), not a request"),
		"producerConfig.buffer.memory":                         not("weir bounds messages, not bytes (--in-flight)"),
		"consumerConfig.auto.offset.reset":                     same("earliest", "a subscription of weir begins with the run's first message"),
		"consumerConfig.enable.auto.commit":                    word("consume.settle", map[string]string{"true": "auto", "false": "batch"}),
		"consumerConfig.auto.commit.interval.ms":               amount(options+"auto-commit-interval", "ms", 100),
		"consumerConfig.max.partition.fetch.bytes":             not("weir's client bounds the fetch of a broker (--option fetch-max-bytes), not that of a partition"),
		"consumerConfig.fetch.max.bytes":                       amount(options+"fetch-max-bytes", "B", 1),
		"consumerConfig.fetch.min.bytes":                       amount(options+"fetch-min-bytes", "B", 1),
		"consumerConfig.fetch.max.wait.ms":                     amount(options+"fetch-max-wait", "ms", 10),
		"consumerConfig.group.id":                              not("each subscription of weir has a group of its own"),
		"commonConfig.request.timeout.ms":                      not("weir bounds the whole time until a confirmation (--option delivery-timeout)"),
		"reset":                                                same("true", ownTopics),
		"requestsPerTransaction":                               not("weir sends no transactions"),
		"consumerConfig.session.timeout.ms":                    amount(options+"session-timeout", "ms", 4000),
	},
	finish: kafkaGuarantee,
}

// systems are the benchmark's drivers by the last part of driverClass.
var systems = map[string]system{
	"KafkaBenchmarkDriver":    kafka,
	"RedpandaBenchmarkDriver": kafka,
	"RabbitMqBenchmarkDriver": {
		driver: "rabbitmq",
		rules: map[string]rule{
			"amqpUris":                  amqp,
			"messagePersistence":        word(options+"delivery-mode", map[string]string{"true": "persistent", "false": "transient"}),
			"queueType":                 queueType,
			"producerCreationDelay":     not("weir makes no pauses between connections"),
			"producerCreationBatchSize": not("weir makes no pauses between connections"),
			"consumerCreationDelay":     not("weir makes no pauses between connections"),
			"consumerCreationBatchSize": not("weir makes no pauses between connections"),
		},
		defaults: map[string]string{"messagePersistence": "false", "queueType": "CLASSIC"},
		also:     map[string]string{"consume.settle": "auto"},
	},
	"PulsarBenchmarkDriver": {
		driver: "pulsar",
		rules: map[string]rule{
			"client.serviceUrl":                       server(options+"address", map[string]string{"pulsar": "", "pulsar+ssl": "pulsar+ssl://"}),
			"client.httpUrl":                          server(options+"admin", map[string]string{"http": "", "https": "https://"}),
			"client.ioThreads":                        not(clientOwn),
			"client.connectionsPerBroker":             not(clientOwn),
			"client.maxConcurrentLookupRequests":      not(clientOwn),
			"client.clientMemoryLimitMB":              not("weir bounds messages, not bytes (--in-flight)"),
			"client.clusterName":                      not("weir makes no namespace (--option namespace=TENANT/NAMESPACE names one that exists)"),
			"client.namespacePrefix":                  not("weir makes no namespace (--option namespace=TENANT/NAMESPACE names one that exists)"),
			"client.topicType":                        same("persistent", "weir's topics are persistent"),
			"client.persistence.ensembleSize":         not("the quorums are those of the namespace, which weir reads and does not set"),
			"client.persistence.writeQuorum":          not("the quorums are those of the namespace, which weir reads and does not set (of servers that weir starts: --option server.write-quorum)"),
			"client.persistence.ackQuorum":            not("the quorums are those of the namespace, which weir reads and does not set (of servers that weir starts: --option server.ack-quorum)"),
			"client.persistence.deduplicationEnabled": same("false", "it is a setting of the namespace, which weir does not change"),
			"client.tlsAllowInsecureConnection":       word(options+"tls.insecure", yesNo),
			"client.tlsEnableHostnameVerification":    not("weir verifies a server's name unless tls.insecure is yes"),
			"client.tlsTrustCertsFilePath":            to(options + "tls.ca"),
			"client.authentication.plugin":            not("weir has --option token, and user with password"),
			"client.authentication.data":              secret("token"),
			"producer.batchingEnabled":                word(options+"batching", yesNo),
			"producer.batchingMaxPublishDelayMs":      amount(options+"batch-delay", "ms", 1),
			"producer.batchingMaxBytes":               amount(options+"batch-size", "B", 1),
			"producer.blockIfQueueFull":               same("true", "a message of weir waits for room (--when-full)"),
			"producer.pendingQueueSize":               pending,
			"consumer.receiverQueueSize":              not("it is for each partition, and weir's prefetch for each consumer (--prefetch)"),
			"consumer.subscriptionType":               word(options+"subscription-type", map[string]string{"shared": "shared", "exclusive": "exclusive", "failover": "failover", "key_shared": "key_shared"}),
		},
		defaults: map[string]string{"producer.batchingMaxBytes": "1048576", "consumer.subscriptionType": "failover"},
	},
	"NatsBenchmarkDriver": {
		driver: "jetstream",
		rules: map[string]rule{
			"natsHostUrl":       server(options+"address", map[string]string{"nats": "nats://", "tls": "tls://"}),
			"replicationFactor": to("topology.replication"),
			"storageType":       word(options+"storage", map[string]string{"file": "file", "memory": "memory"}),
		},
	},
	"NatsStreamingBenchmarkDriver": {
		driver: "nats-streaming",
		rules: map[string]rule{
			"natsHostUrl":        server(options+"address", map[string]string{"nats": "nats://", "tls": "tls://"}),
			"clusterId":          to(options + "cluster-id"),
			"maxPubAcksInFlight": amount("load.in_flight", "", 1),
			"maxInFlight":        amount("consume.prefetch", "", 1),
		},
	},
	"RedisBenchmarkDriver": {
		driver: "redis-streams",
		rules: map[string]rule{
			"redisHost":         elsewhere,
			"redisPort":         elsewhere,
			"redisUser":         to(options + "user"),
			"redisPass":         secret("password"),
			"jedisPoolMaxTotal": not(clientOwn),
			"jedisPoolMaxIdle":  not(clientOwn),
		},
		finish: joined("redisHost", "redisPort", "6379"),
	},
	"MqttBenchmarkDriver": {
		driver: "mqtt",
		rules: map[string]rule{
			"client.serverUri":                      server(options+"address", map[string]string{"tcp": "", "mqtt": "", "ssl": "mqtts://", "mqtts": "mqtts://"}),
			"client.username":                       to(options + "user"),
			"client.password":                       secret("password"),
			"client.qos":                            to(options + "qos"),
			"client.topicPrefix":                    not(ownTopics),
			"consumer.cleanSession":                 not("sessions of weir end with the run"),
			"consumer.sessionExpiryIntervalSeconds": not("sessions of weir end with the run"),
			"consumer.sessionExpiryInterval":        not("sessions of weir end with the run"),
			"consumer.receiveMaximum":               amount("consume.prefetch", "", 1),
		},
	},
	"NsqBenchmarkDriver": {
		driver: "nsq",
		rules: map[string]rule{
			"nsqdHost":   with(options+"address", "", ":4150"),
			"lookupHost": with(options+"lookupd", "", ":4161"),
		},
	},
	"ArtemisBenchmarkDriver": {
		driver: "artemis",
		rules: map[string]rule{
			"brokerAddress": func(c *conversion, l leaf) {
				server(options+"address", map[string]string{"tcp": ""})(c, l)
				c.note(l.value.At, l.path, "differs: weir speaks AMQP 1.0 to this port, and the benchmark the server's own protocol")
			},
		},
	},
}

// queueType selects RabbitMQ's queues; streams have a separate driver.
func queueType(c *conversion, l leaf) {
	switch strings.ToUpper(l.text()) {
	case "CLASSIC":
		c.set(options+"queue", text(l.value, "classic"))
	case "QUORUM":
		c.set(options+"queue", text(l.value, "quorum"))
		c.note(l.value.At, l.path, "differs: the benchmark has as many replicas as the server gives a quorum queue, and weir asks for topology.replication, 1 unless you say --replication")
	default:
		not("weir knows classic and quorum here; for streams there is the driver rabbitmq-stream")(c, l)
	}
}

// pending is the limit of a producer's queue; 0 means no own limit.
func pending(c *conversion, l leaf) {
	if l.text() == "0" {
		not("0 sets no bound, and weir has one (--in-flight)")(c, l)
		return
	}
	amount("load.in_flight", "", 1)(c, l)
}

// kafkaGuarantee requires the guarantee that the settings give, so that a weaker system is rejected.
func kafkaGuarantee(c *conversion, leaves map[string]*tree.Node) {
	value := func(path string) string {
		if n := leaves[path]; n != nil {
			return strings.TrimSpace(n.Text)
		}
		return ""
	}
	acks := leaves["producerConfig.acks"]
	replicas, _ := strconv.Atoi(value("replicationFactor"))
	insync, _ := strconv.Atoi(value("topicConfig.min.insync.replicas"))
	const key = "system.guarantee"
	switch got := value("producerConfig.acks"); {
	case acks == nil:
	case (got == "all" || got == "-1") && value("topicConfig.flush.messages") == "1" && (replicas <= 1 || insync >= 2):
		c.set(key, text(acks, "persisted"))
	case (got == "all" || got == "-1") && replicas > 1 && insync >= 2:
		c.set(key, text(acks, "replicated"))
	case got == "1", got == "all", got == "-1":
		c.set(key, text(acks, "received"))
	}
}
