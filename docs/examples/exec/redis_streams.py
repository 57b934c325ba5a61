#!/usr/bin/env python3
"""A driver of Redis Streams for weir's driver exec, in Python without any library.

    weir run --driver exec --option command=python3,docs/examples/exec/redis_streams.py,127.0.0.1:6379

A destination is a stream. A subscription is a group, whose consumers are named for their
index. What a consumer was given and has not acknowledged comes to it again: at its start,
and when weir refuses it.
"""

import socket
import sys
import threading
import time

from weir_child import Failed, serve

MOST = 500  # entries of a read, where weir leaves it open


class Redis:
    """One connection, made again by the next call after it was lost."""

    def __init__(self, address):
        self.address, self.socket, self.reader = address, None, None
        self.lock = threading.Lock()

    def connect(self):
        host, _, port = self.address.rpartition(":")
        try:
            self.socket = socket.create_connection((host, int(port)), 5)
        except OSError as e:
            raise Failed("unreachable", f"connecting to {self.address}: {e}") from None
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb", 1 << 18)

    def close(self):
        if self.socket is not None:
            self.reader.close()
            self.socket.close()
        self.socket = None

    def all(self, commands):
        """Sends commands in one write, and returns their replies. An error reply is a Failed in the list."""
        with self.lock:
            if self.socket is None:
                self.connect()
            try:
                self.socket.sendall(b"".join(map(encode, commands)))
                return [self.reply() for _ in commands]
            except (OSError, ValueError) as e:
                self.close()
                raise Failed("disconnected", str(e)) from None

    def one(self, *command):
        (reply,) = self.all([command])
        if isinstance(reply, Failed):
            raise reply
        return reply

    def reply(self):
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"-":
            return failure(rest.decode())
        n = int(rest)
        if n < 0:
            return None
        if kind == b"*":
            return [self.reply() for _ in range(n)]
        body = self.reader.read(n + 2)
        if len(body) < n + 2:
            raise OSError("the server has closed the connection")
        return body[:-2]


def encode(command):
    parts = [p if isinstance(p, bytes) else str(p).encode() for p in command]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(p), p) for p in parts)


def failure(text):
    words = {"NOGROUP": "unsupported", "WRONGTYPE": "unsupported", "NOAUTH": "auth", "WRONGPASS": "auth", "OOM": "overloaded"}
    return Failed(words.get(text.split(" ")[0], "other"), text)


class Run:
    """One run: weir's requests on the control connection."""

    def __init__(self, run, existing):
        self.run, self.existing = run, existing
        self.redis = Redis(ADDRESS)
        self.redis.one("PING")

    def key(self, destination):
        return destination if self.existing else f"weir:{self.run}:{destination}"

    def group(self, subscription):
        return f"weir:{self.run}:{subscription}"

    def create(self, destination, group):
        try:
            self.redis.one("XGROUP", "CREATE", self.key(destination), group, "0", "MKSTREAM")
        except Failed as e:
            if not e.text.startswith("BUSYGROUP"):
                raise

    def declare(self, fields):
        destination = fields["destination"][0]
        self.create(destination, "weir-declares")
        self.redis.one("XGROUP", "DESTROY", self.key(destination), "weir-declares")

    def delete(self, fields):
        self.redis.one("UNLINK", self.key(fields["destination"][0]))

    def facts(self, _):
        info = dict(line.split(":", 1) for line in self.redis.one("INFO").decode().splitlines() if ":" in line)
        settings = self.redis.one("CONFIG", "GET", "append*")
        settings = {settings[i].decode(): settings[i + 1].decode() for i in range(0, len(settings), 2)}
        synced = settings.get("appendonly") == "yes" and settings.get("appendfsync") == "always"
        alone = info.get("connected_slaves") == "0"
        return {
            "name": "redis-server",
            "version": info["redis_version"],
            "nodes": 1 + int(info.get("connected_slaves", 0)),
            "guarantee": "persisted" if synced and alone else "received",
            "copies": "1",
            "stable": "fsync" if synced else "none",
            "setting.appendonly": settings.get("appendonly", ""),
            "setting.appendfsync": settings.get("appendfsync", ""),
        }

    def backlog(self, fields):
        left = 0
        for destination in fields["destination"]:
            for group in self.redis.one("XINFO", "GROUPS", self.key(destination)):
                g = {group[i].decode(): group[i + 1] for i in range(0, len(group), 2)}
                if g["name"].decode() == self.group(fields["subscription"][0]):
                    left += g["pending"] + (1 if g["lag"] is None else g["lag"])
        return {"count": left}

    def producer(self, fields):
        return Producer([self.key(d) for d in fields["destination"]])

    def consumer(self, fields):
        group = self.group(fields["subscription"][0])
        for d in fields["destination"]:
            self.create(d, group)
        return Consumer([self.key(d) for d in fields["destination"]], group, fields)


class Producer:
    """Sends the messages of a frame in one write, and waits for all answers."""

    def __init__(self, keys):
        self.keys, self.redis = keys, Redis(ADDRESS)
        self.redis.one("PING")

    def send(self, messages):
        commands = []
        for destination, key, payload in messages:
            extra = () if key is None else ("k", key)
            commands.append(("XADD", self.keys[destination], "*", "p", payload, *extra))
        try:
            return [r if isinstance(r, Failed) else None for r in self.redis.all(commands)]
        except Failed as e:
            return [e] * len(messages)

    def close(self):
        self.redis.close()


class Consumer:
    """Reads entries of a group, acknowledges them, and reads those again that it was given and did not acknowledge."""

    def __init__(self, keys, group, fields):
        self.keys, self.group, self.name = keys, group, "weir-" + fields["index"][0]
        self.answered = fields["settle"][0] in ("each", "batch")
        self.batch = fields["settle"][0] == "batch"
        self.most = int(fields["prefetch"][0]) or MOST
        self.again, self.refused = True, False  # entries of an earlier consumer of this name may be there
        self.taken = []
        self.redis = Redis(ADDRESS)
        self.redis.one("PING")

    def receive(self):
        if self.refused:
            time.sleep(0.05)
            self.refused = False
        command = ["XREADGROUP", "GROUP", self.group, self.name, "COUNT", max(1, self.most // len(self.keys))]
        if not self.again:
            command += ["BLOCK", 100]
        if not self.answered:
            command += ["NOACK"]
        command += ["STREAMS", *self.keys] + ["0" if self.again else ">"] * len(self.keys)
        redelivered = self.again
        out, self.taken = [], []
        for stream, entries in self.redis.one(*command) or []:
            source = self.keys.index(stream.decode())
            for entry, values in entries:
                pairs = values or []  # of an entry that was deleted: None
                fields = {pairs[i]: pairs[i + 1] for i in range(0, len(pairs), 2)}
                out.append((source, fields.get(b"k"), fields.get(b"p", b""), redelivered))
                self.taken.append((self.keys[source], entry))
        self.again = False
        return out

    def settle(self, accepted):
        if not accepted:
            self.again = self.refused = True
            return None
        if self.batch:
            commands = [("XACK", k, self.group, *[e for x, e in self.taken if x == k]) for k in self.keys if any(x == k for x, _ in self.taken)]
        else:
            commands = [("XACK", k, self.group, e) for k, e in self.taken]
        try:
            return next((r for r in self.redis.all(commands) if isinstance(r, Failed)), None)
        except Failed as e:
            self.again = True
            return e

    def close(self):
        self.redis.close()


if __name__ == "__main__":
    ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:6379"
    serve(
        Run,
        name="redis_streams.py",
        client="plain sockets, Python " + sys.version.split()[0],
        order="destination",
        can=[
            "consumers", "competing", "subscriptions", "keys", "retains", "refusing", "settle-confirmed",
            "settle-each", "settle-batch", "settle-auto",
        ],
    )
