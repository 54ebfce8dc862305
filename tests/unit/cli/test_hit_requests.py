"""Requests of `hit` from several URLs and from a file of targets in vegeta's format."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.cli.hit_options import HitOptions
from loadlens.cli.hit_requests import requests_of
from loadlens.errors import UsageError
from loadlens.model.workload import Scenario, Step

ORIGIN = "http://127.0.0.1:8080"


def steps_of(scenarios: tuple[Scenario, ...]) -> list[Step]:
    return [step for scenario in scenarios for step in scenario.steps]


def test_several_urls_are_scenarios_of_the_same_weight() -> None:
    target, scenarios = requests_of(HitOptions(urls=(f"{ORIGIN}/a", f"{ORIGIN}/b?c=1")))

    assert target.origin == ORIGIN
    assert [(each.name, each.weight) for each in scenarios] == [("GET /a", 1.0), ("GET /b?c=1", 1.0)]
    assert [step.path for step in steps_of(scenarios)] == ["/a", "/b?c=1"]


def test_the_same_url_twice_has_two_names() -> None:
    _, scenarios = requests_of(HitOptions(urls=(f"{ORIGIN}/a", f"{ORIGIN}/a")))

    assert [each.name for each in scenarios] == ["GET /a (1)", "GET /a (2)"]


def test_a_file_of_targets_has_methods_headers_and_bodies(tmp_path: Path) -> None:
    body = tmp_path / "order.json"
    body.write_text("{}")
    file = tmp_path / "targets.txt"
    file.write_text(
        f"# vegeta's own format\nGET {ORIGIN}/a\nX-One: 1\n\nPOST {ORIGIN}/b\nX-Two: 2\n@{body}\n{ORIGIN}/c\n"
    )

    _, scenarios = requests_of(HitOptions(targets=str(file), headers=("X-All: yes",)))

    a, b, c = steps_of(scenarios)
    assert [(step.method, step.path) for step in (a, b, c)] == [("GET", "/a"), ("POST", "/b"), ("GET", "/c")]
    assert a.headers == (("X-All", "yes"), ("X-One", "1"))
    assert b.headers == (("X-All", "yes"), ("X-Two", "2"))
    assert (b.body.kind, b.body.path) == ("file", str(body))
    assert (c.headers, c.body.kind) == ((("X-All", "yes"),), "none")


def test_a_body_that_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "targets.txt"
    file.write_text(f"POST {ORIGIN}/b\n@{tmp_path}/nowhere.json\n")

    with pytest.raises(UsageError) as refused:
        requests_of(HitOptions(targets=str(file)))

    assert refused.value.where == f"{file}:2"
