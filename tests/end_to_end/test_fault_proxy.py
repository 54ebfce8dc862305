"""A study with a fault proxy, run as a user runs it: the books of generator, proxy and service agree."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Admission, Entry, ErrorFault, ProxyFaults, Service
from loadlens.testbed import Testbed
from tests.calm import where_calm
from tests.end_to_end.testbed_cases import bed_of, carriers, odd, wait_until_gone

STUDY = """\
schema: 1
study: guarded
question: what do the admitted get when the rest is turned away?
params: {limit: 2}
services:
  api:
    start: "SERVER $port"
    ready: {get: /}
  front:
    use: fault-proxy
    over: api
    faults: {admit: {in_flight: $limit}}
    scrape: {every: 200ms}
entry: front
scenarios:
  look: [{get: /, expect: [200, 503]}]
trials: 1
experiments:
  ladder:
    mix: look
    load: {users: 8, think: 5ms, duration: 2s, warmup: 0s}
    factors: {limit: [2, 'off']}
"""


@pytest.fixture
def marker() -> str:
    return f"test-{secrets.token_hex(6)}"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def front_of(bed: Testbed, path: str) -> tuple[int, bytes]:
    target = bed.target(Entry("front"))
    with socket.create_connection((target.host, target.port), timeout=5) as stream:
        stream.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        heard = b"".join(iter(lambda: stream.recv(65536), b""))
    return int(heard[9:12]), heard


def test_a_proxy_stands_before_all_replicas_and_ends_with_the_testbed(folder: Path, marker: str) -> None:
    front = Service("front", use="fault-proxy", over=("api",), ports=("http", "metrics"))

    with bed_of(front, odd(replicas=2), folder=folder, marker=marker) as bed:
        bed.start()
        answers = [front_of(bed, "/")[1] for _ in range(4)]
        ports = {str(ports["http"]) for ports in bed.ports["api"]}
        process = next(p for p in bed.processes() if p.service == "front")
        owner = Path(f"/proc/{process.pid}").stat().st_uid
        status = Path(f"/proc/{process.pid}/status").read_text()
        leaks = bed.stop()

    seen = {
        line.split(b": ")[1].decode() for text in answers for line in text.splitlines() if b"X-Port" in line
    }
    assert seen == ports
    assert bed.readiness_requests["front"] >= 1
    uid = next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:"))
    assert uid != "0" or os.geteuid() != 0, owner
    assert leaks == ()
    assert carriers(marker) == []


def test_the_faults_of_a_service_reach_its_proxy(folder: Path, marker: str) -> None:
    faults = ProxyFaults(errors=ErrorFault(1.0, 418), admit=Admission(3, queue=2, wait_ns=1_000_000))
    front = Service("front", use="fault-proxy", over=("api",), ports=("http", "metrics"), faults=faults)

    with bed_of(front, odd(), folder=folder, marker=marker) as bed:
        bed.start()
        status, _ = front_of(bed, "/")
        settings = json.loads((folder / "scratch" / "front" / "settings.json").read_text())

    assert status == 418
    assert settings["faults"]["admit"] == {
        "in_flight": 3,
        "queue": 2,
        "wait_ns": 1_000_000,
        "status": 503,
        "retry_after_s": 1,
    }


def test_a_taken_port_and_bad_settings_end_with_a_message(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        runs = {}
        tried: dict[str, dict[str, Any]] = {
            "port": {"listen": f"127.0.0.1:{port}"},
            "faults": {"listen": "127.0.0.1:0", "faults": {"drop": {"share": 2.0}}},
        }
        for name, settings in tried.items():
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps({"control": "127.0.0.1:0", "upstreams": ["127.0.0.1:9"], **settings}))
            command = [sys.executable, "-m", "loadlens.testbed.proxy_process", str(file)]
            runs[name] = subprocess.run(command, capture_output=True, text=True, timeout=30)

    assert runs["port"].returncode == 3
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in runs["port"].stderr
    assert runs["faults"].returncode == 2
    assert "faults.drop.share: 2 is not a share from 0 to 1" in runs["faults"].stderr
    assert "Traceback" not in runs["port"].stderr + runs["faults"].stderr


def test_a_proxy_before_nothing_is_refused(folder: Path, marker: str) -> None:
    front = Service("front", use="fault-proxy", over=("api",), ports=("http", "metrics"))

    with pytest.raises(TestbedError, match="api"):
        bed_of(front, folder=folder, marker=marker).start()


def test_a_proxy_ends_with_the_pipe_that_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(
        json.dumps({"listen": "127.0.0.1:0", "control": "127.0.0.1:0", "upstreams": ["127.0.0.1:9"]})
    )
    command = [sys.executable, "-m", "loadlens.testbed.proxy_process", str(file)]

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        line = process.stdout.readline()
        process.stdin.close()
        code = process.wait(10)

    assert line.startswith("listens on port ")
    assert code == 0


@where_calm
def test_the_books_of_generator_proxy_and_service_agree(tmp_path: Path) -> None:
    server = Path(__file__).with_name("slow_service.py")
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace("SERVER", f"{sys.executable} -I -S {server}"))
    out = tmp_path / secrets.token_hex(4)

    done = subprocess.run(
        [sys.executable, "-m", "loadlens", "run", str(study), "-o", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for limit in ("2", "off"):
        (trial,) = out.glob(f"trials/*limit-{limit}/block-1")
        requests = json.loads((trial / "trial.json").read_text())["engine"]["streams"][0]["requests"]
        figures = last_figures(trial)
        served = int((trial / "logs" / "api.log").read_text().split()[-1])
        assert figures["requests_total"] == requests["issued"]
        assert figures["outcomes_total passed"] + figures["outcomes_total queue_full"] == requests["answered"]
        # what the service counted besides is what asked whether it is ready
        assert 0 < served - figures["forwarded_total"] <= 50
        if limit == "2":
            assert figures["in_flight_most"] == 2
            assert figures["outcomes_total queue_full"] > 0
            # two places of 20 ms in 2 s: at most 200, and two more that began before the end
            assert 20 < figures["outcomes_total passed"] <= 202
        else:
            assert figures["outcomes_total queue_full"] == 0
            assert 2 < figures["in_flight_most"] <= 8
    assert wait_until_gone(out.name) == []


def last_figures(trial: Path) -> dict[str, int]:
    """The last value of each of the proxy's figures in a trial's readings."""
    readings = pl.read_parquet(trial / "readings.parquet").filter(
        pl.col("metric").str.starts_with("loadlens_proxy_")
    )
    last = {}
    for row in readings.sort("time_ns").iter_rows(named=True):
        name = row["metric"].removeprefix("loadlens_proxy_")
        outcome = json.loads(row["labels"]).get("outcome")
        last[f"{name} {outcome}" if outcome else name] = int(row["value"])
    return last
