#!/usr/bin/env bash
# Runs the suites with the weir in PATH, one system after another, and stores the rows in suites/SUITE/suite.json: an hour
# and a half on a quiet host. Arguments choose: SUITE, or SUITE/SYSTEM. ROWS=a,b runs only these rows. What does not run
# stays as it is stored. SCALE=1 runs the suites at the articles' full length: remove what is stored first.
# The pages in suites are what weir publishes of these tables; weir serve suites shows the same in a browser.
# Then: go test ./internal/cli -run Articles -update
set -uo pipefail
cd "$(dirname "$0")"
folders=$(mktemp -d)
trap 'rm -rf "$folders"' EXIT
wanted=("$@")

chosen() {
	((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* || " ${wanted[*]} " == *" $1/$2 "* ]]
}

# merged STORED NEW: the stored table with the new rows, each in its place.
merged() {
	local stored=$1
	[[ -e $stored ]] || stored=$2
	jq -c --slurpfile stored "$stored" 'def name: "\(.row) \(.system)"; $stored[0] as $was | (.rows | INDEX(name)) as $new | ($was.rows | INDEX(name)) as $old |
		if .scale != $was.scale then error("the stored rows have another scale") else . end |
		.rows = ($was.rows | map($new[name] // .)) + (.rows | map(select($old[name] | not))) | .planned = (.rows | length) | del(.drivers, .chosen)' "$2"
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
			merged "suites/$name/suite.json" "$folders/$name-$system/suite.json" >"$folders/merged" && mv "$folders/merged" "suites/$name/suite.json"
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

weir serve suites --publish "$folders/pages" --markdown --index "$folders/index" && rm -f suites/*.md suites/*.svg && cp "$folders/pages/"* suites/
