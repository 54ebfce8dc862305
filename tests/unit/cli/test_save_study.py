"""`hit --save-study` writes the study that plans the same load, read back by the study's own parser."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from loadlens import engine
from loadlens.cli import hit, main
from loadlens.errors import ExitCode
from loadlens.model.study import Case
from loadlens.model.workload import Plan, Step, Stream
from loadlens.study import parse
from loadlens.study.plan import plan as planned

URL = "http://127.0.0.1:8080"
LOADS = (
    f"{URL}/",
    f"{URL}/a?b=$5 -c 7 -d 12s --warmup 2s",
    f"{URL}/ -r 500/s --arrivals poisson --overflow drop -c 50 --timeout 3s",
    f"{URL}/ -n 2k -c 4 --think exponential:1s",
    f"{URL}/ --pace uniform:100ms,300ms --cookies",
    f"{URL}/ --stages 30s:100/s,1m:100/s,30s:0",
    f"{URL}/ --steps 10s:5,10s:9",
    f"{URL}/ --bursts 1s:50/s,1s",
    f"{URL}/ -r 100 --ramp 5s --warmup 5s",
    f"{URL}/ -c 20 --ramp 5s --connection new",
    f"{URL}/ --connection 3 -X PUT -b 'a=$x' -H 'X-Kind: fine' -H 'Accept: */*'",
    f"{URL}/ -b '{{\"id\": {{{{int 1 9}}}}}}' -H 'Content-Type: application/json'",
    f"{URL}/ -f body.bin --expect 2xx,404",
    f"{URL}/ --check contains:OK --check json:a.b=7 --check json:c=x --check size:<64k --check latency:200ms",
    f"{URL}/ --check header:X-A=1 --check exists:a.b --check regex:o+ --check size:120",
    f"{URL}/a {URL}/b -c 3",
    f"{URL}/users/{{{{f.id}}}} --feed f=ids.csv,unique -d 5s",
    f"{URL}/ --replay times.txt,speed=2",
    f"{URL}/ --auth bearer:TOKEN",
    f"{URL}/ --auth basic:alice:TOKEN",
    "https://127.0.0.1:8443/ -k --no-resume --servername api.test",
)


def load_and_study(words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, Case]:
    """Return the plan that `hit` would run, and the case of the study that it wrote."""
    plans: list[Plan] = []

    def made(plan: Plan, *_: object) -> NoReturn:
        plans.append(plan)
        sys.exit(ExitCode.OK)

    monkeypatch.setattr(hit, "_made", made)
    monkeypatch.setattr("sys.argv", ["loadlens", "hit", *shlex.split(words), "--save-study", "made.yaml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    definition = parse.read(folder / "made.yaml")
    study = planned(definition, templates=engine, read_due_times=engine.read_due_times)
    (case,) = study.cases
    return plans[0], case


@pytest.mark.parametrize(("written", "rows"), [("none", 0), ("all", None), ("5k", 5_000)])
def test_the_study_keeps_as_many_rows(
    written: str, rows: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    load_and_study(f"{URL}/ --samples {written}", tmp_path, monkeypatch)

    assert parse.read(tmp_path / "made.yaml").samples == rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "secret")
    (tmp_path / "body.bin").write_bytes(b"\x00\xff")
    (tmp_path / "ids.csv").write_text("id\n1\n2\n")
    (tmp_path / "times.txt").write_text("0\n0.5\n1\n")
    return tmp_path


@pytest.mark.parametrize("words", LOADS)
def test_a_saved_study_plans_the_load_of_the_command(
    words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, case = load_and_study(words, folder, monkeypatch)

    stream: Stream = plan.streams[0]
    assert case.entry.url == stream.target.origin
    assert case.workload == stream.workload
    assert case.connection == stream.connection
    assert (case.timeout_ns, case.cookies) == (stream.timeout_ns, stream.cookies)
    assert (case.warmup_ns, case.duration_ns) == (plan.warmup_ns, plan.duration_ns)
    assert case.feeds == plan.feeds
    asked = [(scenario.weight, _asked(scenario.steps[0])) for scenario in stream.scenarios]
    assert [(scenario.weight, _asked(scenario.steps[0])) for scenario in case.scenarios] == asked


def _asked(step: Step) -> tuple[object, ...]:
    checks = sorted(map(repr, step.checks))  # a study lists them by kind
    return step.method, step.path, step.headers, step.body, step.auth, step.expect, checks


@pytest.mark.parametrize(
    ("header", "variable"),
    [
        ("Authorization: Bearer abc123", "AUTHORIZATION"),
        ("Referer: http://shop.example/?access_token=abc123", "ACCESS_TOKEN"),
    ],
)
def test_a_secret_becomes_a_variable(
    header: str,
    variable: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    load_and_study(f"{URL}/ -H '{header}'", folder, monkeypatch)

    assert "abc123" not in (folder / "made.yaml").read_text()
    assert f"export {variable}" in capsys.readouterr().err


def test_objectives_are_kept_in_their_unit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_and_study(f"{URL}/ --objective 'p99<200ms' --objective 'failed<1%'", folder, monkeypatch)

    (slow, failed) = parse.read(folder / "made.yaml").objectives
    assert (slow.metric, slow.below) == ("response_time.p99", 0.2)
    assert (failed.metric, failed.below) == ("unsuccessful.share", 0.01)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (f"{URL}/ -m HEAD", "one of GET, POST, PUT, PATCH, DELETE, not HEAD"),
        (f"{URL}/ --resolve 127.0.0.1:8080:127.0.0.2", "a study has no --resolve"),
        (f"{URL}/ -t 2", "a study has no --threads"),
        (f"{URL}/ -b @/dev/null", "a study needs the body in a file"),
        (f"{URL}/{{{{f.id}}}} --feed f=ids.csv,unique", "another end than that of a feed"),
    ],
)
def test_what_a_study_cannot_hold_is_refused(
    words: str, why: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["loadlens", "hit", *shlex.split(words), "--save-study", "made.yaml"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert why in capsys.readouterr().err
    assert not (folder / "made.yaml").exists()
