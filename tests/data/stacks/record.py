"""Record the stacks of the services of this folder under load: `python tests/data/stacks/record.py NAME...`.

A sample is kept only where its code was read. Needs SQLAlchemy and a JDK for some of them.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from loadlens.model.readings import Labels, StacksMetrics
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.scene import Root
from loadlens.signals.collect.stacks import EVERY_S, Roots, StacksMonitor

HERE = Path(__file__).parent
PYTHON = os.environ.get("PYTHON", sys.executable)  # that the services run on
USERS = {"idle_threads": 3}
OF_PYTHON = [
    *("few_threads", "locked", "few_places", "pooled"),
    *("idle_threads", "enough_threads", "computing", "in_executor"),
]
OF_JVM = ["jvm_few_threads", "jvm_monitor", "jvm_lock", "jvm_places"]
IDLE_S, WARMUP_S, LOADED_S = 0.6, 0.6, 2.5


def record(name: str, port: int) -> None:
    """Run a service with 16 users, or as many as `USERS` says, and write its samples."""
    with tempfile.TemporaryDirectory() as folder:
        if name in OF_JVM:
            subprocess.run(["javac", "-d", folder, HERE / "Locked.java"], check=True)
            command = ["java", "-cp", folder, "Locked", name, str(port)]
        else:
            (Path(folder) / "services.py").write_text((HERE / "services.py").read_text())
            command = [PYTHON, f"{folder}/services.py", name, str(port)]
        service = subprocess.Popen(command)
        users = USERS.get(name, 16)
        try:
            wait_for(port)
            monitor = StacksMonitor()
            monitor.open(Roots((Root("service", 0, service.pid),)))
            rows = sample(monitor, IDLE_S)
            began_ns, is_over = time.monotonic_ns(), threading.Event()
            threads = [threading.Thread(target=ask, args=(port, is_over)) for _ in range(users)]
            for thread in threads:
                thread.start()
            rows += sample(monitor, WARMUP_S + LOADED_S)
            rows += monitor.tick(time.monotonic_ns(), last=True)
            is_over.set()
            for thread in threads:
                thread.join()
        finally:
            service.kill()
            service.wait()
    stacks: dict[int, list[str]] = {}
    samples: list[list[float | str]] = []
    for row in rows:
        labels = Labels.of(row.labels)
        if row.metric == StacksMetrics.stack_frames.name:
            stacks[int(labels.id)] = labels.frames.replace(folder, "/srv").split("\n")
        elif row.metric == StacksMetrics.thread_sample.name and labels.stack:
            assert row.time_ns is not None
            assert row.value is not None
            at = round((row.time_ns - began_ns) / 1e9, 3)
            samples.append([at, int(labels.tid), labels.thread, row.value, labels.wait, int(labels.stack)])
    kept = {
        "users": users,
        "begin_s": WARMUP_S,
        "end_s": WARMUP_S + LOADED_S,
        "stacks": stacks,
        "samples": samples,
    }
    (HERE / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))
    print(name, len(samples), "samples")


def sample(monitor: StacksMonitor, seconds: float) -> list[Row]:
    """Return the rows of a monitor over some seconds."""
    rows: list[Row] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        rows += monitor.tick(time.monotonic_ns(), last=False)
        time.sleep(EVERY_S)
    return rows


def wait_for(port: int) -> None:
    """Return once a port is listened on."""
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def ask(port: int, is_over: threading.Event) -> None:
    """Send one request after the other."""
    while not is_over.is_set():
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while connection.recv(100):
                pass


if __name__ == "__main__":
    for place, name in enumerate(sys.argv[1:] or [*OF_PYTHON, *OF_JVM]):
        record(name, 18_900 + place)
