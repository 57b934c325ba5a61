#!/usr/bin/env bash
# Runs every case of systems.md with the weir in PATH, one after another, and stores what each came to in systems/:
# half an hour on a quiet host. Give names of cases to run only these. Then: go test ./internal/cli -run Systems -update
set -uo pipefail
cd "$(dirname "$0")"
mkdir -p systems
host=$(mktemp -d)
trap 'rm -rf "$host"' EXIT
wanted=("$@")

# case NAME TITLE FLAGS...: one run of 10 s.
case_() {
	local name=$1 title=$2
	shift 2
	if ((${#wanted[@]})) && [[ ! " ${wanted[*]} " == *" $name "* ]]; then
		return
	fi
	local args=(run "$@" --measure 10s)
	local load code
	load=$(cut -d ' ' -f 1 /proc/loadavg)
	weir "${args[@]}" --quiet --out "$host/$name" >"$host/$name.txt" 2>&1
	code=$?
	if [[ ! -e $host/$name/result.json ]]; then
		echo "$name: no result (exit code $code)" >&2
		tail -5 "$host/$name.txt" >&2
		return
	fi
	jq --arg title "$title" --arg command "weir ${args[*]}" --argjson code "$code" --arg load "$load" \
		'{title: $title, command: $command, exit_code: $code, load: $load, result: {schema, run, system, messages, messages_all, figures,
		verdict: {status: .verdict.status, checks: [.verdict.checks[] | select(.status == "invalid" or .status == "suspect")]}}}' \
		"$host/$name/result.json" >"systems/$name.json"
	jq -r '"\(input_filename): confirmed \(.result.messages.confirmed), lost \(.result.messages_all.lost), e2e p99 \(.result.figures["e2e.p99"]), \(.result.verdict.status)"' "systems/$name.json"
	rm -rf "${host:?}/$name"
}

# real NAME TITLE DRIVER FLAGS...: a case with servers of weir's own at 1,000 messages a second.
real() {
	local name=$1 title=$2 driver=$3
	shift 3
	case_ "$name" "$title" --driver "$driver" --start process --rate 1000/s "$@"
}

case_ chan 'Go channel' --driver chan --rate 1000/s
case_ ring 'lock-free ring' --driver ring --rate 1000/s
case_ zeromq 'ZeroMQ' --driver zeromq --rate 1000/s
case_ nanomsg 'nanomsg' --driver nanomsg --rate 1000/s
real nats 'NATS (core)' nats
real redis-pubsub 'Redis Pub/Sub' redis-pubsub
real iris 'Iris' iris
real iris-tunnel 'Iris, tunnel' iris --option pattern=tunnel
real mqtt 'MQTT, QoS 1, mosquitto' mqtt
real jetstream 'NATS JetStream' jetstream
real jetstream-3 'NATS JetStream, R3' jetstream --nodes 3 --replication 3 --guarantee replicated
real nats-streaming 'NATS Streaming' nats-streaming
real nats-streaming-3 'NATS Streaming, cluster' nats-streaming --nodes 3 --replication 3 --guarantee replicated
real nsq 'NSQ' nsq
real beanstalkd 'beanstalkd' beanstalkd
real redis-streams 'Redis Streams' redis-streams
real redis-streams-3 'Redis Streams, WAIT 2' redis-streams --nodes 3 --option wait-replicas=2 --guarantee replicated
real redis-streams-9 'Redis Cluster, 100 streams, WAIT 2' redis-streams --nodes 9 --partitions 100 --option wait-replicas=2 --guarantee replicated
real postgres 'PostgreSQL' postgres --guarantee persisted
real postgres-3 'PostgreSQL, ANY 1 of two standbys' postgres --nodes 3 --replication 3 --guarantee persisted
real rabbitmq 'RabbitMQ 3, durable classic queue' rabbitmq --recipe rabbitmq3 --option queue=classic --guarantee persisted
real rabbitmq-3 'RabbitMQ 3, quorum queue of three' rabbitmq --recipe rabbitmq3 --nodes 3 --replication 3 --guarantee persisted
real rabbitmq4 'RabbitMQ 4, quorum queue of one node' rabbitmq --option queue=quorum --guarantee persisted
real rabbitmq4-3 'RabbitMQ 4, quorum queue of three' rabbitmq --nodes 3 --replication 3 --guarantee persisted
real rabbitmq-stream 'RabbitMQ stream' rabbitmq-stream
real rabbitmq-stream-3 'RabbitMQ stream, three replicas' rabbitmq-stream --nodes 3 --replication 3 --guarantee replicated
real kafka 'Kafka' kafka
real kafka-3 'Kafka, acks=all' kafka --nodes 3 --replication 3 --guarantee replicated
real kmq 'KMQ' kmq
real pulsar 'Pulsar, standalone' pulsar
real rocketmq 'RocketMQ' rocketmq
real rocketmq-2 'RocketMQ, master and slave, synchronous' rocketmq --nodes 2 --option server.replication=sync --option server.flush=sync --guarantee replicated
real artemis 'Artemis' artemis --guarantee persisted
real artemis-2 'Artemis, a pair' artemis --nodes 2 --replication 2 --guarantee replicated
real activemq 'ActiveMQ Classic' activemq --guarantee persisted
real amqp1 'Qpid Broker-J' amqp1 --guarantee persisted
real sqs 'ElasticMQ' sqs
case_ mongodb 'MongoDB queue on FerretDB, at 200/s' --driver mongodb --start process --rate 200/s
