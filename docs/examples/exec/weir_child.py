"""The weir side of a driver in Python: the protocol of README.md, standard library only.

A driver has three classes, which it hands to serve(): one for the run, one for a producer,
one for a consumer. redis_streams.py shows them.
"""

import os
import select
import socket
import struct
import threading
import time
import traceback

HELLO, ASK, ANSWER, PUBLISH, COMPLETE, RUN, READY, DELIVER, SETTLE, SETTLED, FAULT, LOST, END = range(1, 14)

WORDS = ["", "unreachable", "auth", "unsupported", "too-large", "timeout", "disconnected", "overloaded", "closed", "other"]
AGAIN, HAS_KEY = 1, 2  # flags of a message
NONE, NOWHERE = 0xFFFFFFFF, 0xFFFF


class Failed(Exception):
    """An error with one of the protocol's words."""

    def __init__(self, word, text=""):
        super().__init__(text)
        self.word, self.text = word, text


def pack_fields(fields):
    """A dictionary of names to texts, or to lists of texts, as bytes."""
    out = []
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            n, v = name.encode(), str(value).encode()
            out.append(struct.pack(">H", len(n)) + n + struct.pack(">I", len(v)) + v)
    return b"".join(out)


def unpack_fields(body):
    """The inverse of pack_fields; each name has a list."""
    fields, at = {}, 0
    while at < len(body):
        (n,) = struct.unpack_from(">H", body, at)
        name = body[at + 2 : at + 2 + n].decode()
        at += 2 + n
        (n,) = struct.unpack_from(">I", body, at)
        fields.setdefault(name, []).append(body[at + 4 : at + 4 + n].decode())
        at += 4 + n
    return fields


def pack_error(failed):
    """An error in a complete or settled frame; None is success."""
    if failed is None:
        return b"\0"
    text = failed.text.encode()[:1000]
    return struct.pack(">BH", WORDS.index(failed.word), len(text)) + text


class Peer:
    """One connection to weir."""

    def __init__(self, channel=None, **fields):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["WEIR_SOCKET"])
        self.buffer = bytearray()
        if channel is not None:
            fields["channel"] = channel
        self.send(HELLO, pack_fields(fields))

    def send(self, kind, body=b""):
        self.socket.sendall(struct.pack(">IB", 1 + len(body), kind) + body)

    def have(self, n):
        """Waits for n bytes in the buffer; False when weir has closed the connection."""
        while len(self.buffer) < n:
            more = self.socket.recv(max(1 << 16, n - len(self.buffer)))
            if not more:
                return False
            self.buffer += more
        return True

    def read(self):
        """The next frame as (kind, body); (None, b"") when weir has closed the connection."""
        if not self.have(5):
            return None, b""
        n, kind = struct.unpack_from(">IB", self.buffer)
        if not self.have(4 + n):
            return None, b""
        body = bytes(memoryview(self.buffer)[5 : 4 + n])
        del self.buffer[: 4 + n]
        return kind, body

    def waiting(self):
        """Whether a frame has begun to come. It does not block."""
        return bool(self.buffer or select.select([self.socket], [], [], 0)[0])

    def close(self):
        self.socket.close()


def serve(run_class, **about):
    """Connects to weir and serves one run, until weir closes the control connection."""
    control = Peer(protocol="1", **about)
    run, sending = None, threading.Lock()

    def reply(number, fields):
        with sending:
            control.send(ANSWER, number + pack_fields(fields))

    while True:
        kind, body = control.read()
        if kind is None:
            os._exit(0)  # weir is done with us, whatever other threads wait for
        number, fields = body[:4], unpack_fields(body[4:])
        what = fields["ask"][0]
        try:
            if what == "open":
                run = run_class(fields["run"][0], fields["existing"][0] == "yes")
                answer = {}
            elif what in ("producer", "consumer"):
                part = getattr(run, what)(fields)  # made before the answer: it is there from now on
                peer = Peer(fields["channel"][0])
                loop = produce if what == "producer" else consume
                threading.Thread(target=to_the_end, args=(loop, peer, part), daemon=True).start()
                answer = {}
            else:
                answer = getattr(run, what)(fields) or {}
        except Failed as e:
            answer = {"error": e.word, "text": e.text}
        except Exception as e:  # it must not end the child: weir is told
            answer = {"error": "other", "text": repr(e)}
        reply(number, answer)


def to_the_end(loop, peer, part):
    """Runs the loop of a connection, and closes the connection whatever happens, so that weir learns it."""
    try:
        loop(peer, part)
    except OSError:
        pass  # weir has closed the connection
    except Exception:
        traceback.print_exc()
    finally:
        part.close()
        peer.close()


def produce(peer, producer):
    """Hands each publish frame to producer.send(messages), a message being (destination's index, key, payload). It
    returns a list of None, or Failed, for each."""
    with_key, plain = struct.Struct(">I"), struct.Struct(">IHB")
    while True:
        kind, body = peer.read()
        if kind != PUBLISH:
            break  # END, or weir is gone
        received = time.monotonic_ns()
        (count,) = struct.unpack_from(">I", body)
        at, slots, messages = 4, [], []
        for _ in range(count):
            slot, destination, flags = plain.unpack_from(body, at)
            at += 7
            key = None
            if flags & HAS_KEY:
                (n,) = with_key.unpack_from(body, at)
                key = body[at + 4 : at + 4 + n]
                at += 4 + n
            (n,) = with_key.unpack_from(body, at)
            messages.append((destination, key, body[at + 4 : at + 4 + n]))
            at += 4 + n
            slots.append(slot)
        fates = producer.send(messages)
        took = time.monotonic_ns() - received
        peer.send(COMPLETE, b"".join(struct.pack(">IQ", s, took) + pack_error(f) for s, f in zip(slots, fates)))


def consume(peer, consumer):
    """Delivers what consumer.receive() returns, a list of (source, key, payload, again), and hands weir's answer to
    consumer.settle(accepted), which returns None or Failed. receive waits for at most 100 ms."""
    kind, _ = peer.read()
    if kind == RUN:
        peer.send(READY)
    number, ending = 0, kind != RUN
    while not ending:
        if peer.waiting():
            break  # END: nothing waits for an answer here
        try:
            messages = consumer.receive()
        except Failed as e:
            lost = e.word == "unsupported"
            peer.send(LOST if lost else FAULT, pack_fields({"error": e.word, "text": e.text}))
            if lost:
                break
            time.sleep(0.1)
            continue
        if not messages:
            continue
        number += 1
        out = [struct.pack(">I", number)]
        for source, key, payload, again in messages:
            flags = (AGAIN if again else 0) | (0 if key is None else HAS_KEY)
            out.append(struct.pack(">IHB", NONE, source, flags))
            if key is not None:
                out.append(struct.pack(">I", len(key)) + key)
            out.append(struct.pack(">I", len(payload)) + payload)
        peer.send(DELIVER, b"".join(out))
        while consumer.answered:
            kind, body = peer.read()
            if kind == END:
                ending = True  # the answer to the last frame still comes
            elif kind == SETTLE:
                failed = consumer.settle(body[4] == 1)
                if body[4] == 1:
                    peer.send(SETTLED, body[:4] + pack_error(failed))
                break
            else:
                ending = True  # weir is gone
                break
