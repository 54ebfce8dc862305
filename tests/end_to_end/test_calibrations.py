"""Values that a study finds out on the machine: once a run, in what the testbed runs, and in the record."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.record import RunRecord, open_run
from loadlens.run.study_runner import run_study
from loadlens.study import parse, plan

SERVICE = Path(__file__).with_name("metrics_service.py")
PYTHON = f"{sys.executable} -I -S"
FIND_OUT = """\
import os, sys
with open("asked", "a") as file:
    cpus = sorted(os.sched_getaffinity(0))
    file.write(f"{sys.argv[1]} {os.environ['GREETING']} {'PORT' in os.environ} {cpus}\\n")
print("measuring ...", file=sys.stderr)
print(int(sys.argv[1]) * 100)
"""
STUDY = f"""\
schema: 1
study: calibrated
question: how many rounds?
params: {{rounds: 3, users: 1}}
services:
  api:
    calibrate: {{run: "{PYTHON} find_out.py $rounds", gives: work}}
    start: {PYTHON} {SERVICE} $port --work $work
    env: {{GREETING: hello, PORT: $port, WORK: $work}}
    ready: {{get: /}}
    limits: {{cpus: 0}}
entry: api
scenarios: {{look: [{{get: /}}]}}
trials: 1
experiments:
  one: {{mix: look, load: {{users: $users, requests: 20}}, factors: {{users: [1, 2]}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "find_out.py").write_text(FIND_OUT)
    return tmp_path


def run(folder: Path, *, resume: bool = False) -> RunRecord:
    study = plan.plan(parse.read(folder))
    return open_run(run_study(study, folder / "record", resume=resume, cache=folder / "cache"))


def test_a_value_is_found_out_once_a_run_and_stands_in_commands_and_record(folder: Path) -> None:
    record = run(folder)
    asked = (folder / "asked").read_text().splitlines()
    shutil.rmtree(folder / "record" / "trials" / "one-users-2")
    resumed = run(folder, resume=True)

    # its environment and its CPUs are the service's; what names a port is left out, there is none yet
    assert asked == ["3 hello False [0]"]
    assert (folder / "asked").read_text().splitlines() == asked
    for trial in (*record.trials, *resumed.trials):
        assert trial.services[0].command[-2:] == ("--work", "300")
    (kept,) = record.environment["calibrated"]
    assert (kept["service"], kept["name"], kept["value"]) == ("api", "work", 300)
    assert resumed.environment["calibrated"] == [kept]
    assert {str(trial.status) for trial in resumed.trials} == {"complete"}


def test_a_command_with_a_factor_in_it_is_run_for_each_of_its_texts(folder: Path) -> None:
    file = folder / "study.yaml"
    file.write_text(file.read_text().replace("users: [1, 2]", "users: [1], rounds: [3, 4]"))

    record = run(folder)

    assert [line.split()[0] for line in (folder / "asked").read_text().splitlines()] == ["3", "4"]
    works = {trial.case.params["rounds"]: trial.services[0].command[-1] for trial in record.trials}
    assert works == {3: "300", 4: "400"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("print('no core to spin on'); raise SystemExit(3)", r"exit status 3(?s:.*)no core to spin on"),
        ("", r"the calibration of \$work printed nothing"),
        ("print('x' * 500)", "printed a line of 500 characters"),
    ],
)
def test_a_calibration_that_gives_no_value_starts_nothing(folder: Path, script: str, message: str) -> None:
    (folder / "find_out.py").write_text(script)

    with pytest.raises(TestbedError, match=message) as raised:
        run(folder)

    assert raised.value.where == "services.api.calibrate.run"
    assert not (folder / "record").exists()
