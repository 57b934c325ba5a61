#!/usr/bin/env python3
"""Measures what agents cost the coordinator of a fleet, with the weir in PATH, and writes fleet.md.

All agents are processes of this host, and send 100 messages a second each to the driver noop: the figures are of the
coordinator's process alone. Takes some five minutes on a quiet host. Needs Linux.
"""

import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent
COUNTS = [1, 2, 4, 8, 16, 32, 64]
RUNS = 1  # of each count
MEASURE = 10  # seconds


def run(agents, folder):
    env = dict(os.environ, WEIR_FLEET_DIR=str(folder / "keep"), XDG_STATE_HOME=str(folder / "state"))
    quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    at = "127.0.0.1:17633"
    members = [subprocess.Popen(["weir", "agent", "--join", "weir://" + at, "--name", f"agent-{i}"], **quiet) for i in range(agents)]
    try:
        time.sleep(2 + agents / 10)  # they wait for a coordinator
        began = time.time()
        out = folder / "run"
        coordinator = subprocess.Popen(
            ["weir", "run", "--fleet", str(agents), "--listen", at, "--driver", "noop", "--producers", str(agents),
             "--rate", f"{100 * agents}/s", "--warmup", "1s", "--measure", f"{MEASURE}s", "--out", str(out), "--quiet"], **quiet)
        _, _, used = os.wait4(coordinator.pid, 0)
        ended = time.time()
    finally:
        for m in members:
            m.terminate()
        for m in members:
            m.wait()
    result = json.loads((out / "result.json").read_text())
    epoch = datetime.datetime.fromisoformat(result["run"]["started_at"].replace("Z", "+00:00")).timestamp()
    assert len(result["agents"]) == agents and not any(a.get("missing") for a in result["agents"])
    return {
        "cpu": (used.ru_utime + used.ru_stime), "rss": used.ru_maxrss / 1024,
        "start": epoch - began, "gather": ended - epoch - 1 - MEASURE, "of": result["messages_all"]["sent"],
    }


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def slope(points):
    """The least-squares line through points: its value at 0, and what each agent adds."""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    b = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    return my - b * mx, b


rows = []
for agents in COUNTS:
    each = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            each.append(run(agents, pathlib.Path(folder)))
    rows.append((agents, {k: median([e[k] for e in each]) for k in each[0]}))
    print(rows[-1], flush=True)

lines = [
    "# What agents cost the coordinator", "",
    "<!-- Written by docs/results/fleet.py. -->", "",
    f"Each row is {'one run' if RUNS == 1 else f'the median of {RUNS} runs'} of {MEASURE + 1} s. All agents are processes of one host with "
    f"{os.cpu_count()} cores, and send 100 messages", "a second each to the driver noop. Processor and memory are of the coordinator's process alone, from its start to its",
    "end. With many agents the host itself is full, so the last column is more than it would be on hosts of their own.", "",
    "| agents | processor | peak memory | from the command to the first message | from the last message to the result |", "| --- | --- | --- | --- | --- |",
]
for agents, r in rows:
    lines.append(f"| {agents} | {r['cpu']:.2f} s | {r['rss']:.0f} MiB | {r['start']:.1f} s | {r['gather']:.1f} s |")
cpu, per = slope([(a, r["cpu"]) for a, r in rows])
mem, perm = slope([(a, r["rss"]) for a, r in rows])
lines += [
    "", f"The line through these rows: {cpu:.2f} s of processor and {mem:.0f} MiB, and {1000 * per:.0f} ms and {perm:.2f} MiB more with each agent, which is "
    f"{100 * per / (MEASURE + 1):.1f} % of a core.", "",
    "A fleet may have 512 agents. More than 64 were not run as processes: a test in virtual time starts 512, takes their reports",
    "and ends their drain, and `go test -run '^$' -bench Report ./internal/fleet` measures what a report costs among 1 to 512.",
]
(HERE / "fleet.md").write_text("\n".join(lines) + "\n")
