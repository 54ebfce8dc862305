"""`loadlens demo`: its services answer as their source says, and nothing of them is left behind."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadlens.demo import FLAWS, Flaw
from loadlens.demo.running import running
from loadlens.http_client import metric_names
from loadlens.search.discovery import HEALTH_PATHS
from tests.end_to_end.explaining import LIMIT_S, naming
from tests.end_to_end.hitting import environment

SEED = 20_26
STOPS = 3
LONGEST_S = 9.0  # from the start of the command: the service starts, single requests, first levels


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "loadlens", "demo", *arguments]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS)
def test_a_service_answers_has_a_cheap_page_and_metrics(flaw: Flaw, tmp_path: Path) -> None:
    with running(flaw, tmp_path) as url:
        origin = url.removesuffix(flaw.path)
        json.loads(get(url))
        metrics = get(f"{origin}/metrics")
        cheap = [path for path in HEALTH_PATHS if _is_page(origin + path)]

    assert {"http_requests_total", "process_cpu_seconds_total"} <= metric_names(metrics)
    assert f'http_requests_total{{method="GET",path="{flaw.path}",status="200"}} 1.0' in metrics
    assert len(cheap) == 1


def _is_page(url: str) -> bool:
    try:
        get(url)
    except urllib.error.HTTPError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "gauge", "most"),
    [
        ("small-pool", 'db_client_connections_usage{pool_name="orders",state="used"}', 3),
        ("lock", "stock_lock_held", 1),
    ],
)
def test_no_more_requests_at_once_pass_than_the_source_says(
    name: str, gauge: str, most: int, tmp_path: Path
) -> None:
    flaw = FLAWS[name]
    seen: Counter[float] = Counter()
    with running(flaw, tmp_path) as url:
        ended = threading.Event()
        users = [threading.Thread(target=_ask_until, args=(url, ended)) for _ in range(3 * most)]
        for user in users:
            user.start()
        for _ in range(50):
            line = next(
                line
                for line in get(url.removesuffix(flaw.path) + "/metrics").splitlines()
                if line.startswith(gauge)
            )
            seen[float(line.rpartition(" ")[2])] += 1
        ended.set()
        for user in users:
            user.join()

    assert max(seen) == most  # POOL_SIZE and one lock of the sources


def _ask_until(url: str, ended: threading.Event) -> None:
    while not ended.is_set():
        get(url)


@pytest.mark.parametrize("stop", range(STOPS))
def test_nothing_is_left_however_and_whenever_the_demo_is_ended(stop: int, tmp_path: Path) -> None:
    """Each in its own part of the time: while the service starts, before and during the first levels."""
    dice = random.Random(SEED + stop)

    def end(how: signal.Signals, flaw: Flaw, after_s: float) -> list[str]:
        folder = tmp_path / flaw.name
        folder.mkdir()
        lab = subprocess.Popen(
            command(flaw.name),
            env=environment() | {"TMPDIR": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(after_s)
        lab.send_signal(how)
        lab.wait(timeout=LIMIT_S)
        return _left(flaw, folder, within_s=5.0)

    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    moments = [(stop + dice.random()) * LONGEST_S / STOPS for _ in signals]
    with ThreadPoolExecutor() as pool:  # one demo of each of three flaws
        left = list(pool.map(end, signals, FLAWS.values(), moments))

    assert left == [[], [], []]


def _left(flaw: Flaw, folder: Path, *, within_s: float) -> list[str]:
    """Return processes and temporary files that remain after some seconds."""
    until = time.monotonic() + within_s
    while True:
        left = [f"process {pid}" for pid in naming(str(flaw.source))]
        left += [str(path) for path in folder.iterdir()]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)


def test_a_demo_ends_with_its_answer_key_and_exit_0() -> None:
    done = subprocess.run(
        command("blocked-loop", "--json", "--seed", "7"),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["key"]["flaw"] == "blocked-loop"
    assert answer["key"]["is_named"] == (answer["explanation"]["limit"] == "eventloop.blocked")
    assert answer["explanation"]["target"].startswith("http://127.0.0.1:")
