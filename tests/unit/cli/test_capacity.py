"""`capacity` of a study: its services and its mix of requests, in place of URLs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadlens.cli import app
from loadlens.cli.capacity import CapacityFlags, _aim_of_study
from loadlens.errors import UsageError
from loadlens.search import step_cases
from loadlens.search.ladder import Next

STUDY = """\
params: {mode: a}
services:
  web: {dir: app, start: "serve --port $port --mode $mode"}
entry: web
scenarios:
  read: /a
  write: [{name: write, post: /b, expect: 201}]
mix: {read: 3, write: 1}
probes: {health: {get: /health}}
load: {users: [1, 4], duration: 20s, timeout: 3s}
samples: 5000
objectives: [{metric: response_time.p99, below: 50ms}, {metric: throughput, above: 10/s}]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


def test_a_search_has_the_services_the_mix_and_the_objectives_of_a_study(study: Path) -> None:
    aim = _aim_of_study(study, CapacityFlags((str(study),)))

    assert [service.dir for service in aim.services] == [str(study / "app")]
    assert [step.path for step in aim.steps] == ["/a", "/b"]
    assert aim.probe is not None
    assert aim.probe.path == "/health"
    assert aim.timeout_ns == 3_000_000_000
    assert [objective.metric for objective in aim.objectives] == ["response_time.p99", "throughput"]
    assert aim.find.anything is False
    assert step_cases.study_of(aim, ()).samples == 5000


def test_every_trial_of_the_search_keeps_the_weights_and_the_entry(study: Path) -> None:
    aim = _aim_of_study(study, CapacityFlags((str(study),)))
    baseline = step_cases.choose(aim, {"a": 0.01, "write": 0.02, "health": 0.001})
    climb = step_cases.case_of(aim, Next("climb", 4, 1.0, 5.0), baseline)
    rate = step_cases.case_at_rate(aim, 120.0, 1.0, 5.0, baseline)

    for case in (climb, rate):
        assert [(scenario.name, scenario.weight) for scenario in case.scenarios] == [
            ("read", 3),
            ("write", 1),
        ]
        assert (case.entry.service, case.fresh, case.trials) == ("web", "run", 1)
    assert dict(climb.params) == {"mode": "a", "users": 4}
    assert dict(rate.params)["rate"] == 120.0
    assert [probe.scenario.steps[0].path for probe in climb.probes] == ["/health"]


def test_a_user_who_sends_several_requests_has_no_rate_of_requests(study: Path) -> None:
    text = STUDY.replace("read: /a", "read: [{name: a, get: /a}, {name: c, get: /c}]")
    (study / "study.yaml").write_text(text)

    with pytest.raises(UsageError, match="sends several requests"):
        _aim_of_study(study, CapacityFlags((str(study),)))


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["./nothing"], "there is no study or record ./nothing", "at capacity"),
        (["STUDY", "-m", "PUT"], "defines its own requests", "at capacity"),
        (["STUDY", "http://127.0.0.1:9/"], "cannot be combined with other targets", "at capacity"),
        (["STUDY", "--objective", "rate>5/s"], "the rate is what `capacity` searches for", "p99<100ms"),
        (["STUDY", "--objective", "p99>50ms"], "`>` gives a least", "--objective 'p99<50ms'"),
        (["http://127.0.0.1:9/"], "capacity needs an objective that the rate must meet", "p99<100ms"),
        (["STUDY", "--budget", "20s"], "a budget of 20s is too short for rates", "at least 90s"),
    ],
)
def test_a_mistake_is_named_at_the_verb_that_was_typed(
    study: Path, words: list[str], message: str, hint: str
) -> None:
    typed = [str(study) if word == "STUDY" else word for word in words]
    done = CliRunner().invoke(app, ["capacity", *typed])

    assert isinstance(done.exception, UsageError) or done.exit_code == 2
    shown = f"{done.exception}{done.output}"
    assert message in shown
    assert hint in shown
