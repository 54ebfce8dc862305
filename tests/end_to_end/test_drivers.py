"""Real load generators in place of our engine, on the origin: their counts against its books."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import Origin

from loadlens.model.counters import Counters
from loadlens.model.finding import Estimate, NotMeasured, Undecided
from loadlens.record import open_run
from loadlens.report import build
from loadlens.run.external import DRIVERS
from tests.calm import assert_ran, where_calm
from tests.end_to_end.hitting import (
    LIMIT_S,
    command,
    environment,
    hit,
    settled_books,
    tried,
)

EACH = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            shutil.which(driver.name) is None, reason=f"not installed: {driver.install}"
        ),
    )
    for name, driver in DRIVERS.items()
]
WITH_A_NUMBER = [each for each in EACH if each.values[0] != "wrk"]


@pytest.mark.parametrize("name", EACH)
@where_calm
def test_answers_match_those_of_the_origin(server: Origin, name: str) -> None:
    result = hit(server, "/", "-c", "4", "-d", "1s", "--driver", name)
    counts = settled_books(server)

    requests = result["requests"]
    assert requests["failed"] == requests["unexpected_status"] == 0
    assert requests["ok"] == requests["answered"] > 5  # locust on a busy machine
    # Requests in flight at the stop were answered but not read: at most one per connection.
    assert 0 <= counts["answered"] - requests["answered"] <= 4
    assert result["generator"]["cpu_s"] > 0  # from the system, even where the program does not report it
    assert 4 <= counts["connections"]["accepted"] <= 5  # wrk tries the port once before it begins
    assert result["throughput_rps"]["value"] == pytest.approx(requests["ok"] / result["duration_s"])


@pytest.mark.parametrize("name", WITH_A_NUMBER)
def test_a_number_of_requests_is_kept_and_every_byte_counted(server: Origin, name: str) -> None:
    result = hit(server, "/", "-c", "3", "-n", "300", "--driver", name)
    counts = settled_books(server)

    assert result["requests"]["ok"] == counts["answered"] == counts["received"] == 300
    if result["bytes"]["in_wire"] is not None:
        assert result["bytes"]["in_wire"] == counts["bytes_out"]


@pytest.mark.parametrize("name", EACH)
def test_new_connections_are_made_where_asked(server: Origin, name: str) -> None:
    result = hit(server, "/delay/20", "-c", "2", "-d", "1s", "--connection", "new", "--driver", name)
    counts = settled_books(server)

    assert 0 <= counts["connections"]["accepted"] - result["requests"]["answered"] <= 3


@pytest.mark.parametrize("name", EACH)
@where_calm
def test_times_are_those_that_the_server_takes(server: Origin, name: str) -> None:
    result = hit(server, "/delay/50", "-c", "2", "-d", "2s", "--driver", name)

    times = result["service_time_s"]
    assert 0.05 <= times["p50"]["value"] < 0.1
    assert times["min"] >= 0.049
    assert result["response_time_s"] is None
    assert times["p50"]["low"] is None


@pytest.mark.parametrize("name", EACH)
@where_calm
def test_method_headers_and_body_arrive(server: Origin, name: str) -> None:
    flags = ("-m", "POST", "-H", "Content-Type: text/x", "-b", 'a"\\b', "-c", "1", "-d", "1s")

    result = hit(server, "/echo", *flags, "--driver", name)
    counts = settled_books(server)

    assert result["requests"]["ok"] > 10
    assert counts["violations"] == 0
    echoed = 4 * counts["received"]
    assert sum(path["body_bytes_in"] for path in counts["paths"].values()) == echoed


@pytest.mark.parametrize("name", EACH)
@where_calm
def test_statuses_that_are_not_expected_are_no_successes(server: Origin, name: str) -> None:
    requests = hit(server, "/status/503", "-c", "1", "-d", "1s", "--driver", name)["requests"]

    assert requests["answered"] > 5
    assert requests["ok"] in (0, None)  # ab does not separate 3xx from 5xx
    assert requests["unexpected_status"] in (requests["answered"], None)


@pytest.mark.parametrize("name", EACH)
def test_the_summary_says_who_told_it_and_what_is_not_told(server: Origin, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loadlens", "hit", f"http://127.0.0.1:{server.port}/", "-c", "2", "-d", "1s",
         "--driver", name],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip

    assert_ran(done)
    assert f"answers in 1 s by {name}" in done.stdout or f"s by {name}," in done.stdout
    assert "accounting not checked" in done.stdout
    assert f"Not reported by {name}: what was due" in done.stdout


@where_calm
def test_one_load_by_two_programs_and_by_us_agrees_where_all_measure(server: Origin) -> None:
    names = [name for name, driver in DRIVERS.items() if shutil.which(driver.name)]
    results: dict[str, dict[str, Any]] = {
        name: hit(server, "/delay/40", "-c", "4", "-d", "2s", "--driver", name) for name in names
    }
    results["us"] = hit(server, "/delay/40", "-c", "4", "-d", "2s")

    medians = {name: result["service_time_s"]["p50"]["value"] for name, result in results.items()}
    rates = {name: result["throughput_rps"]["value"] for name, result in results.items()}
    # 40 ms and what a busy machine adds to it; four users at it make 100 a second at most.
    assert all(0.04 <= median < 0.08 for median in medians.values()), medians
    assert all(50 <= rate <= 101 for rate in rates.values()), rates
    assert {name: set(result) for name, result in results.items()} == {
        name: set(results["us"]) for name in results
    }


def test_a_missing_program_is_named_with_what_installs_it_and_nothing_starts(server: Origin) -> None:
    server.new_books()
    environment_without = environment() | {"PATH": "/nonexistent"}
    done = subprocess.run(
        command(f"http://127.0.0.1:{server.port}/", "--driver", "wrk", "-d", "1s"),
        capture_output=True, text=True, timeout=LIMIT_S, env=environment_without,
    )  # fmt: skip

    assert done.returncode == 3
    assert done.stderr == "loadlens: wrk is not installed\n  at --driver\n  try apt-get install wrk\n"
    assert server.books()["received"] == 0


def test_everything_that_a_driver_cannot_do_is_named_at_once(server: Origin) -> None:
    server.new_books()
    done = tried(
        f"http://127.0.0.1:{server.port}/", "--driver", "ab", "-r", "50", "--warmup", "1s", "--expect", "200"
    )

    assert done.returncode == 2
    for words in ("keeps no rate", "knows no warm-up", "checks no answers"):
        assert words in done.stderr
    assert server.books()["received"] == 0


def test_what_is_no_driver_is_refused(tmp_path: Path) -> None:
    done = tried("http://127.0.0.1:9/", "--driver", "siege", "-o", "kept", cwd=tmp_path)

    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", EACH)
def test_a_record_is_kept_of_what_a_driver_reports(server: Origin, name: str, tmp_path: Path) -> None:
    printed = hit(server, "/delay/5", "-c", "4", "-d", "1s", "--driver", name, "-o", str(tmp_path / "kept"))

    record = open_run(tmp_path / "kept")
    trial = record.trials[0]

    assert record.damage == trial.damage() == ()
    assert trial.result is not None
    assert trial.result.driver is not None
    assert trial.result.driver.name == name
    assert trial.result.external is not None
    assert trial.result.streams == ()
    assert asdict(trial.result.external.requests).items() <= printed["requests"].items()
    # Rows of the sample log only where the program reports each request, and then all that ended.
    ended = printed["requests"]["answered"] + printed["requests"]["failed"]
    assert trial.samples().height == (ended if trial.result.driver.tells_requests else 0)
    assert (trial.counters(), trial.intervals(), trial.connections().height) == (Counters(), [], 0)


@pytest.mark.parametrize("name", EACH)
def test_literal_credentials_reach_the_server_and_no_file(server: Origin, name: str, tmp_path: Path) -> None:
    secret = "Bearer s3cr3t-of-nobody"
    flags = ("-H", f"Authorization: {secret}", "-c", "1", "-d", "1s", "-o", str(tmp_path / "kept"))

    printed = hit(server, "/", *flags, "--driver", name)

    assert secret not in json.dumps(printed)
    for path in (tmp_path / "kept").rglob("*"):
        assert not path.is_file() or b"s3cr3t" not in path.read_bytes(), path


@pytest.mark.parametrize("name", EACH)
def test_a_kept_record_makes_a_report_of_the_figures_of_the_driver_and_no_others(
    server: Origin, name: str, tmp_path: Path
) -> None:
    printed = hit(server, "/delay/5", "-c", "4", "-d", "1s", "--driver", name, "-o", str(tmp_path / "kept"))

    report = build.report(open_run(tmp_path / "kept"))
    cell = next(iter(report.matrices[0].cells.values()))

    rate, mean, p99 = (cell.figures[key] for key in ("rate", "service_mean", "service_p99"))
    assert isinstance(rate, Estimate)
    assert rate.point == pytest.approx(printed["throughput_rps"]["value"], rel=0.01)
    assert isinstance(mean, Estimate)
    assert mean.point == pytest.approx(printed["service_time_s"]["mean"]["value"], rel=0.01)
    if printed["driver"]["tells_requests"]:  # then it needs as many as ours does
        assert isinstance(p99, (Estimate, Undecided))
    else:
        assert isinstance(p99, Estimate)
        assert p99.point == printed["service_time_s"]["p99"]["value"]
    assert cell.figures["mean"] == NotMeasured(
        "response_time.mean", f"{name} does not say when requests were due"
    )


@pytest.mark.skipif(shutil.which("wrk") is None, reason="not installed: apt-get install wrk")
def test_a_driver_that_gives_up_is_an_error_and_no_result() -> None:
    done = tried("http://127.0.0.1:9/", "--driver", "wrk", "-d", "1s", "-c", "1")

    assert done.returncode == 4
    assert "wrk failed with status 1" in done.stderr
    assert json.loads(done.stdout or "null") is None
