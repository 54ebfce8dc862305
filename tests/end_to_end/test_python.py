"""Verbs called from Python against services that run: what a reader of docs/guide/python.md would do.

`compare` and `capacity` are called so in test_compare.py and test_capacity.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import loadlens
from loadlens.errors import TestbedError
from tests.calm import where_calm
from tests.end_to_end.explaining import free_port
from tests.end_to_end.running import assert_sound

SERVICE = Path(__file__).with_name("timed_service.py")
WAIT_S = 0.02
STUDY = f"""\
services:
  web: {{start: "{sys.executable} {SERVICE} $port 20", ready: {{get: /ping}}}}
entry: web
load: {{rate: 40/s, warmup: 300ms, duration: 2s}}
objectives: [p50<10ms, failed<10%]
"""


@where_calm
def test_explain_starts_a_service_and_returns_its_ladder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    start, url = f"{sys.executable} {SERVICE} {port} 20", f"http://127.0.0.1:{port}/"
    folder = tmp_path / f"record-{port}"

    made = loadlens.explain(url, start=start, budget="15s", max_users=2, no_stacks=True, out=folder)

    assert made.exit_code == 0
    assert made.is_valid
    # every request waits for this time, whatever the load, and on a busy machine for longer
    for users, case in ((1, "1 user"), (2, "2 users")):
        mean = made.figure("response_time.mean", case=case).value
        assert mean is not None
        assert mean >= WAIT_S
        assert not made.figure("throughput", case=case) > f"{users / WAIT_S}/s"
    assert made.record is not None
    assert_sound(made.record)
    assert made.headline in made._repr_html_()
    assert loadlens.explain(folder).to_dict()["ladder"] == made.to_dict()["ladder"]
    assert "".join(capfd.readouterr()) == ""


@where_calm
def test_run_returns_the_report_of_a_study_and_its_missed_objectives(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study, folder = tmp_path / "study.yaml", tmp_path / f"record-{free_port()}"
    study.write_text(STUDY)

    made = loadlens.run(study, quick=True, out=folder)

    assert made.exit_code == 99
    assert [row.state for row in made.objectives] == ["bad", "ok"]
    assert not made.figure("response_time.mean", case="load") < f"{WAIT_S}s"
    assert made.record is not None
    assert_sound(made.record)
    assert loadlens.open(folder).report.to_dict() == made.to_dict()
    assert not any("pytest" in line.text for line in made.answer.lines)
    assert "".join(capfd.readouterr()) == ""


def test_a_service_that_does_not_start_is_an_error_in_python() -> None:
    url = f"http://127.0.0.1:{free_port()}/"

    with pytest.raises(TestbedError, match="false"):
        loadlens.explain(url, start="false", budget="15s")
