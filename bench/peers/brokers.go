package main

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Lengths of the turns of tools that run for a time, and messages of the others.
const (
	artemisS        = 11
	artemisWarmUpS  = 3
	rocketMessages  = 60_000
	mqttMessages    = 60_000
	artemisHome     = "apache-artemis-2.56.0"
	rocketBenchmark = "org.apache.rocketmq.example.benchmark.Producer"
)

// brokers are the systems with a server in Java or C that is neither Kafka nor Redis.
var brokers = []system{
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
			name: "mqtt-publish", what: "publish, QoS 1", tool: "mosquitto_pub -l, of Mosquitto", size: 1024, inFlight: "20",
			weir: []string{"--mode", "produce", "--in-flight", "20", "--option", "qos=1"}, weirIs: "confirmed", figure: confirmed,
			peer: func(b *bench) []string {
				host, port := b.hostPort()
				return []string{
					"bash", "-c", `TIMEFORMAT=seconds:%R; { time yes "$1" | head -n "$2" | "$3" -h "$4" -p "$5" -t peers -q 1 -l; } 2>&1`, "bash",
					strings.Repeat("x", 1024), strconv.Itoa(mqttMessages), b.tool.Programs["mosquitto_pub"], host, port,
				}
			},
			peerIs: "confirmed, from its start to its end", parse: parseMosquittoPub,
			different: "the peer, in C, is a client and not a load tool: it sends each line that it reads, and bash takes its time",
		}},
	},
}
