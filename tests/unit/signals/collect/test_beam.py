"""The BEAM from inside: what the script itself does, or what the emulator says when it is asked by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loadlens.model.readings import METRICS
from loadlens.signals.collect.beam import BeamMonitor
from loadlens.signals.collect.monitor import Row
from tests.calm import where_calm
from tests.unit.signals.collect.sampled import fresh, opened, rows_until, running
from tests.unit.signals.collect.test_monitor import read, values

pytestmark = [
    pytest.mark.slow,  # an emulator starts for each test
    pytest.mark.skipif(shutil.which("erlc") is None, reason="no Erlang here"),
]


def erl(code: str, *options: str) -> tuple[str, ...]:
    return ("erl", "-noshell", *options, "-eval", code)


def samples(count: int) -> Callable[[Sequence[Row]], bool]:
    return lambda rows: len(values(rows, "processes")) >= count


def busy_share(rows: Sequence[Row]) -> float:
    """Of one normal scheduler's time, between the first and the last sample."""
    own = [row for row in rows if row.metric == "schedulers_busy_s" and '"normal"' in row.labels]
    first, last = own[0], own[-1]
    assert None not in (first.value, first.time_ns, last.value, last.time_ns)
    return ((last.value or 0) - (first.value or 0)) / (((last.time_ns or 0) - (first.time_ns or 0)) / 1e9)


@where_calm
def test_a_busy_scheduler_is_told_from_an_idle_one(tmp_path: Path) -> None:
    spin = "spawn(fun() -> (fun F() -> lists:sum(lists:seq(1, 1000)), F() end)() end)."
    shares = {}
    for name, code in (("idle", "ok."), ("busy", spin)):
        folder = fresh(tmp_path)
        with running("beam", erl(code, "+S", "1:1"), folder):
            monitor = opened(BeamMonitor(), folder)
            rows = rows_until(monitor, samples(4))
            monitor.close()
        shares[name] = busy_share(rows)

    # one process that never waits keeps the one scheduler busy all the time, whatever share of a core it gets
    assert shares["busy"] > 0.9
    assert shares["idle"] < 0.3


@where_calm
def test_processes_that_wait_for_the_one_scheduler_stand_in_the_run_queue(tmp_path: Path) -> None:
    folder = fresh(tmp_path)
    spin = "[spawn(fun() -> (fun F() -> lists:seq(1, 1000), F() end)() end) || _ <- lists:seq(1, 4)]."
    with running("beam", erl(spin, "+S", "1:1"), folder):
        monitor = opened(BeamMonitor(), folder)
        rows = rows_until(monitor, samples(3))
        monitor.close()

    # the process that reads runs at that moment, so all four wait
    assert values(rows, "run_queue_max")[-1] == 4
    assert values(rows, "run_queue_mean")[-1] == pytest.approx(4, abs=0.5)
    assert values(rows, "scheduler_busiest")[-1] > 0.9
    assert values(rows, "gc_runs")[-1] > values(rows, "gc_runs")[0] + 10


def test_a_long_message_queue_processes_and_memory_are_counted(tmp_path: Path) -> None:
    code = """
      Deaf = spawn(fun() -> receive never -> ok end end), [Deaf ! hello || _ <- lists:seq(1, 1234)],
      [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 500)],
      persistent_term:put(kept, binary:copy(<<0>>, 30000000)),
      io:format("~w~n", [erlang:system_info(process_count)]).
    """
    with running("beam", erl(code, "+P", "65536"), tmp_path):
        monitor = opened(BeamMonitor(), tmp_path)
        rows = rows_until(monitor, lambda rows: 1234 in values(rows, "longest_queue"))
        monitor.close()

    assert (
        530 <= values(rows, "processes")[-1] < 600
    )  # 501 here, some 40 of the emulator, two of the sampling
    assert values(rows, "process_limit")[-1] == 65_536
    assert values(rows, "memory_bytes", kind="binary")[-1] >= 30_000_000
    parts = [values(rows, "memory_bytes", kind=kind)[-1] for kind in ("total", "processes", "system")]
    assert parts[0] == pytest.approx(parts[1] + parts[2], rel=0.01)


def test_what_the_service_is_started_with_stays(tmp_path: Path) -> None:
    argv = erl("ok.")
    with running("beam", argv, tmp_path, ERL_AFLAGS="+S 2:1"):
        monitor = opened(BeamMonitor(), tmp_path)
        rows = rows_until(monitor, samples(1))
        monitor.close()

    assert values(rows, "schedulers", kind="normal")[-1] == 1


@pytest.mark.skipif(shutil.which("elixir") is None, reason="no Elixir here")
def test_an_elixir_script_that_never_returns_is_sampled_too(tmp_path: Path) -> None:
    with running("beam", ("elixir", "-e", "Process.sleep(:infinity)"), tmp_path) as process:
        monitor = opened(BeamMonitor(), tmp_path)
        rows = rows_until(monitor, samples(2))
        monitor.close()

    rows = [row for row in rows if row.metric != "missed"]  # samples that a busy machine kept from coming
    assert {json.loads(row.labels)["pid"] for row in rows} == {str(process.pid)}
    times = [row.time_ns or 0 for row in rows if row.metric == "processes"]
    assert time.monotonic_ns() - 60_000_000_000 < times[0] < times[1] < time.monotonic_ns()
    assert {(row.metric, row.unit) for row in rows} == {
        (metric.name, metric.unit) for metric in METRICS["beam"]
    }


def test_an_emulator_starts_as_ever_without_the_compiled_sampler(tmp_path: Path) -> None:
    from loadlens.testbed.runtimes import environment

    present = {"PATH": str(Path(shutil.which("erl") or "").parent)}
    run = subprocess.run(
        erl('io:format("up"), halt(0).'),
        env=present | environment("beam", tmp_path / "is not there", present),
        capture_output=True,
        timeout=60,
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, b"up", b"")


def test_an_emulator_that_says_nothing_is_named_once(tmp_path: Path) -> None:
    monitor = opened(BeamMonitor(), tmp_path)

    (row,) = [*read(monitor, last=True), *read(monitor, last=True)]

    assert "ERL_AFLAGS" in json.loads(row.labels)["why"]
