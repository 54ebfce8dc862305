"""A whole run with the real engine over a real service: books balance, histograms agree, verbs end well."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadlens.model.trial import TrialStatus
from loadlens.record import RunRecord, open_run
from loadlens.run.study_runner import run_study
from loadlens.testbed.ports import Ports
from tests import tiny
from tests.end_to_end import running
from tests.oracles import histogram_log as second_reading
from tests.scripts import ROOT


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Four trials of the tiny study, the service scraped."""
    folder = tmp_path_factory.mktemp("run")
    file = tiny.write_study(folder / "study", service="scrape: {get: /metrics}", duration="1500ms")
    path = run_study(tiny.planned(file), folder / "run", cache=folder / "cache")
    return open_run(path)


def test_every_trial_is_complete_and_adds_up(run: RunRecord) -> None:
    assert [t.status for t in run.trials] == [TrialStatus.COMPLETE] * 4
    assert [t.reasons for t in run.trials] == [()] * 4
    running.assert_sound(run)


def test_the_service_counted_what_the_generator_sent(run: RunRecord) -> None:
    for trial in run.trials:
        assert trial.result is not None
        totals = trial.readings().filter(metric="requests_total").sort("time_ns")["value"]
        issued = trial.result.streams[0].requests.issued

        scrapes_between = totals.len() - 1
        assert totals[-1] - totals[0] == issued + scrapes_between


def test_the_load_begins_after_the_first_scrape_and_ends_before_the_last(run: RunRecord) -> None:
    for trial in run.trials:
        samples = trial.samples()
        scraped_ns = trial.readings().filter(metric="requests_total")["time_ns"]
        assert scraped_ns.min() < 0 <= samples["due_ns"].min()  # type: ignore[operator]
        assert scraped_ns.max() >= samples["done_ns"].max()  # type: ignore[operator]


def test_processes_of_the_service_the_generator_and_the_monitors_are_watched(run: RunRecord) -> None:
    labels = run.trials[0].readings().filter(metric="cpu_user_s")["labels"].unique().to_list()

    services = {
        text for text in ("web", "(generator)", "(keeper)", "(monitor)") if any(text in x for x in labels)
    }

    assert services == {"web", "(generator)", "(keeper)", "(monitor)"}


def test_counters_and_histograms_count_what_the_samples_hold(run: RunRecord) -> None:
    for trial in run.trials:
        ok = trial.samples().filter(outcome=0).height
        counted = sum(row.ok for row in trial.counters().streams if row.stream == "load")
        in_histograms = sum(
            int(part.counts.sum())
            for part in trial.intervals()
            if (part.stream, part.klass, part.kind) == ("load", "ok", "response")
        )
        assert ok == counted == in_histograms


def test_histograms_read_as_by_a_second_decoder(run: RunRecord) -> None:
    """Two decoders of one format, one of them the HdrHistogram crate."""
    for trial in run.trials:
        second = list(second_reading.read(trial.path / "intervals.hlog"))
        histograms = trial.intervals()
        assert len(histograms) == len(second) > 0
        for part, (start_s, length_s, tag, values, counts) in zip(histograms, second, strict=True):
            assert (part.start_s, part.length_s) == (start_s, length_s)
            assert f"{part.stream}.{part.step}.{part.klass}.{part.kind}" == tag
            assert part.values.tolist() == values
            assert part.counts.tolist() == counts


def test_response_times_in_the_histograms_are_those_of_the_samples(run: RunRecord) -> None:
    """Every value within a thousandth above its sample: 3 digits, upper end of the bucket."""
    trial = run.trials[0]
    samples = trial.samples().filter(outcome=0)
    exact = np.sort((samples["done_ns"] - samples["due_ns"]).to_numpy())
    parts = [p for p in trial.intervals() if (p.klass, p.kind) == ("ok", "response")]
    kept = np.sort(np.concatenate([np.repeat(p.values, p.counts.astype(np.int64)) for p in parts])).astype(
        np.int64
    )

    assert kept.shape == exact.shape
    assert ((kept - exact) >= 0).all()
    assert ((kept - exact) <= exact / 1000 + 1).all()


def test_events_tell_the_life_of_a_trial_in_order(run: RunRecord) -> None:
    names = [event["event"] for event in run.events()]

    first = names[names.index("trial_started") : names.index("trial_sealed") + 1]

    assert [n for n in first if n != "phase"] == [
        "trial_started",
        "service_started",
        "service_ready",
        "service_stopped",
        "trial_sealed",
    ]
    assert names[0] == "created"
    assert names[-1] == "ended"


# --- the verb ----------------------------------------------------------------------------------------


def loadlens(*arguments: str | Path, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own; `more` goes to `subprocess.run`."""
    home = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "loadlens", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(home), "LOADLENS_CACHE": str(cwd / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )


def test_the_verb_leaves_a_record_and_a_report_and_shows_one_line_a_trial(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study", trials=1, users="[1]")

    done = loadlens("run", file, cwd=tmp_path)

    (record,) = (tmp_path / "runs").iterdir()
    assert done.returncode == 0, done.stderr
    assert record.name.startswith("tiny-")
    assert (record / "report.html").stat().st_size > 10_000
    assert (record / "report.md").read_text().startswith("# ")
    assert "1/1 alone users=1 block=1 valid" in done.stderr
    assert "\ntrust " in done.stdout
    assert str(record.name) in done.stdout


def test_a_missed_objective_ends_with_99(tmp_path: Path) -> None:
    objective = "objectives: [{metric: response_time.mean, step: look, below: 1ns}]"
    file = tiny.write_study(tmp_path / "study", study=objective, trials=3, users="[1]")
    # a trial of 300 ms may have no answer at all, and then two trials decide nothing
    file.write_text(file.read_text().replace("duration: 300ms", "requests: 100"))

    assert loadlens("run", file, cwd=tmp_path).returncode == 99


def test_a_fault_of_the_study_ends_with_2_and_writes_nothing(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study")
    file.write_text(file.read_text().replace("duration", "duratoin"))

    done = loadlens("run", file, cwd=tmp_path)

    assert done.returncode == 2
    assert "did you mean" in done.stderr
    assert "study.yaml:" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_service_that_does_not_come_up_ends_with_3_and_its_last_words(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study", trials=1, users="[1]")
    (tmp_path / "study" / "server.py").write_text("raise SystemExit('no room at the inn')\n")

    done = loadlens("run", file, cwd=tmp_path)

    assert done.returncode == 3
    assert "no room at the inn" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_service_that_dies_in_mid_trial_costs_that_trial_and_says_its_last_words(
    tmp_path: Path,
) -> None:
    file = tiny.write_study(
        tmp_path / "study", trials=1, users="[1, 2]", duration="2s", study="order: {by: listed}"
    )
    server = tmp_path / "study" / "server.py"
    dying = (
        "import os, pathlib, threading, time\n"
        "starts = pathlib.Path(__file__).with_name('starts')\n"
        "starts.open('a').write('x')\n"
        "def die():\n"
        "    while globals().get('requests', 0) < 20: time.sleep(0.01)  # more than ask whether it is ready\n"
        "    print('out of memory, they said', flush=True); os._exit(7)\n"
        "if len(starts.read_text()) > 1:\n"
        "    threading.Thread(target=die).start()\n"
    )
    server.write_text(dying + server.read_text())

    done = loadlens("run", file, cwd=tmp_path)

    (folder,) = (tmp_path / "runs").iterdir()
    record = open_run(folder)
    assert done.returncode == 4  # a case without a valid trial
    assert "web ended while it was under test, exit status 7" in done.stderr
    assert "    out of memory, they said" in done.stderr.splitlines()
    assert [t.status for t in record.trials] == [
        TrialStatus.COMPLETE,
        TrialStatus.INVALID,
        TrialStatus.INVALID,
    ]
    running.assert_sound(record)
    assert running.left_after(folder, within_s=3.0) == []


def test_a_load_that_the_machine_cannot_carry_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study", trials=1, users="[500]")

    done = loadlens("run", file, cwd=tmp_path, preexec_fn=_with_200_descriptors)

    assert done.returncode == 2, done.stderr
    assert "500 connections need" in done.stderr
    assert "is 200 (ulimit -Hn)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def _with_200_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))


def test_a_taken_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study", trials=1, users="[1]")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").write_text("mine")

    done = loadlens("run", file, "--out", tmp_path / "mine", cwd=tmp_path)

    assert done.returncode == 2
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["note"]


def test_resume_takes_up_the_last_run_of_the_study(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study", trials=1, users="[1]")
    first = loadlens("run", file, "-q", cwd=tmp_path)
    (record,) = (tmp_path / "runs").iterdir()

    again = loadlens("run", file, "--resume", cwd=tmp_path)
    nothing = loadlens("run", file, "--resume", "--out", tmp_path / "none", cwd=tmp_path)

    assert (first.returncode, first.stderr) == (0, "")
    assert again.returncode == 0
    assert "1 done before" in again.stderr
    assert list((tmp_path / "runs").iterdir()) == [record]
    assert nothing.returncode == 5


# --- one load ----------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[str]:
    """The tiny server on a free port, outside of any testbed."""
    ports = Ports()
    port = ports.take()
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", str(tiny.SERVER), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"listening\n"
    yield f"http://127.0.0.1:{port}/"
    process.kill()
    process.communicate()
    ports.release()


def test_a_hit_with_a_record_is_a_study_of_one_case(server: str, tmp_path: Path) -> None:
    done = loadlens("hit", server, "-n", "200", "-c", "2", "-o", tmp_path / "hit", cwd=tmp_path)

    record = open_run(tmp_path / "hit")
    assert done.returncode == 0, done.stderr
    assert record.is_complete
    assert record.trials[0].samples().height == 200
    running.assert_sound(record)


def test_no_credential_of_a_hit_reaches_its_record(server: str, tmp_path: Path) -> None:
    secret = "s3cret-token-value"

    done = loadlens(
        "hit",
        server,
        "-n",
        "5",
        "-H",
        f"Authorization: Bearer {secret}",
        "-o",
        tmp_path / "hit",
        cwd=tmp_path,
    )

    kept = b"".join(p.read_bytes() for p in (tmp_path / "hit").rglob("*") if p.is_file())
    assert done.returncode == 0, done.stderr
    assert secret.encode() not in kept
    assert secret not in done.stdout + done.stderr


def test_ctrl_c_prints_the_results_so_far_and_seals_them(server: str, tmp_path: Path) -> None:
    home = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    lab = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "loadlens",
            "hit",
            server,
            "-d",
            "60s",
            "-c",
            "1",
            "-o",
            str(tmp_path / "hit"),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    running.wait_for_samples(tmp_path / "hit")

    lab.send_signal(signal.SIGINT)
    printed = lab.communicate(timeout=30)[0]

    assert lab.returncode == 130
    assert "requests/s" in printed
    assert [t.status for t in open_run(tmp_path / "hit").trials] == [TrialStatus.ABORTED]
    running.assert_sound(open_run(tmp_path / "hit"))
