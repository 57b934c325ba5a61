#!/usr/bin/env bash
# Runs every case of loss.md with the weir in PATH, one after another, and stores what each came to in loss/: half an
# hour on a quiet host. Give names of cases to run only these. Then: go test ./internal/cli -run Loss -update
set -uo pipefail
cd "$(dirname "$0")"
host=$(mktemp -d)
trap 'rm -rf "$host"' EXIT
wanted=("$@")
mode=backlog

# case NAME TITLE FLAGS...: one run that fills a backlog while servers die, and then drains it.
case_() {
	local name=$1 title=$2
	shift 2
	if ((${#wanted[@]})) && [[ ! " ${wanted[*]} " == *" $name "* ]]; then
		return
	fi
	local args=(run "$@" --start process --mode "$mode" --rate 500/s --warmup 2s --drain 1m --limits.failed 100%)
	weir "${args[@]}" --quiet --out "$host/$name" >"$host/$name.txt" 2>&1
	local code=$?
	if [[ ! -e $host/$name/result.json ]]; then
		echo "$name: no result (exit code $code)" >&2
		tail -5 "$host/$name.txt" >&2
		return
	fi
	local command=weir a
	for a in "${args[@]}"; do
		[[ $a == *' '* ]] && a="'$a'"
		command+=" $a"
	done
	jq --arg title "$title" --arg command "$command" --argjson code "$code" \
		'{title: $title, command: $command, exit_code: $code, result: {schema, run, system, verdict: {status: .verdict.status, checks: []}, messages, messages_all, faults}}' \
		"$host/$name/result.json" >"loss/$name.json"
	jq -r '"\(input_filename): confirmed \(.result.messages_all.confirmed), lost \(.result.messages_all.lost), pending \(.result.messages_all.pending)"' "loss/$name.json"
}

leaders=(--fault 'kill leader at 15s for 5s' --fault 'kill leader at 40s for 5s' --measure 1m)
once=(--fault 'kill all at 10s for 2s' --measure 30s)
slow=(--fault 'kill all at 10s for 2s' --measure 1m) # to start again

case_ kafka-all 'Kafka, acks=all' --driver kafka --nodes 3 --replication 3 "${leaders[@]}"
case_ kafka-1 'Kafka, acks=1' --driver kafka --option acks=1 --nodes 3 --replication 3 "${leaders[@]}"
case_ kafka-1-again 'Kafka, acks=1, again' --driver kafka --option acks=1 --nodes 3 --replication 3 "${leaders[@]}"
case_ kafka-0 'Kafka, acks=0' --driver kafka --option acks=0 --nodes 3 --replication 3 "${leaders[@]}"
case_ kafka-together 'Kafka, acks=all, all nodes at once' --driver kafka --nodes 3 --replication 3 --fault 'kill all at 10s for 2s' --measure 1m
case_ rabbitmq-quorum 'RabbitMQ, quorum queue' --driver rabbitmq --nodes 3 --replication 3 "${leaders[@]}"
case_ rabbitmq-classic 'RabbitMQ, durable classic queue' --driver rabbitmq --option queue=classic --fault 'kill server-1 at 10s for 2s' --measure 1m
case_ rabbitmq-transient 'RabbitMQ, classic queue, transient messages' --driver rabbitmq --option queue=classic --option delivery-mode=transient --fault 'kill server-1 at 10s for 2s' --measure 1m
case_ rabbitmq-stream 'RabbitMQ stream' --driver rabbitmq-stream --nodes 3 --replication 3 --fault 'kill server-1 at 15s for 5s' --fault 'kill server-2 at 40s for 5s' --measure 1m
case_ jetstream-r3 'NATS JetStream, R3, files' --driver jetstream --nodes 3 --replication 3 "${leaders[@]}"
case_ jetstream-r1 'NATS JetStream, R1, files' --driver jetstream "${once[@]}"
case_ nats-streaming 'NATS Streaming, cluster' --driver nats-streaming --nodes 3 --replication 3 "${leaders[@]}"
case_ postgres-any1 'PostgreSQL, ANY 1 of two standbys' --driver postgres --nodes 3 --replication 3 --fault 'kill leader at 15s for 5s' --fault 'kill follower at 40s for 5s' --measure 1m
case_ postgres-nofsync 'PostgreSQL, fsync=off' --driver postgres --option server.fsync=off "${once[@]}"
case_ redis-wait 'Redis Streams, WAIT 2' --driver redis-streams --option wait-replicas=2 --nodes 3 --fault 'kill 2 at 15s for 5s' --fault 'kill 3 at 40s for 5s' --measure 1m
case_ redis-aof 'Redis Streams, append-only file, everysec' --driver redis-streams --option server.appendonly=yes "${once[@]}"
case_ redis-memory 'Redis Streams, asynchronous replicas, nothing on disk' --driver redis-streams --nodes 3 --fault 'kill leader at 10s for 2s' --measure 30s
case_ redis-cluster 'Redis Cluster, three masters with a replica each, WAIT 1, a replica takes over' --driver redis-streams --option wait-replicas=1 --option server.node-timeout=2000 --nodes 6 --partitions 6 --fault 'kill leader at 15s for 10s' --fault 'kill leader at 40s for 10s' --measure 1m
case_ redis-cluster-empty 'Redis Cluster, WAIT 1, the master is back before a replica takes over, nothing on disk' --driver redis-streams --option wait-replicas=1 --nodes 6 --partitions 6 --fault 'kill leader at 15s for 5s' --measure 1m
case_ pulsar-brokers 'Pulsar, brokers' --driver pulsar --nodes 3 --fault 'kill broker-2 at 15s for 5s' --fault 'kill broker-3 at 40s for 5s' --measure 1m
# A bookie cannot come back before its session at ZooKeeper has ended, after 30 s.
case_ pulsar-bookies 'Pulsar, bookies' --driver pulsar --nodes 3 --fault 'kill bookie-1 at 10s for 32s' --fault 'kill bookie-2 at 55s for 32s' --measure 100s
case_ rocketmq-pair 'RocketMQ, a master and its slave, SYNC_MASTER' --driver rocketmq --option server.replication=sync --nodes 2 "${leaders[@]}"
case_ nsq 'NSQ' --driver nsq "${once[@]}"
case_ beanstalkd 'beanstalkd' --driver beanstalkd "${once[@]}"
case_ activemq 'ActiveMQ Classic' --driver activemq "${slow[@]}"
case_ artemis 'Artemis' --driver artemis "${slow[@]}"
case_ artemis-pair 'Artemis, a pair' --driver artemis --nodes 2 --replication 2 --fault 'kill leader at 15s for 5s' --measure 1m
case_ artemis-pair-twice 'Artemis, a pair, in sync again before the second' --driver artemis --nodes 2 --replication 2 --fault 'kill server-1 at 15s for 5s' --fault 'kill server-2 at 90s for 5s' --measure 130s
case_ amqp1 'Qpid Broker-J' --driver amqp1 "${slow[@]}"
case_ sqs 'ElasticMQ' --driver sqs "${slow[@]}"

# What keeps no message has consumers that take them at once, and that lose their connections.
mode=stream
gone=(--fault 'disconnect consumers at 10s for 1s' --measure 30s)
case_ nats-core 'NATS, core' --driver nats "${gone[@]}"
case_ redis-pubsub 'Redis Pub/Sub' --driver redis-pubsub "${gone[@]}"
