"""Goroutines that are read from memory, against the dump of net/http/pprof of the same process."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from loadlens.machine.listening_sockets import ports_of
from loadlens.signals.collect.threads import NotRead, Threads, go_frames, go_memory
from tests.end_to_end.explaining import free_port

SERVICE = Path(__file__).parent / "coded" / "places.go"
WAYS = {  # to build it
    "plain": (),
    "stripped": ("-trimpath", "-ldflags", "-s -w"),
    "moved": ("-buildmode=pie",),
}

WAITS = sorted(["socket"] * 2 + ["timer"] * 2 + ["lock"] * 6 + [""])

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="no go here")


@pytest.fixture(scope="module", params=WAYS)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, int]]:
    """Run the service, built in one of the ways; yield its process and port."""
    program, port = tmp_path_factory.mktemp("go") / "places", free_port()
    subprocess.run(["go", "build", *WAYS[request.param], "-o", program, SERVICE], check=True)
    process = subprocess.Popen([program, str(port)], stdout=subprocess.DEVNULL)
    for _ in range(500):
        if port in ports_of(process.pid):
            break
        time.sleep(0.02)
    yield process.pid, port
    process.kill()
    process.wait()


def running(pid: int) -> go_memory.GoMemoryReader | None:
    """Return a reader of a program that has just begun; none: its goroutines are not there yet."""
    try:
        return go_memory.reader_of(pid)
    except NotRead:
        return None


def dump(port: int) -> Threads:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{go_frames.DUMP}") as answer:
        return go_frames.parse(answer.read().decode())


def shown(threads: Threads) -> Mapping[int, tuple[list[str], str]]:
    """Return frames and wait of each goroutine, but for those of the connection that asks for the dump."""
    texts = {
        number: [
            frame.text if threads.waits[number] else frame.name for frame in stack
        ]  # it goes from line to line
        for number, stack in threads.stacks.items()
    }
    return {
        number: (lines, threads.waits[number])
        for number, lines in texts.items()
        if not any("(*conn" in line for line in lines)
    }


def test_memory_says_what_a_dump_says(service: tuple[int, int]) -> None:
    pid, port = service
    reader = go_memory.reader_of(pid)
    assert reader is not None

    of_dump, of_memory = shown(dump(port)), shown(reader.read())
    for _ in range(100):  # until all wait, and the one that computes was stopped in code of its own
        if of_dump == of_memory and sorted(wait for _, wait in of_dump.values()) == WAITS:
            break
        time.sleep(0.05)
        of_dump, of_memory = shown(dump(port)), shown(reader.read())
    reader.close()

    assert of_memory == of_dump
    assert sorted(wait for _, wait in of_memory.values()) == WAITS  # of main, and of what it starts


def test_a_program_in_another_language_has_no_goroutines() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert go_memory.reader_of(process.pid) is None
        process.kill()


def test_goroutines_that_were_woken_and_wait_for_the_processor_compute_nothing(tmp_path: Path) -> None:
    program = tmp_path / "woken"
    subprocess.run(["go", "build", "-o", program, SERVICE.with_name("woken.go")], check=True)
    with subprocess.Popen([program, "60"]) as process:
        seen: Counter[tuple[str, str]] = Counter()
        reader = None
        for _ in range(100):
            time.sleep(0.05)
            reader = reader or running(process.pid)
            threads = Threads() if reader is None else reader.read()
            seen.update((threads.names[number], wait) for number, wait in threads.waits.items())
        process.kill()
    assert reader is not None
    reader.close()

    # With two that compute for 10 ms each, who sleeps for 1 ms mostly waits for its turn.
    assert seen["main.nap", "other"] > 100
    assert seen["main.spin", ""] > 50
    assert seen["main.nap", ""] < seen["main.nap", "other"] / 10  # it runs for a moment between two sleeps
