#!/usr/bin/env python3
"""Counts confirmed messages without weir, for loss.md.

Each case fills a system at 500 messages a second while weir kills servers twice. Consumers are paused. When the load is
over, a client that is not weir's asks the servers how many messages they hold. What came of it is stored in counted/.
Needs weir in PATH, ss, and: pip install kafka-python nats-py 'psycopg[binary]' redis requests
Give names of cases to run only these. Then: go test ./internal/cli -run Loss -update
"""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

COUNT_S = 62  # the load is over after 50 s, the pause after 70 s
LOAD = [
    "--start", "process", "--load.profile", "[{rate: 500/s, for: 50s}, {rate: 0.01/s, for: 25s}]",
    "--warmup", "0s", "--pause", "at 0s for 70s", "--drain", "1m", "--limits.failed", "100%",
]
LEADERS = ["--fault", "kill leader at 10s for 5s", "--fault", "kill leader at 30s for 5s"]


def kafka(addresses, pid):
    import kafka as client

    c = client.KafkaConsumer(bootstrap_servers=addresses)
    parts = [client.TopicPartition(t, p) for t in c.topics() if t.startswith("weir") for p in c.partitions_for_topic(t)]
    ends, begins = c.end_offsets(parts), c.beginning_offsets(parts)
    return sum(ends[p] - begins[p] for p in parts), "kafka-python " + client.__version__ + ": end offsets"


def jetstream(addresses, pid):
    import nats

    async def ask():
        c = await nats.connect(["nats://" + re.sub("^nats://", "", a) for a in addresses])
        infos = await c.jetstream().streams_info()
        await c.close()
        return sum(i.state.messages for i in infos)

    return asyncio.run(ask()), "nats-py: messages of the stream"


def postgres(addresses, pid):
    import psycopg

    host, port = addresses[0].rsplit(":", 1)
    with psycopg.connect(host=host, port=port, user="postgres", dbname="postgres") as c:
        tables = c.execute(
            "select quote_ident(schemaname) || '.' || quote_ident(relname) from pg_stat_user_tables where relname like 'weir%' or schemaname like 'weir%'"
        ).fetchall()
        return sum(c.execute("select count(*) from " + t).fetchone()[0] for (t,) in tables), "psycopg: select count(*)"


def redis(addresses, pid):
    import redis as client

    host, port = addresses[0].rsplit(":", 1)
    c = client.Redis(host=host, port=int(port))
    return sum(c.xlen(k) for k in c.scan_iter("*weir*", _type="stream")), "redis-py: XLEN"


def rabbitmq(addresses, pid):
    import requests

    for port in sorted(set(listening(pid))):
        try:
            answer = requests.get(f"http://127.0.0.1:{port}/api/queues", auth=("guest", "guest"), timeout=10)
            answer.raise_for_status()  # the metrics' port answers in JSON, too
            queues = answer.json()
        except (requests.RequestException, ValueError):
            continue
        return sum(q["messages"] for q in queues if q["name"].startswith("weir")), "management API: messages of the queue"
    raise LookupError("no management API")


def natsstreaming(addresses, pid):
    import requests

    most = 0
    for port in sorted(set(listening(pid))):
        at = f"http://127.0.0.1:{port}/streaming/channelsz"
        try:
            names = requests.get(at, timeout=10).json().get("names") or []
            msgs = [requests.get(at, params={"channel": n}, timeout=10).json()["msgs"] for n in names if n.endswith("-d0")]
        except (requests.RequestException, ValueError):
            continue
        most = max(most, sum(msgs))
    return most, "monitoring endpoint: msgs of the channel"


def listening(pid):
    """Ports on which a process and its descendants listen."""
    below = {pid}
    for _ in range(20):
        for p in filter(str.isdigit, os.listdir("/proc")):
            try:
                parent = int(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent in below:
                below.add(int(p))
    for line in subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True).stdout.splitlines():
        if any(int(p) in below for p in re.findall(r"pid=(\d+)", line)):
            yield int(line.split()[3].rsplit(":", 1)[1])


CASES = {
    "rabbitmq-quorum": ("RabbitMQ, quorum queue", rabbitmq, ["--driver", "rabbitmq", "--nodes", "3", "--replication", "3"] + LEADERS),
    "kafka-all": ("Kafka, acks=all", kafka, ["--driver", "kafka", "--nodes", "3", "--replication", "3"] + LEADERS),
    "jetstream-r3": ("NATS JetStream, R3, files", jetstream, ["--driver", "jetstream", "--nodes", "3", "--replication", "3"] + LEADERS),
    "nats-streaming": ("NATS Streaming, cluster", natsstreaming, ["--driver", "nats-streaming", "--nodes", "3", "--replication", "3"] + LEADERS),
    "postgres-any1": (
        "PostgreSQL, ANY 1 of two standbys", postgres,
        ["--driver", "postgres", "--nodes", "3", "--replication", "3", "--fault", "kill leader at 10s for 5s", "--fault", "kill follower at 30s for 5s"],
    ),
    "redis-wait": (
        "Redis Streams, WAIT 2", redis,
        ["--driver", "redis-streams", "--option", "wait-replicas=2", "--nodes", "3", "--fault", "kill 2 at 10s for 5s", "--fault", "kill 3 at 30s for 5s"],
    ),
}


def run(name):
    title, count, flags = CASES[name]
    with tempfile.TemporaryDirectory() as host:
        args = ["weir", "run"] + flags + LOAD
        p = subprocess.Popen(args + ["--out", host + "/r"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        addresses, counted, said = [], None, []
        for line in p.stderr:
            said.append(line)
            if m := re.search(r"^started .* at (\S.*)$", line):
                addresses = m[1].split(", ")
            if "pause: the consumers take nothing" in line:
                counted = Later(COUNT_S, lambda: count(addresses, p.pid))
        code = p.wait()
        if counted is None or not os.path.exists(host + "/r/result.json"):
            sys.exit(f"{name}: no result (exit code {code})\n{''.join(said[-5:])}")
        n, by = counted.get()
        r = json.load(open(host + "/r/result.json"))
    kept = {k: r[k] for k in ("schema", "run", "system", "messages", "messages_all", "faults")}
    kept["verdict"] = {"status": r["verdict"]["status"], "checks": []}
    text = {"title": title, "command": shlex.join(args), "exit_code": code, "counted": n, "counted_by": by, "result": kept}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "counted", name + ".json"), "w") as f:
        json.dump(text, f, indent=2)
        f.write("\n")
    m = r["messages_all"]
    print(f"{name}: confirmed {m['confirmed']}, counted {n} ({by}), delivered {m['delivered']}, lost {m['lost']}, failed {m['failed']}", flush=True)


class Later:
    """Calls f after some seconds, and has its result or error."""

    def __init__(self, seconds, f):
        self.result, self.error = None, None
        self.thread = threading.Thread(target=self.work, args=(seconds, f))
        self.thread.start()

    def work(self, seconds, f):
        time.sleep(seconds)
        try:
            self.result = f()
        except Exception as err:
            self.error = err

    def get(self):
        self.thread.join()
        if self.error:
            raise self.error
        return self.result


os.makedirs(os.path.join(os.path.dirname(os.path.abspath(__file__)), "counted"), exist_ok=True)
for name in sys.argv[1:] or CASES:
    run(name)
