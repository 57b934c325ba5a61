#!/usr/bin/env python3
"""read_stamp.py [HEX]: reads the stamp of a payload given in hex, or of the example in docs/formats/stamp.md.

Written from that page alone. Exits with 1 where the payload is not good."""
import os, re, sys


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


def page():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "formats", "stamp.md")
    with open(path, encoding="utf-8") as f:
        return re.search(r"```hex\n(.*?)```", f.read(), re.S).group(1)


assert crc32c(b"123456789") == 0xE3069283
b = bytes.fromhex("".join((sys.argv[1] if len(sys.argv) > 1 else page()).split()))
if len(b) < 32 or b[:2] != b"\xd7\x02":
    sys.exit("foreign: no stamp of version 2")
sum30, number = crc32c(b[:2] + b[4:32]), lambda at, n: int.from_bytes(b[at : at + n], "little")
if number(2, 2) != (sum30 >> 16) ^ (sum30 & 0xFFFF):
    sys.exit("foreign: the header check is wrong")
for name, at, n in ("run", 4, 4), ("stream", 8, 3), ("late share", 11, 1), ("body CRC", 12, 4), ("sequence", 16, 5), ("due", 21, 6), ("delay", 27, 5):
    print(f"{name} {number(at, n)}")
if crc32c(b[32:]) != number(12, 4):
    sys.exit("corrupted: the body is not what was sent")
print("good")
