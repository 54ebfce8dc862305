"""A link of a network namespace whose packets come late: two TUN devices, and this process in between.

    python -m benches.late_link NEAR FAR DELAY_MS JITTER_MS

It stands in for `tc netem`, which not every kernel has. Each packet is late by the delay and a part of the
jitter drawn uniformly, and none overtakes another. It prints a line when both devices are there, and ends
with standard input.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from typing import Final

TUNSETIFF: Final = 0x400454CA  # linux/if_tun.h
IFF_TUN: Final = 0x0001
IFF_NO_PI: Final = 0x1000
LARGEST: Final = 1 << 16  # bytes of a packet


def device(name: str) -> int:
    """Make a TUN device; it is there until the descriptor that is returned is closed."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def main() -> int:
    near, far = device(sys.argv[1]), device(sys.argv[2])
    delay_s, jitter_s = (float(word) / 1e3 for word in sys.argv[3:])
    waiting: dict[int, deque[tuple[float, bytes]]] = {near: deque(), far: deque()}  # by where it goes
    print("ready", flush=True)
    while True:
        due = [packets[0][0] for packets in waiting.values() if packets]
        pause = max(0.0, min(due) - time.monotonic()) if due else None
        ready, _, _ = select.select([sys.stdin, near, far], [], [], pause)
        if sys.stdin in ready:
            return 0
        now = time.monotonic()
        for source in (near, far):
            to = waiting[far if source == near else near]
            while source in ready:
                try:
                    packet = os.read(source, LARGEST)
                except OSError:  # all read, or the device is not up yet
                    break
                at = now + delay_s + random.uniform(0.0, jitter_s)
                to.append((max(at, to[-1][0] if to else 0.0), packet))
        for target, packets in waiting.items():
            while packets and packets[0][0] <= now:
                with contextlib.suppress(OSError):  # down: lost, as on any link
                    os.write(target, packets.popleft()[1])


if __name__ == "__main__":
    sys.exit(main())
