package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirmq/weir/result"
)

// A system is a server measured in turns by weir and a load tool, the vendor's own if there is one.
type system struct {
	name     string            // as named on the command line
	title    string            //
	driver   string            // weir's driver; its first recipe starts the server
	settings map[string]string // of that recipe
	tool     string            // a recipe of tools.yaml; "" if the server's install includes the tool
	flows    []flow
}

// A flow is one measurement that both do.
type flow struct {
	name      string
	what      string // in the table
	tool      string // the vendor's tool with its version
	size      int    // bytes of a message
	inFlight  string // unacknowledged messages, on each side
	weir      []string
	backlog   int    // messages that weir sends before it receives them; 0: both at once, for some seconds
	weirIs    string // what weir counts
	figure    func(*result.Throughput) float64
	peer      func(*bench) []string
	peerIs    string // what the peer counts
	parse     func(out string) (float64, error)
	fill      func(*bench) [][]string // runs once before the first turn, for the peer; may be nil
	before    func(*bench) []string   // runs before each turn of the peer, not measured; may be nil
	receiver  func(*bench) []string   // runs beside the peer and provides the output to parse; may be nil
	different string                  // what the two do differently, apart from what they count
}

func confirmed(t *result.Throughput) float64 { return t.ConfirmedPerS }

func received(t *result.Throughput) float64 { v, _ := t.Received(); return v }

// hostPort splits the address without its scheme.
func (b *bench) hostPort() (host, port string) {
	_, at, found := strings.Cut(b.address, "://")
	if !found {
		at = b.address
	}
	host, port, _ = strings.Cut(strings.TrimSuffix(at, "/"), ":")
	return host, port
}

// Messages of a peer's turn: some 2 to 10 s on a quiet host. A backlog is equally large on both sides.
const (
	natsPublished  = 2_000_000
	natsReceived   = 1_000_000
	natsStored     = 150_000
	natsBacklog    = 500_000
	kafkaRecords   = 150_000
	kafkaWarmUp    = 50_000
	kafkaBacklog   = 1_000_000
	redisEntries   = 150_000
	rocketMessages = 60_000
	mqttMessages   = 60_000
	pulsarBacklog  = 600_000
)

// Lengths of turns for tools that run for a time.
const (
	perfTestS      = 8
	artemisS       = 11
	artemisWarmUpS = 3
	pulsarS        = 21
)

// Paths of programs within installs.
const (
	artemisHome     = "apache-artemis-2.56.0"
	pulsarPerf      = "apache-pulsar-4.0.8/bin/pulsar-perf"
	rocketBenchmark = "org.apache.rocketmq.example.benchmark.Producer"
)

// natsBench returns a nats bench command.
func natsBench(b *bench, count, size int, args ...string) []string {
	all := append([]string{b.tool.Programs["nats"], "--no-context", "--server", b.address, "bench"}, args...)
	return append(all, "--msgs", strconv.Itoa(count), "--size", strconv.Itoa(size), "--no-progress")
}

// systems lists all systems, in the order of the table.
var systems = []system{
	{
		name: "nats", title: "NATS", driver: "nats", tool: "natscli",
		flows: []flow{
			{
				name: "nats-publish", what: "publish", tool: "nats bench 0.3.0", size: 128, inFlight: "the client's buffer",
				weir: []string{"--mode", "produce"}, weirIs: "published, taken by the client", figure: confirmed,
				peer:   func(b *bench) []string { return natsBench(b, natsPublished, 128, "pub", "peers.publish") },
				peerIs: "published, flushed once at the end", parse: parseNATS,
				different: "weir stamps and checks each message and reads the clock for it; the peer sends the same bytes each time and reads the clock twice a run",
			},
			{
				name: "nats-receive", what: "publish and receive", tool: "nats bench 0.3.0", size: 128, inFlight: "the client's buffer",
				weirIs: "received, by the process that publishes", figure: received,
				receiver: func(b *bench) []string { return natsBench(b, natsReceived, 128, "sub", "peers.receive") },
				peer:     func(b *bench) []string { return natsBench(b, natsReceived, 128, "pub", "peers.receive") },
				peerIs:   "received, by a process of its own", parse: parseNATS,
				different: "weir checks each message for loss, order and corruption and publishes in the same process; the peer counts",
			},
		},
	},
	{
		name: "jetstream", title: "NATS JetStream", driver: "jetstream", tool: "natscli",
		flows: []flow{
			{
				name: "jetstream-publish", what: "publish to a file", tool: "nats bench 0.3.0", size: 1024, inFlight: "500",
				weir: []string{"--mode", "produce", "--in-flight", "500"}, weirIs: "confirmed", figure: confirmed,
				peer: func(b *bench) []string {
					return natsBench(b, natsStored, 1024, "js", "pub", "async", "peers.stored", "--stream", "peers", "--create", "--purge", "--storage", "file", "--batch", "500")
				},
				peerIs: "confirmed", parse: parseNATS,
				different: "the peer sends 500, waits for all of them and sends the next; weir replaces each confirmed message at once",
			},
			{
				name: "jetstream-consume", what: "consume a backlog from a file", tool: "nats bench 0.3.0", size: 1024, inFlight: "500",
				weir: []string{"--in-flight", "500", "--prefetch", "500"}, backlog: natsBacklog, weirIs: "received, each acknowledged", figure: received,
				before: func(b *bench) []string {
					return natsBench(b, natsBacklog, 1024, "js", "pub", "async", "peers.backlog", "--stream", "peers-backlog", "--create", "--purge", "--storage", "file", "--batch", "500")
				},
				peer: func(b *bench) []string {
					return natsBench(b, natsBacklog, 1024, "js", "consume", "--stream", "peers-backlog", "--batch", "500", "--acks", "explicit")
				},
				peerIs: "received, each acknowledged", parse: parseNATS,
				different: "weir checks each message for loss, order and corruption, the peer counts; each drains what its own side published just before",
			},
		},
	},
	{
		name: "kafka", title: "Apache Kafka", driver: "kafka",
		flows: []flow{
			{
				name: "kafka-produce", what: "produce, acks=all", tool: "ProducerPerformance 4.3.1", size: 1024, inFlight: "10,000, or 32 MiB of the peer's client",
				weir: []string{"--mode", "produce", "--in-flight", "10000"}, weirIs: "confirmed", figure: confirmed,
				fill: func(b *bench) [][]string { return [][]string{kafkaTopic(b, "peers")} },
				peer: func(b *bench) []string {
					return kafkaTool(b, "ProducerPerformance", "peers", kafkaRecords, "--warmup-records", strconv.Itoa(kafkaWarmUp), "--record-size", "1024", "--throughput", "-1", "--command-property", "acks=all")
				},
				peerIs: "confirmed, after 50,000 of warm-up", parse: parseProducerPerformance,
				different: "the clients choose batches by themselves: franz-go for weir, Kafka's own for Java for the peer",
			},
			{
				name: "kafka-consume", what: "consume a backlog, auto-commit", tool: "ConsumerPerformance 4.3.1", size: 1024, inFlight: "what the clients fetch",
				weir: []string{"--in-flight", "10000", "--settle", "auto"}, backlog: kafkaBacklog, weirIs: "received, from the end of the first fetch", figure: received,
				fill: func(b *bench) [][]string {
					return [][]string{
						kafkaTopic(b, "peers-backlog"),
						kafkaTool(b, "ProducerPerformance", "peers-backlog", kafkaBacklog, "--record-size", "1024", "--throughput", "-1", "--command-property", "acks=all"),
					}
				},
				peer: func(b *bench) []string {
					return kafkaTool(b, "ConsumerPerformance", "peers-backlog", kafkaBacklog, "--show-detailed-stats", "--reporting-interval", "250")
				},
				peerIs: "received, its first 1.25 s left out", parse: parseConsumerPerformance,
				different: "weir verifies the checksum of each batch and of each message, and the peer none (check.crcs=false); weir drains what it sent just before, the peer one topic in all turns, in a new group each; " +
					"the clients are franz-go for weir, Kafka's own for Java for the peer",
			},
		},
	},
	{
		name: "rabbitmq", title: "RabbitMQ", driver: "rabbitmq", tool: "perftest",
		flows: []flow{{
			name: "rabbitmq-confirmed", what: "publish and receive, classic queue, persistent, confirms", tool: "PerfTest 2.22.1", size: 1024, inFlight: "1,000",
			weir: []string{"--option", "queue=classic", "--in-flight", "1000", "--consume.prefetch", "1000"}, weirIs: "received, each acknowledged", figure: received,
			peer: func(b *bench) []string {
				host, port := b.hostPort()
				return java(b.tool, "com.rabbitmq.perf.PerfTest", "--uri", "amqp://guest:guest@"+host+":"+port, "-x", "1", "-y", "1", "-s", "1024", "-z", strconv.Itoa(perfTestS),
					"-c", "1000", "-q", "1000", "-f", "persistent", "-u", "peers", "-ad", "false")
			},
			peerIs: "received, each acknowledged; its first 3 s left out", parse: parsePerfTest,
			different: "both publish and receive in one process; the Java of the peer is not warm even then",
		}},
	},
	{
		name: "redis", title: "Redis Streams", driver: "redis-streams",
		flows: []flow{{
			name: "redis-xadd", what: "XADD", tool: "redis-benchmark, the server's", size: 1024, inFlight: "100",
			weir: []string{"--mode", "produce", "--in-flight", "100"}, weirIs: "confirmed", figure: confirmed,
			before: func(b *bench) []string { return redisTool(b, "redis-cli", "del", "peers") },
			peer: func(b *bench) []string {
				return redisTool(b, "redis-benchmark", "-c", "1", "-P", "100", "-n", strconv.Itoa(redisEntries), "-q", "XADD", "peers", "*", "p", strings.Repeat("x", 1024))
			},
			peerIs: "confirmed", parse: parseRedisBenchmark,
			different: "the peer, in C, sends one prepared buffer of 100 commands, waits for all answers and sends it again",
		}},
	},
	{
		name: "artemis", title: "Apache Artemis", driver: "artemis",
		flows: []flow{{
			name: "artemis-durable", what: "publish and receive, durable, AMQP 1.0", tool: "artemis perf client 2.56.0", size: 1024, inFlight: "1,000",
			weir: []string{"--in-flight", "1000", "--consume.prefetch", "1000"}, weirIs: "received, each acknowledged", figure: received,
			peer: func(b *bench) []string {
				host, port := b.hostPort()
				home := filepath.Join(b.server.Dir, artemisHome)
				return []string{
					"java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED", "-Dartemis.home=" + home,
					"-cp", filepath.Join(home, "lib", "artemis-boot.jar"), "org.apache.activemq.artemis.boot.Artemis", "perf", "client",
					"--protocol", "AMQP", "--url", "amqp://" + host + ":" + port, "--user", "weir", "--password", "weir",
					"--persistent", "--message-size", "1024", "--max-pending", "1000", "--warmup", strconv.Itoa(artemisWarmUpS), "--duration", strconv.Itoa(artemisS), "queue://peers",
				}
			},
			peerIs: "received, each acknowledged; its first 3 s left out", parse: parseArtemisPerf,
			different: "both publish and receive in one process by AMQP 1.0: weir with Microsoft's client for Go, the peer with Qpid JMS",
		}},
	},
	{
		name: "rocketmq", title: "Apache RocketMQ", driver: "rocketmq", tool: "rocketmq-benchmark",
		flows: []flow{{
			name: "rocketmq-send", what: "send, one queue, ASYNC_FLUSH", tool: "RocketMQ's benchmark Producer 5.5.0", size: 1024, inFlight: "64",
			weir: []string{"--mode", "produce", "--in-flight", "64"}, weirIs: "confirmed", figure: confirmed,
			before: func(b *bench) []string {
				return java(b.tool, "org.apache.rocketmq.tools.command.MQAdminStartup", "updateTopic", "-n", b.address, "-c", "weir", "-t", "peers", "-r", "1", "-w", "1")
			},
			peer: func(b *bench) []string {
				return java(b.tool, rocketBenchmark, "-n", b.address, "-t", "peers", "-s", "1024", "-w", "64", "-q", strconv.Itoa(rocketMessages))
			},
			peerIs: "confirmed, in its last 10 s at most", parse: parseRocketBenchmark,
			different: "the peer has 64 threads that each send and wait, weir one producer with 64 messages in flight",
		}},
	},
	{
		name: "mqtt", title: "MQTT, Mosquitto", driver: "mqtt", tool: "mosquitto-clients",
		flows: []flow{{
			name: "mqtt-publish", what: "publish, QoS 1, version 5", tool: "mosquitto_pub -l, of Mosquitto", size: 1024, inFlight: "20",
			weir: []string{"--mode", "produce", "--in-flight", "20", "--option", "qos=1"}, weirIs: "confirmed", figure: confirmed,
			peer: func(b *bench) []string {
				host, port := b.hostPort()
				return []string{
					"bash", "-c", `TIMEFORMAT=seconds:%R; { time yes "$1" | head -n "$2" | "$3" -V mqttv5 -h "$4" -p "$5" -t peers -q 1 -l; } 2>&1`, "bash",
					strings.Repeat("x", 1024), strconv.Itoa(mqttMessages), b.tool.Programs["mosquitto_pub"], host, port,
				}
			},
			peerIs: "confirmed, from its start to its end", parse: parseMosquittoPub,
			different: "the peer, in C, is a client and not a load tool: it sends each line that it reads, and bash takes its time",
		}},
	},
	{
		name: "pulsar", title: "Apache Pulsar", driver: "pulsar",
		flows: []flow{
			{
				name: "pulsar-produce", what: "produce, entries of up to 1 ms", tool: "pulsar-perf 4.0.8", size: 1024, inFlight: "1,000",
				weir: []string{"--mode", "produce", "--in-flight", "1000", "--option", "batch-size=4MiB"}, weirIs: "confirmed", figure: confirmed,
				peer: func(b *bench) []string {
					return pulsarTool(b, "produce", "--size", "1024", "--rate", "1000000", "--max-outstanding", "1000", "--test-duration", strconv.Itoa(pulsarS), "peers")
				},
				peerIs: "confirmed, its first 10 s left out", parse: parsePulsarProduce,
				different: "the clients are the project's own: that for Go for weir, that for Java for the peer",
			},
			{
				name: "pulsar-consume", what: "consume a backlog, exclusive", tool: "pulsar-perf 4.0.8", size: 1024, inFlight: "1,000",
				weir:    []string{"--in-flight", "1000", "--prefetch", "1000", "--option", "batch-size=4MiB", "--option", "subscription-type=exclusive"},
				backlog: pulsarBacklog, weirIs: "received, each acknowledged", figure: received,
				fill: func(b *bench) [][]string {
					return [][]string{pulsarTool(b, "produce", "--size", "1024", "--rate", "1000000", "--max-outstanding", "1000", "--num-messages", strconv.Itoa(pulsarBacklog), "peers-backlog")}
				},
				peer: func(b *bench) []string {
					return pulsarTool(b, "consume", "--num-messages", strconv.Itoa(pulsarBacklog), "--subscription-position", "Earliest", "--subscriptions", fmt.Sprintf("turn-%d", b.turn), "peers-backlog")
				},
				peerIs: "received, each acknowledged, from its subscription on", parse: parsePulsarConsume,
				different: "both send acknowledgements in groups, after 100 ms at most; weir drains what it sent just before, the peer one topic in all turns, by a new subscription each; " +
					"the clients are the project's own, for Go and for Java",
			},
		},
	},
}

// kafkaTool returns a command that runs one of Kafka's tests on a topic.
func kafkaTool(b *bench, class, topic string, records int, args ...string) []string {
	host, port := b.hostPort()
	return append(java(b.server, "org.apache.kafka.tools."+class, "--bootstrap-server", host+":"+port, "--topic", topic, "--num-records", strconv.Itoa(records)), args...)
}

// kafkaTopic returns a command that creates a topic with one partition.
func kafkaTopic(b *bench, topic string) []string {
	host, port := b.hostPort()
	return java(b.server, "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", host+":"+port, "--create", "--if-not-exists", "--topic", topic, "--partitions", "1")
}

// pulsarTool returns a pulsar-perf command, which takes Java's flags and its log folder from
// variables. Its histograms need more heap than the other tools have.
func pulsarTool(b *bench, verb string, args ...string) []string {
	host, port := b.hostPort()
	return append([]string{
		"env", "PULSAR_EXTRA_OPTS=-Xmx1g -XX:+UseSerialGC", "PULSAR_LOG_DIR=" + b.dir,
		filepath.Join(b.server.Dir, pulsarPerf), verb, "--service-url", "pulsar://" + host + ":" + port,
	}, args...)
}

// redisTool returns a command from the server's package.
func redisTool(b *bench, name string, args ...string) []string {
	host, port := b.hostPort()
	return append([]string{program(b.server, "usr/bin", name), "-h", host, "-p", port}, args...)
}
