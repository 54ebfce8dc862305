"""A study whose load other programs make: counts against the origin's books, and the report of them all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loadlens.measure import whole_run
from loadlens.model.finding import Estimate, NotMeasured
from loadlens.model.report import Report
from loadlens.model.trial import TrialStatus
from loadlens.record import open_run
from loadlens.report import build
from loadlens.run.external import DRIVERS
from tests.end_to_end import running
from tests.end_to_end.hitting import LIMIT_S, environment, origin_program

NEEDED = ("wrk", "ab")
needs_both = pytest.mark.skipif(
    any(shutil.which(name) is None for name in NEEDED),
    reason="not installed: apt-get install wrk apache2-utils",
)
OTHERS = tuple(name for name in DRIVERS if name not in NEEDED and shutil.which(DRIVERS[name].name))
STUDY = """\
schema: 1
study: several
question: do several programs say the same of one service?
params: {{driver: loadlens}}
services:
  origin:
    dir: .
    start: {origin} --ignore-stdin --port $port --books {books}/$driver.json
    ready: {{get: /status/200, status: 200, within: 60s}}
entry: origin
scenarios: {{ask: [{{name: ask, {request}}}]}}
trials: 1
experiments:
  same:
    mix: ask
    load: {{users: {users}, {load}, driver: $driver}}
    factors: {{driver: [{drivers}]}}
{more}
"""
COMPARED = "report: {compare: [{metric: throughput}, {metric: service_time.mean}, {metric: service_time}]}"


def write_study(
    folder: Path,
    *drivers: str,
    load: str = "warmup: 0s, duration: 3s",  # three readings of the monitors
    request: str = "get: /delay/2",
    users: int = 4,
    more: str = "",
) -> Path:
    """A study of one request, its case run by each of the drivers."""
    folder.mkdir(parents=True, exist_ok=True)
    text = STUDY.format(
        origin=origin_program(),
        books=folder,
        drivers=", ".join(drivers),
        load=load,
        request=request,
        users=users,
        more=more,
    )
    (folder / "study.yaml").write_text(text)
    return folder


def loadlens(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A verb, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "loadlens", *words],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        **({"env": environment()} | more),
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The study by our engine and by every driver that is here."""
    folder = tmp_path_factory.mktemp("several")
    write_study(folder, "loadlens", *NEEDED, *OTHERS, more=COMPARED)
    ran = loadlens("run", str(folder), "-q", "-o", str(folder / "run"))
    assert ran.returncode == 0, ran.stderr
    return folder, ran


@cache
def report_of(run: Path) -> Report:
    return build.report(open_run(run))


def origin_counts(folder: Path, driver: str) -> dict[str, Any]:
    """Counts of the origin for the path of the load; readiness has a path of its own."""
    counts = json.loads((folder / f"{driver}.json").read_text())
    of_path: dict[str, Any] = counts["paths"]["/delay/2"]
    return of_path


@needs_both
@pytest.mark.parametrize("driver", ["loadlens", *NEEDED, *OTHERS])
def test_requests_match_those_of_the_origin(done: tuple[Path, Any], driver: str) -> None:
    folder, _ = done
    trial = next(t for t in open_run(folder / "run").trials if t.case.levels["driver"] == driver)
    counts = origin_counts(folder, driver)

    assert trial.status is TrialStatus.COMPLETE, trial.reasons
    assert trial.result is not None
    requests = trial.result.all_loads[0].requests
    assert requests.failed == requests.unexpected_status == 0
    assert requests.answered > 100
    # Our engine waits for what is in flight; the others may leave one a connection.
    assert 0 <= counts["received"] - requests.answered <= (0 if driver == "loadlens" else 4)
    assert (trial.result.driver is None) == (driver == "loadlens")


@needs_both
@pytest.mark.parametrize("driver", ["ab", *(name for name in OTHERS if name != "wrk")])
def test_a_number_of_requests_matches_the_origin_exactly(tmp_path: Path, driver: str) -> None:
    write_study(tmp_path, driver, load="requests: 400")

    ran = loadlens("run", str(tmp_path), "-q", "-o", str(tmp_path / "run"))

    assert ran.returncode == 0, ran.stderr
    trial = open_run(tmp_path / "run").trials[0]
    assert trial.result is not None
    counts = origin_counts(tmp_path, driver)
    assert trial.result.all_loads[0].requests.ok == counts["received"] == 400


@needs_both
def test_the_report_compares_what_all_of_them_measure(done: tuple[Path, Any]) -> None:
    made = report_of(done[0] / "run")

    rows = {chart.anchor: chart for chart in made.charts}
    for metric in ("throughput", "service_time.mean"):
        shown = rows[f"chart-compare-same-{metric}-all"].datasets["rows"]
        assert {row["case"] for row in shown} == {f"driver={name}" for name in ("loadlens", *NEEDED, *OTHERS)}
    curves = rows["chart-compare-same-service_time-all"].datasets["curve"]
    assert {"driver=wrk", "driver=ab", "driver=loadlens"} <= {row["metric"] for row in curves}
    # The answer takes 2 ms, four users: 2,000 a second at most, and every program measures 2 ms at least.
    for row in rows["chart-compare-same-service_time.mean-all"].datasets["rows"]:
        assert 0.0019 <= float(str(row["value"])) < 0.05, row


@needs_both
def test_what_a_program_does_not_tell_is_not_measured_and_says_who_does_not(done: tuple[Path, Any]) -> None:
    cells = report_of(done[0] / "run").matrices[0].cells

    for driver in NEEDED:
        figures = next(cell for levels, cell in cells.items() if driver in levels).figures
        reason = f"{driver} does not say when requests were due"
        assert figures["mean"] == NotMeasured("response_time.mean", reason)
        assert figures["p99"] == NotMeasured("response_time.p99", reason)
        rate = figures["rate"]
        assert isinstance(rate, Estimate)
        assert (rate.low, rate.high) == (None, None)  # one trial, and nothing is known of its course
        assert "reported by" in rate.method
        assert isinstance(figures["cpu"], Estimate)  # the service is watched whichever program sends the load


@needs_both
def test_gates_of_driven_trials_alone_are_unknown_and_rules_say_what_they_lack(tmp_path: Path) -> None:
    write_study(tmp_path, *NEEDED)
    ran = loadlens("run", str(tmp_path), "-q", "-o", str(tmp_path / "run"))
    assert ran.returncode == 0, ran.stderr

    facts = whole_run.facts(open_run(tmp_path / "run"))
    made = report_of(tmp_path / "run")

    gates = {gate.name: gate for gate in facts.gates}
    for name in ("counting", "generator", "little", "steady"):
        assert gates[name].passed is None, gates[name]
        assert "do not say" in gates[name].text, gates[name]
    reasons = {each.rule: each.reason for each in made.not_assessed}
    assert {"gen.bottleneck", "db.lock-timeouts", "eventloop.blocked"} <= set(reasons)
    assert all(reasons.values())


@needs_both
def test_the_books_of_the_service_are_held_against_what_a_program_says(done: tuple[Path, Any]) -> None:
    rows = {row.source: row for row in report_of(done[0] / "run").accounting}

    for driver in NEEDED:
        row = rows[f"client, load by {driver}"]
        assert (row.state, row.observed) == ("unknown", None)
        assert row.sent is not None
        assert row.sent > 100


@needs_both
def test_the_processes_of_a_program_are_watched_and_are_nobody_elses(done: tuple[Path, Any]) -> None:
    for trial in open_run(done[0] / "run").trials:
        driver = None if trial.result is None else trial.result.driver
        if trial.result is None or driver is None:
            continue
        labels = trial.readings().filter(source="proc")["labels"].unique().to_list()
        seen = {json.loads(text)["process"] for text in labels if json.loads(text)["service"] == "(driver)"}
        assert seen, driver.name
        assert 0 < (trial.result.generator.cpu_s or 0) < 2 * driver.ran_s * (os.cpu_count() or 1)


@needs_both
def test_every_medium_shows_all_of_them(done: tuple[Path, Any]) -> None:
    folder, ran = done
    page = (folder / "run" / "report.html").read_text()
    text = (folder / "run" / "report.md").read_text()
    as_json = loadlens("report", str(folder / "run"), "--json")

    assert as_json.returncode == 0, as_json.stderr
    assert json.loads(as_json.stdout)["study"] == "several"
    for medium in (page, text, ran.stdout, as_json.stdout):
        for driver in ("loadlens", *NEEDED):
            assert f"driver={driver}" in medium
        assert "Traceback" not in medium
    assert "wrk does not say when requests were due" in page
    assert "whose accounting was not checked" in page


@needs_both
def test_a_resumed_run_knows_its_driven_trials(done: tuple[Path, Any]) -> None:
    folder, _ = done

    again = loadlens("run", str(folder), "-q", "--resume", "-o", str(folder / "run"))

    assert again.returncode == 0, again.stderr
    assert len(open_run(folder / "run").trials) == 1 + len(NEEDED) + len(OTHERS)


def test_a_missing_program_is_named_with_what_installs_it_and_nothing_starts(tmp_path: Path) -> None:
    write_study(tmp_path, "loadlens", "wrk", "oha")

    ran = loadlens(
        "run", str(tmp_path), "-q", "-o", str(tmp_path / "run"), env=environment() | {"PATH": "/nonexistent"}
    )

    assert ran.returncode == 3
    assert "wrk, oha are not installed" in ran.stderr
    assert "apt-get install wrk; cargo install oha" in ran.stderr
    assert "experiments.same.load.driver" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]


def test_check_names_every_feature_that_a_program_cannot_do_with_its_line(tmp_path: Path) -> None:
    write_study(
        tmp_path,
        "wrk",
        load="warmup: 2s, duration: 1500ms, think: 10ms, requests: 50",
        request="get: '/{{uuid}}', expect: 200, check: {contains: x}",
        more="probes: {ping: {get: /}}",
    )

    checked = loadlens("check", str(tmp_path))

    assert checked.returncode == 2
    lines = (tmp_path / "study.yaml").read_text().splitlines()
    load = next(number for number, line in enumerate(lines, 1) if "load:" in line)
    step = next(number for number, line in enumerate(lines, 1) if "scenarios:" in line)
    for words, number, key in (
        ("wrk knows no warm-up", load, "load.warmup"),
        ("wrk counts its duration in whole seconds", load, "load.duration"),
        ("neither think nor keep a pace", load, "load.think"),
        ("counts to no number of requests", load, "load.requests"),
        ("wrk fills no {{...}}", step, "scenarios.ask"),
        ("wrk checks no answers\n", step, "check"),
        ("for the statuses of the study", step, "expect"),
        ("wrk sends no probes alongside its load", len(lines), "probes.ping"),
    ):
        assert words in checked.stderr, words
        place = checked.stderr.partition(words)[2].partition("  at ")[2].partition("\n")[0]
        assert f"study.yaml:{number} " in place, (words, place)
        assert key in place, (words, place)


def test_a_program_that_gives_up_makes_the_trial_invalid_with_its_words(tmp_path: Path) -> None:
    if shutil.which("ab") is None:
        pytest.skip("not installed: apt-get install apache2-utils")
    write_study(tmp_path, "ab", users=25_000, load="requests: 30k")  # ab takes 20,000 connections at most

    ran = loadlens("run", str(tmp_path), "-q", "-o", str(tmp_path / "run"))

    assert ran.returncode == 4, ran.stderr
    trial = open_run(tmp_path / "run").trials[0]
    assert trial.status is TrialStatus.INVALID
    assert "ab failed with status" in trial.reasons[0]


@needs_both
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_program_outlives_the_lab(tmp_path: Path, number: signal.Signals) -> None:
    run = tmp_path / f"run-{secrets.token_hex(4)}"  # its name marks its processes
    write_study(tmp_path, "wrk", load="duration: 60s")
    lab = subprocess.Popen(
        [sys.executable, "-m", "loadlens", "run", str(tmp_path), "-q", "-o", str(run)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    try:
        until = time.monotonic() + LIMIT_S
        while not any(line.partition(" ")[2].startswith("wrk") for line in running.marked(run)):
            assert lab.poll() is None
            assert time.monotonic() < until, "wrk never ran"
            time.sleep(0.05)

        lab.send_signal(number)
        lab.wait(LIMIT_S)

        assert running.left_after(run, within_s=3) == []
    finally:
        if lab.poll() is None:
            lab.kill()
            lab.wait()
    record = open_run(run)
    assert record.damage == ()
    assert [trial.status for trial in record.trials] == [TrialStatus.ABORTED]
