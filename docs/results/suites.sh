#!/usr/bin/env bash
# Runs the suites with the weir in PATH, one system after another, and stores the table of each in suites/: an hour and
# a half on a quiet host. Arguments choose: SUITE, or SUITE/SYSTEM. SCALE=1 runs them at the articles' full length, and
# ROWS=a,b runs only these rows, and keeps the others that are stored.
# Then: go test ./internal/cli -run Articles -update
set -uo pipefail
cd "$(dirname "$0")"
folders=$(mktemp -d)
trap 'rm -rf "$folders"' EXIT
wanted=("$@")

chosen() {
	((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* || " ${wanted[*]} " == *" $1/$2 "* ]]
}

# merged STORED NEW: the new table, and with ROWS also the rows of the stored one that did not run again.
merged() {
	if [[ -n ${ROWS:-} && -e $1 ]]; then
		jq -c --slurpfile new "$2" '(.rows | map([.row, .system] as $x | select(all($new[0].rows[]; [.row, .system] != $x)))) as $kept |
			$new[0] + {chosen: (.chosen + $new[0].chosen | unique)} | .rows = $kept + .rows | .planned = (.rows | length)' "$1"
	else
		jq -c . "$2"
	fi
}

# suite NAME SCALE SYSTEM...: every row of the suite against each system; a driver's name stands for all of its systems.
suite() {
	local name=$1 scale=${SCALE:-$2} system code
	shift 2
	mkdir -p "suites/$name"
	for system; do
		chosen "$name" "$system" || continue
		weir suite run "$name" --drivers "$system" --scale "$scale" ${ROWS:+--rows "$ROWS"} --quiet --out "$folders/$name-$system" >"$folders/said" 2>&1
		code=$?
		if [[ -e $folders/$name-$system/suite.json ]]; then
			merged "suites/$name/$system.json" "$folders/$name-$system/suite.json" >"$folders/merged"
			mv "$folders/merged" "suites/$name/$system.json"
			jq -r --arg code "$code" '"\(.suite.name) \(.rows[0].system): exit code \($code), verdicts \([.rows[].verdict // "none"] | join(" "))"' "$folders/$name-$system/suite.json"
		else
			echo "$name $system: no table (exit code $code)" >&2
			tail -5 "$folders/said" >&2
		fi
		rm -rf "${folders:?}/$name-$system"
	done
}

suite omission 0.1 perfect jetstream nats redis-streams rabbitmq kafka
suite in-process 1 chan-1 chan-100 ring-2 ring-128 ring-padded ring-unpadded
suite mq-latency 0.2 redis-pubsub nats rabbitmq kafka
suite commit-log 0.2 nats-streaming-memory nats-streaming-fsync nats-streaming-file kafka
suite dissecting 0.1 nanomsg zeromq activemq nats kafka nsq rabbitmq redis-pubsub iris
suite matching 0.2 literal wildcard
suite mqperf 0.1 postgres rabbitmq artemis nats-streaming redis-streams pulsar kafka kmq rocketmq mongodb sqs
