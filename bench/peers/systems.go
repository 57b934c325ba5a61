package main

import (
	"strconv"
	"strings"

	"github.com/weirmq/weir/result"
)

// A system is a server that weir and a load tool, its vendor's own where there is one, measure in turns.
type system struct {
	name     string            // as users ask for it
	title    string            //
	driver   string            // of weir; its first recipe starts the server
	settings map[string]string // of that recipe
	tool     string            // a recipe of tools.yaml; "" where the server's install has the tool
	flows    []flow
}

// A flow is one thing that both measure.
type flow struct {
	name      string
	what      string // in the table
	tool      string // the vendor's tool, with its version
	size      int    // bytes of a message
	inFlight  string // messages without an answer, on each side
	weir      []string
	weirIs    string // what weir counts
	figure    func(*result.Throughput) float64
	peer      func(*bench) []string
	peerIs    string // what the peer counts
	parse     func(out string) (float64, error)
	before    func(*bench) []string // runs before each turn of the peer, outside of what is measured; nil: nothing
	receiver  func(*bench) []string // runs beside the peer; its output is the one that counts; nil: none
	different string                // what the two do differently, beside what they count
}

func confirmed(t *result.Throughput) float64 { return t.ConfirmedPerS }

func received(t *result.Throughput) float64 { v, _ := t.Received(); return v }

// hostPort returns an address without its scheme.
func (b *bench) hostPort() (host, port string) {
	_, at, found := strings.Cut(b.address, "://")
	if !found {
		at = b.address
	}
	host, port, _ = strings.Cut(strings.TrimSuffix(at, "/"), ":")
	return host, port
}

// Messages of the peers' turns: some 2 to 5 s of a quiet host.
const (
	natsPublished = 2_000_000
	natsReceived  = 1_000_000
	natsStored    = 150_000
	kafkaRecords  = 150_000
	kafkaWarmUp   = 50_000
	redisEntries  = 150_000
	perfTestS     = 8
)

// natsBench returns a call of nats bench.
func natsBench(b *bench, count, size int, args ...string) []string {
	all := append([]string{b.tool.Programs["nats"], "--no-context", "--server", b.address, "bench"}, args...)
	return append(all, "--msgs", strconv.Itoa(count), "--size", strconv.Itoa(size), "--no-progress")
}

// systems are all that this program knows, in the order of the table.
var systems = append(servers, brokers...)

var servers = []system{
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
		flows: []flow{{
			name: "jetstream-publish", what: "publish to a file", tool: "nats bench 0.3.0", size: 1024, inFlight: "500",
			weir: []string{"--mode", "produce", "--in-flight", "500"}, weirIs: "confirmed", figure: confirmed,
			peer: func(b *bench) []string {
				return natsBench(b, natsStored, 1024, "js", "pub", "async", "peers.stored", "--stream", "peers", "--create", "--purge", "--storage", "file", "--batch", "500")
			},
			peerIs: "confirmed", parse: parseNATS,
			different: "the peer sends 500, waits for all of them and sends the next; weir replaces each confirmed message at once",
		}},
	},
	{
		name: "kafka", title: "Apache Kafka", driver: "kafka",
		flows: []flow{{
			name: "kafka-produce", what: "produce, acks=all", tool: "ProducerPerformance 4.3.1", size: 1024, inFlight: "10,000, or 32 MiB of the peer's client",
			weir: []string{"--mode", "produce", "--in-flight", "10000"}, weirIs: "confirmed", figure: confirmed,
			before: func(b *bench) []string {
				host, port := b.hostPort()
				return java(b.server, "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", host+":"+port, "--create", "--if-not-exists", "--topic", "peers", "--partitions", "1")
			},
			peer: func(b *bench) []string {
				host, port := b.hostPort()
				return java(b.server, "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", host+":"+port, "--topic", "peers",
					"--num-records", strconv.Itoa(kafkaRecords), "--warmup-records", strconv.Itoa(kafkaWarmUp), "--record-size", "1024", "--throughput", "-1", "--command-property", "acks=all")
			},
			peerIs: "confirmed, after 50,000 of warm-up", parse: parseProducerPerformance,
			different: "the clients choose batches by themselves: franz-go for weir, Kafka's own for Java for the peer",
		}},
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
}

// redisTool returns a call of a program of the package that the server is from.
func redisTool(b *bench, name string, args ...string) []string {
	host, port := b.hostPort()
	return append([]string{program(b.server, "usr/bin", name), "-h", host, "-p", port}, args...)
}
