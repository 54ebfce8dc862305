"""The lab ended at each of its moments by INT, TERM and KILL: nothing is left over, what was done stays."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from loadlens.model.trial import TrialStatus
from loadlens.record import open_run
from tests import tiny
from tests.end_to_end import running
from tests.end_to_end.testbed_cases import busy_in, still_there

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}

STUDY = """\
schema: 1
study: tiny
question: what is left when it is ended?
params: {{late: 0, wait: 0, warm: 0s, length: 200ms}}
services:
  web:
    dir: home
    {build}
    start: python3 -S -E server.py $port
    env: {{WAIT: $wait, LATE: $late, AT_IT: {at_it}}}
    setup: sh -c 'test "$0" = 1 || exit 0; touch {at_it}; sleep 60' {at_setup}
    ready: {{get: /, status: 200, within: 60s}}
entry: web
scenarios: {{look: [{{name: look, get: /, expect: 200}}]}}
reset: {{before: trial, run: "sh -c 'test $0 = 1 || exit 0; touch {at_it}; sleep 60' {at_reset}"}}
fresh: trial
trials: 1
order: {{by: listed}}
experiments:
  alone:
    mix: look
    load: {{users: 2, warmup: $warm, duration: $length, timeout: 2s}}
    factors: {{step: {{first: {{wait: 0}}, second: {{{second}}}}}}}
"""
# what the second case does so that the lab can be met at that moment, and how the moment is seen
MOMENTS = {
    "starting": "wait: 60",
    "setting up": "",
    "resetting": "",
    "warming up": "warm: 60s",
    "measuring": "length: 60s",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a place for temporary folders of its own, so that each that stays behind is seen."""
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as made:
        (Path(made) / "tmp").mkdir()
        yield Path(made)


def write_study(folder: Path, moment: str) -> Path:
    """Two cases: one that is over at once, and one in which the lab stays at the moment for a minute."""
    home = folder / "study" / "home"
    home.mkdir(parents=True)
    late = "if os.environ['WAIT'] != '0': pathlib.Path(os.environ['AT_IT']).touch(); time.sleep(60)"
    wait = f"import os, pathlib, time\n{late}\n"
    (home / "server.py").write_text(wait + tiny.SERVER.read_text())
    path = folder / "study" / "study.yaml"
    second = MOMENTS[moment] or "wait: 0, late: 1"
    text = STUDY.format(
        at_it=folder / "at-it",
        build="",
        second=second,
        at_setup="$late" if moment == "setting up" else "0",
        at_reset="$late" if moment == "resetting" else "0",
    )
    path.write_text(text)
    return path


def wait_until(is_so: Callable[[], bool], lab: BaseProcess, within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while not is_so():
        assert lab.is_alive(), "the lab ended"
        assert time.monotonic() < until, "the moment did not come"
        time.sleep(0.02)


def phases(record: Path) -> list[str]:
    """Phases of the second trial that its events name."""
    whole = [line for line in (record / "events.jsonl").read_text().splitlines() if line.endswith("}")]
    events = [json.loads(line) for line in whole]
    return [str(e["phase"]) for e in events if e["event"] == "phase" and "second" in e["case"]]


def assert_nothing_is_left(folder: Path) -> None:
    """Check that no process, temporary folder or incomplete cache entry is left."""

    def left() -> list[str]:
        half = [
            str(path)
            for path in (folder / "cache").glob("*/*")
            if path.is_dir() and not path.with_name(f"{path.name}.json").exists()
        ]
        temporary = map(str, (folder / "tmp").iterdir())
        return [*running.marked(folder / "run"), *busy_in(folder), *temporary, *half]

    # what is waited for ends by itself after a minute only; how soon is held in test_testbed_death.py
    assert still_there(left, within_s=20.0) == []


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_at_any_moment_of_a_trial_what_was_done_stays_and_nothing_else(
    folder: Path, moment: str, number: signal.Signals
) -> None:
    study, record = write_study(folder, moment), folder / "run"
    lab = running.start(study, record, TMPDIR=str(folder / "tmp"))
    if moment in ("warming up", "measuring"):
        phase = {"warming up": "warmup", "measuring": "measure"}[moment]
        wait_until(lambda: (record / "events.jsonl").exists() and phase in phases(record), lab)
    else:
        wait_until((folder / "at-it").exists, lab)

    running.send(number, lab)
    lab.join(30)

    assert lab.exitcode == CODES[number]
    assert_nothing_is_left(folder)
    opened = open_run(record)
    running.assert_sound(opened)
    assert [trial.status for trial in opened.trials] == [TrialStatus.COMPLETE, TrialStatus.ABORTED]
    assert opened.trials[0].samples().height > 0


# --- while something is built ---------------------------------------------------------------------------

BUILDS = {
    "run": ("build: {{run: \"sh -c 'touch {at_it}; sleep 60'\"}}", {}),
    "node": (
        "build: {{node: package.json}}",
        {"package.json": '{{"name": "x", "scripts": {{"preinstall": "touch {at_it}; sleep 60"}}}}'},
    ),
    "mix": (
        "build: {{mix: mix.exs}}",
        {"mix.exs": 'File.touch!("{at_it}"); Process.sleep(60_000)'},
    ),
}
NEEDS = {"node": "npm", "mix": "mix"}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("build", BUILDS)
def test_in_the_middle_of_a_build_nothing_half_made_stays(
    folder: Path, build: str, number: signal.Signals
) -> None:
    if shutil.which(NEEDS.get(build, "sh")) is None:
        pytest.skip(f"no {NEEDS[build]} here")
    study = write_study(folder, "measuring")
    key, sources = BUILDS[build]
    study.write_text(study.read_text().replace("    \n", f"    {key.format(at_it=folder / 'at-it')}\n"))
    for name, text in sources.items():
        (folder / "study" / "home" / name).write_text(text.format(at_it=folder / "at-it", home=folder))
    lab = running.start(study, folder / "run", TMPDIR=str(folder / "tmp"))
    wait_until((folder / "at-it").exists, lab)

    running.send(number, lab)
    lab.join(30)

    assert lab.exitcode == CODES[number]
    assert_nothing_is_left(folder)
    assert not (folder / "run").exists()
