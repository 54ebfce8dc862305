"""`doctor` names everything that a study lacks at once, and starts nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlens import doctor
from loadlens.cli import main

STUDY = """\
schema: 1
study: lacking
question: what is missing?
params: {wide: false}
services:
  db: {use: postgres, ports: [sql], needs: [no-such-one]}
  api: {start: no-such-server --port $port}
  worker: {start: sleep 1, needs: [no-such-one], when: $wide}
entry: api
scenarios: {look: [{get: /}]}
experiments:
  one:
    mix: look
    load: {users: 1, duration: 1s}
    factors: {wide: [false, true]}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(doctor, "WATCH_S", 0.0)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["loadlens", "doctor", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_all_that_the_cases_of_a_study_lack_is_named_at_once(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(str(study), "--no-measure", monkeypatch=monkeypatch)
    output = capsys.readouterr().out

    assert code == 3
    assert "missing: no-such-one (for db, worker), no-such-server (for api)" in output
    assert "try put no-such-one, no-such-server on the PATH, or check the spelling" in " ".join(
        output.split()
    )


def test_the_same_as_json(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(str(study), "--no-measure", "--json", monkeypatch=monkeypatch)
    output = json.loads(capsys.readouterr().out)

    assert code == 3
    assert output["study"] == "lacking"
    assert output["missing"] == [
        {"program": "no-such-one", "services": ["db", "worker"]},
        {"program": "no-such-server", "services": ["api"]},
    ]
    assert output["install"] == "put no-such-one, no-such-server on the PATH, or check the spelling"
    assert output["calibration"] is None
    assert {check["name"]: check["state"] for check in output["checks"]}["programs"] == "bad"


def test_a_study_that_lacks_nothing_is_fine(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = study / "study.yaml"
    file.write_text(file.read_text().replace("no-such-one", "sh").replace("no-such-server", "sh"))

    code = run(str(study), "--no-measure", monkeypatch=monkeypatch)

    assert code == 0
    assert "nothing is missing for db, api, worker" in capsys.readouterr().out


def test_run_refuses_for_what_doctor_named(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["loadlens", "run", str(study), "--out", str(tmp_path / "record")])
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 3
    assert "no-such-one (for db, worker), no-such-server (for api)" in capsys.readouterr().err
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_its_lines_fit_the_terminal(
    columns: int, study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("loadlens.present.terminal.width", lambda: columns)

    run(str(study), "--no-measure", monkeypatch=monkeypatch)

    assert max(map(len, capsys.readouterr().out.splitlines())) <= columns
