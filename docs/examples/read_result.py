#!/usr/bin/env python3
"""read_result.py DIR [TAG]: adds up a tag's lines of intervals.hlog, compares with result.json, exits with 1 where they differ.
Written from docs/formats/hlog.md and result.md alone. TAG is send.response.measure unless given."""
import base64, json, pathlib, struct, sys, zlib

def counts(text):  # the counts of a compressed histogram: {index of a bucket: count}
    b = zlib.decompress(base64.b64decode(text)[8:])
    assert struct.unpack(">IIIIQQd", b[:40]) == (0x1C849313, len(b) - 40, 0, 3, 1, 3_600_000_000_000, 1.0)
    found, index, i = {}, 0, 40
    while i < len(b):
        u = shift = 0
        more = True
        while more:  # LEB128 of at most nine bytes, the ninth with all its bits
            u |= (b[i] if shift == 56 else b[i] & 127) << shift
            more, shift, i = b[i] > 127 and shift < 56, shift + 7, i + 1
        v = (u >> 1) ^ -(u & 1)  # ZigZag
        if v > 0:
            found[index] = v
        index += max(1, -v)
    return found

folder, tag = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "send.response.measure"
total, largest = {}, 0
for line in (folder / "intervals.hlog").read_text(encoding="utf-8").splitlines():
    if line.startswith((f"Tag={tag},", f"Tag={tag}.censored,")):
        _, start, length, most, text = line.split(",")
        largest = max(largest, round(float(most) * 1e6))
        for index, n in counts(text).items():
            total[index] = total.get(index, 0) + n
dist = json.loads((folder / "result.json").read_text(encoding="utf-8"))["latency"]
for part in tag.split(".")[:-1]:
    dist = dist[part]
n = sum(total.values())
same = n == dist["count"] + dist["censored"]
print(f"{tag}: {n} samples, result.json {dist['count']} and {dist['censored']} censored")
for p in dist["percentiles"]:
    rank, below = max(1, -(-round(p["p"] * 1e6) * n // 10**8)), 0  # max(1, ceil(p / 100 * n))
    for index in sorted(total):
        below += total[index]
        if below >= rank:
            break
    s = max(0, index // 1024 - 1)
    low = index - 1024 * s << s
    ns = largest if p["p"] == 100 else min(low + (1 << s) - 1, largest)
    right = low <= p["ns"] <= ns if p["at_least"] else p["ns"] == ns
    print(f"{p['p']:>8} % {ns:>14} ns   result.json {p['ns']:>14} ns   {'same' if right else 'DIFFERENT'}")
    same = same and right
sys.exit(0 if same else 1)
