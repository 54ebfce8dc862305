"""Short studies stand for long ones, and each mistake in one is named once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from loadlens.errors import DefinitionErrors
from loadlens.model.study import Study
from loadlens.model.workload import Closed
from loadlens.study import lint, parse, plan
from loadlens.study.definition import Faults
from loadlens.study.parse import reference, yaml_tree
from loadlens.study.parse.unknown_keys import FOREIGN
from tests.unit.study.plain_tree import plain

THREE_LINES = """\
entry: http://127.0.0.1:8080
load:
  users: [1, 4, 16]
"""

IN_FULL = """\
schema: 1
study: shop
question: How does http://127.0.0.1:8080 respond to load?
entry: http://127.0.0.1:8080
scenarios:
  request: [{name: GET /, get: /}]
probes:
  probe:
    get: /loadlens-probe
    rate: 10/s
    expect: [200, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405]
experiments:
  load:
    mix: request
    load: {users: $users, duration: 20s}
    factors: {users: [1, 4, 16]}
quick:
  trials: 1
  experiments: {load: {load: {duration: 8s}}}
"""


def study_of(tmp_path: Path, text: str, file: str = "shop.yaml", **options: Any) -> Study:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return plan.plan(parse.read(path), **options)


def faults_of(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(DefinitionErrors) as caught:
        study_of(tmp_path, text)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("load: {users: 4}\n", "study without entry"),
        ("entry: http://127.0.0.1:8080\nload: {users: 4\n", "not YAML: expected ',' or '}'"),
    ],
)
def test_a_slip_is_one_fault(tmp_path: Path, text: str, fault: str) -> None:
    (given,) = faults_of(tmp_path, text)

    assert given.startswith(fault)


@pytest.mark.parametrize("quick", [False, True])
def test_three_lines_stand_for_the_study_in_full(tmp_path: Path, quick: bool) -> None:
    short = study_of(tmp_path, THREE_LINES, quick=quick)

    assert short == replace(study_of(tmp_path, IN_FULL, quick=quick), text=THREE_LINES)
    assert [case.name for case in short.cases] == ["load users=1", "load users=4", "load users=16"]
    assert [case.workload for case in short.cases] == [Closed(1), Closed(4), Closed(16)]


@pytest.mark.parametrize("cores", [1, 8, 64])
def test_the_design_of_three_lines_has_no_fault(tmp_path: Path, cores: int) -> None:
    study = study_of(tmp_path, THREE_LINES)

    assert [fault for fault in lint.faults(study, cores=cores) if not fault.is_note] == []


@pytest.mark.parametrize(("file", "name"), [("my shop.yaml", "my-shop"), ("shop-2/study.yaml", "shop-2")])
def test_a_study_is_named_after_its_file_or_its_folder(tmp_path: Path, file: str, name: str) -> None:
    assert study_of(tmp_path, THREE_LINES, file).name == name


@pytest.mark.parametrize(
    ("entry", "url", "path"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "/"),
        ("https://h/orders?sort=up", "https://h", "/orders?sort=up"),
        ("http://h?sort=up", "http://h", "/?sort=up"),
        ("localhost:8080/a", "http://localhost:8080", "/a"),
    ],
)
def test_the_path_of_the_entry_is_asked_for(tmp_path: Path, entry: str, url: str, path: str) -> None:
    case = study_of(tmp_path, f"entry: {entry}\nload: {{users: 1}}\n").cases[0]

    assert (case.entry.url, [step.path for step in case.scenarios[0].steps]) == (url, [path])


def test_a_path_or_one_step_is_a_scenario(tmp_path: Path) -> None:
    text = "entry: http://h\nload: {users: 1}\nmix: {home: 1, buy: 2}\n"
    study = study_of(tmp_path, f"{text}scenarios: {{home: /, buy: {{post: /orders, body: x}}}}\n")

    steps = [step for scenario in study.cases[0].scenarios for step in scenario.steps]
    assert [(step.name, step.method, step.path) for step in steps] == [
        ("home", "GET", "/"),
        ("buy", "POST", "/orders"),
    ]


def test_every_list_in_a_load_is_a_factor_next_to_the_others(tmp_path: Path) -> None:
    text = """\
entry: http://h
scenarios: {home: /, cart: /cart}
experiments:
  grid:
    mix: $page
    load: {users: [1, 2], think: [0s, 1s], stages: [10s:1, 10s:2], warmup: 0s}
    factors: {page: [home, cart]}
"""
    study = study_of(tmp_path, text.replace("stages: [10s:1, 10s:2], warmup: 0s", "duration: 9s"))

    levels = [tuple(level.name for level in case.levels) for case in study.cases]
    assert levels == [(p, u, t) for p in ("home", "cart") for u in "12" for t in ("0s", "1s")]
    stages = study_of(tmp_path, text.replace("users: [1, 2], think: [0s, 1s], ", ""))
    assert [case.name for case in stages.cases] == ["grid page=home", "grid page=cart"]


def test_quick_changes_one_list_and_keeps_the_other_factors(tmp_path: Path) -> None:
    text = f"{THREE_LINES}  think: [0s, 1s]\nquick: {{load: {{users: 4, duration: 8s}}}}\n"

    study = study_of(tmp_path, text, quick=True)

    assert [case.name for case in study.cases] == ["load users=4 think=0s", "load users=4 think=1s"]
    assert {case.duration_ns for case in study.cases} == {8_000_000_000}


def test_set_chooses_one_level_of_a_list(tmp_path: Path) -> None:
    assert [case.workload for case in study_of(tmp_path, THREE_LINES, overrides={"users": 9}).cases] == [
        Closed(9)
    ]


@pytest.mark.parametrize(
    ("load", "probes"),
    [
        ("{users: [1, 4]}", [10.0]),
        ("{rate: [5/s, 50/s]}", [0.5]),  # a tenth of the lowest
        ("{users: 4}", []),  # no ladder
        ("{users: [1, 4]}\nprobes: {}", []),
    ],
)
def test_a_ladder_at_the_top_has_a_probe(tmp_path: Path, load: str, probes: list[float]) -> None:
    case = study_of(tmp_path, f"entry: http://h\nload: {load}\n").cases[0]

    assert [probe.workload.rate_per_s for probe in case.probes] == probes


def test_short_studies_are_valid_in_an_editor() -> None:
    validator = jsonschema.Draft202012Validator(reference.schema())
    for text in (
        THREE_LINES,
        IN_FULL,
        "entry: http://h\nload: {users: 1}\nscenarios: {home: /, a: {get: /a}}\n",
    ):
        tree = yaml_tree.load(text.encode(), "study.yaml", Faults())
        assert tree is not None
        validator.validate(plain(tree))
    assert not validator.is_valid({"entry": "http://h"})


TOP = "entry: http://h\n"
NO_VALUE = (
    "scenarios: {home: /}\nexperiments: {a: {load: {users: $n}, factors: {n: [1]}}, b: {load: {users: $n}}}\n"
)


@pytest.mark.parametrize(
    ("text", "fault", "place", "hint"),
    [
        (TOP, "a study without a load", "1", "try load: {users: [1, 4, 16]}"),
        (TOP + "load: {vus: 5}\n", "unknown key 'vus'", "2 load.vus", "k6 calls it vus; here: users"),
        (
            TOP + "load: {users: [1, x]}\n",
            "'x' is not a count (from $users in load)",
            "2 load.users",
            "try 100, 1k or 2.5M",
        ),
        (
            THREE_LINES + "factors: {users: [2]}\n",
            "users is a list in the load, and a factor too",
            "3 factors",
            "try one of the two",
        ),
        (
            THREE_LINES + "experiments: {a: {load: {users: 1}}}\n",
            "load at the top is that of a study without experiments",
            "2 load",
            "try move it to experiments.NAME.load",
        ),
        (  # neither that `home` is no scenario, nor that there is none
            TOP + "scenarioes: {home: /}\nload: {users: 1}\nmix: home\n",
            "unknown key 'scenarioes'",
            "2 scenarioes",
            "did you mean scenarios?",
        ),
        (  # not that `n` is no factor
            TOP + "load: {users: $n}\nmatrix: {n: [1, 2]}\n",
            "unknown key 'matrix'",
            "3 matrix",
            "GitHub Actions calls it matrix; here: factors",
        ),
        (  # not that `users` is used nowhere
            TOP + "params: {users: 3}\nload: {users: $usres}\n",
            "unknown name $usres",
            "3 load.users",
            "did you mean $users?",
        ),
        (  # not that `size` is used nowhere
            TOP + "params: {size: 3}\nload: {users: 1}\norder: {zzzzzz: $size}\n",
            "unknown key 'zzzzzz'",
            "4 order.zzzzzz",
            "try one of by, seed",
        ),
        (  # not that `$n` is no count
            TOP + NO_VALUE,
            "$n has no value in b",
            "3 experiments.b.load.users",
            "try add it to params, or to the factors of b",
        ),
    ],
)
def test_a_mistake_is_named_once_and_what_follows_from_it_is_not(
    tmp_path: Path, text: str, fault: str, place: str, hint: str
) -> None:
    assert faults_of(tmp_path, text) == [f"{fault}\n  at {tmp_path}/shop.yaml:{place}\n  {hint}"]


def test_words_of_other_tools_lead_to_keys_that_there_are() -> None:
    blocks = {"Loadlens study": reference.schema(), **reference.schema()["$defs"]}
    keys = {key for block in blocks.values() for key in block.get("properties", {})}

    assert {word for _, words in FOREIGN.values() for word in words} <= keys
    assert not set(FOREIGN) & keys
