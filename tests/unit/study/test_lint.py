"""Faults of experimental design: each rule fires on its fault and stays silent on the near miss."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from loadlens.model.study import Study
from loadlens.study import lint, parse, plan

ROOT = Path(__file__).parents[3]

GOOD = """\
schema: 1
study: sound
question: is the design sound?
params: {users: 1, workers: 1, mode: a}
services:
  web: {start: "serve --port $port --forks $workers --mode $mode"}
entry: web
scenarios:
  slow: [{name: slow, post: /slow}]
  fast: [{name: fast, get: /fast}]
probes: {health: {get: /health}}
trials: 3
experiments:
  ladder:
    mix: {slow: 1, fast: 9}
    load: {users: $users, think: 1s, duration: 20s}
    factors: {users: [1, 4, 16]}
"""

OPEN = (
    ("{users: 1, workers: 1, mode: a}", "{workers: 1, mode: a}"),
    ("load: {users: $users, think: 1s, duration: 20s}", "load: {rate: 200/s, duration: 20s}"),
    ("factors: {users: [1, 4, 16]}", "factors: {mode: [a, b]}"),
)
CSV_HEAD = "experiment,users,step,metric,side,value,unit\n"


def planned(
    tmp_path: Path, *changes: tuple[str, str], more: str = "", csv: str = "", quick: bool = False
) -> Study:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    if csv:
        (tmp_path / "published.csv").write_text(CSV_HEAD + csv)
        more += "published: {file: published.csv}\n"
    (tmp_path / "study.yaml").write_text(text + more)
    return plan.plan(parse.read(tmp_path), quick=quick)


def rules(study: Study, cores: int = 2) -> set[str]:
    return {fault.rule for fault in lint.faults(study, cores=cores)}


def test_a_sound_design_has_no_faults(tmp_path: Path) -> None:
    assert rules(planned(tmp_path)) == set()


FAULTS = [
    ("trials.one", (("trials: 3", "trials: 1"),), "", ""),
    ("trials.two", (("trials: 3", "trials: 2"),), "", ""),
    ("order.listed", (), "order: {by: listed}\n", ""),
    ("fresh.data", (), "fresh: block\n", ""),
    ("fresh.caches", (), "fresh: run\nreset: {run: refill}\n", ""),
    ("duration.intervals", (("20s", "10s"),), "", ""),
    ("warmup.none", (("duration: 20s", "duration: 20s, warmup: 0s"),), "", ""),
    ("load.no-think", (("think: 1s, ", ""),), "", ""),
    ("load.no-baseline", (("[1, 4, 16]", "[2, 4, 16]"),), "", ""),
    ("load.no-saturation", (("[1, 4, 16]", "[1, 2, 3]"),), "", ""),
    ("probes.none", (("probes: {health: {get: /health}}\n", ""),), "", ""),
    (
        "probes.sticky",
        (
            ("{get: /health}", "{get: /health, connection: keep}"),
            ("serve --port", "serve --workers 2 --port"),
        ),
        "",
        "",
    ),
    ("probes.heavy", (*OPEN, ("{get: /health}", "{get: /health, rate: 41/s}")), "", ""),
    ("hold-out.trained", (("users: [1, 4, 16]}", "users: [1, 4, 16]}\n    hold_out: {mode: [a]}"),), "", ""),
    ("cores", (("trials: 3", "trials: 3\nneeds_cores: 4"),), "", ""),
    ("duration.slowest", (), "", "ladder,16,slow,response_time.mean,client,4.1,s\n"),
    (
        "timeout.published",
        (("duration: 20s", "duration: 200s, timeout: 4s"),),
        "",
        "ladder,16,slow,response_time.mean,client,4.1,s\n",
    ),
    ("published.no-case", (), "", "ladder,5,slow,response_time.mean,client,1,ms\n"),
    # One user with 1 s of thinking sends at most 21 requests in 20 s; p99 needs ln 0.025 / ln 0.99 = 368.
    ("duration.quantile", (), "objectives: [{metric: response_time.p99, step: slow, below: 1s}]\n", ""),
    # Of ten requests nine are fast: p90 of all lies where the fast ones end.
    ("quantile.boundary", OPEN, "objectives: [{metric: response_time.p90, below: 1s}]\n", ""),
]


@pytest.mark.parametrize(("rule", "changes", "more", "csv"), FAULTS)
def test_each_fault_is_found_alone(
    tmp_path: Path, rule: str, changes: tuple[tuple[str, str], ...], more: str, csv: str
) -> None:
    faults = lint.faults(planned(tmp_path, *changes, more=more, csv=csv), cores=2)

    assert {fault.rule for fault in faults} == {rule}
    assert all(fault.message and fault.advice and fault.where for fault in faults)


NEAR_MISSES = [
    ("duration.slowest", (), "", "ladder,16,slow,response_time.mean,client,3900,ms\n"),  # 5 x 3.9 s < 20 s
    (
        "duration.quantile",
        OPEN,
        "objectives: [{metric: response_time.p99, step: slow, below: 1s}]\n",
        "",
    ),  # 1,000
    ("quantile.boundary", OPEN, "objectives: [{metric: response_time.p95, below: 1s}]\n", ""),
    ("quantile.boundary", OPEN, "objectives: [{metric: response_time.p90, step: slow, below: 1s}]\n", ""),
    (
        "load.no-think",
        (("think: 1s, ", ""), ("[1, 4, 16]", "[1]")),
        "",
        "",
    ),  # one user is a connection and a user
    ("probes.sticky", (("{get: /health}", "{get: /health, connection: keep}"),), "", ""),  # one worker
    ("hold-out.trained", (("users: [1, 4, 16]}", "users: [1, 4, 16]}\n    hold_out: {mode: [b]}"),), "", ""),
    ("cores", (("trials: 3", "trials: 3\nneeds_cores: 2"),), "", ""),
    ("load.no-baseline", (("[1, 4, 16]", "[16]"),), "", ""),  # no ladder
    ("published.no-case", (), "", "ladder,4,slow,response_time.mean,client,1,ms\n"),
]


@pytest.mark.parametrize(("rule", "changes", "more", "csv"), NEAR_MISSES)
def test_each_near_miss_stays_silent(
    tmp_path: Path, rule: str, changes: tuple[tuple[str, str], ...], more: str, csv: str
) -> None:
    assert rule not in rules(planned(tmp_path, *changes, more=more, csv=csv))


def test_rising_levels_on_processes_that_live_on_are_confounded_with_their_age(tmp_path: Path) -> None:
    assert "order.warm" in rules(planned(tmp_path, more="order: {by: listed}\nfresh: run\n"))
    assert "order.warm" not in rules(planned(tmp_path, more="fresh: run\n"))


def test_quick_trials_below_eight_seconds_are_named_and_one_trial_is_not(tmp_path: Path) -> None:
    short = "quick: {trials: 1, experiments: {ladder: {load: {duration: 7s}}}}\n"

    assert rules(planned(tmp_path, more=short, quick=True)) == {"duration.quick"}
    assert rules(planned(tmp_path, more=short.replace("7s", "8s"), quick=True)) == set()


def test_claims_that_no_case_can_answer_are_counted(tmp_path: Path) -> None:
    more = (
        "claims:\n"
        "  - {rises: response_time.mean, over: users}\n"
        "  - {ratio: response_time.mean, of: {users: 16}, to: {users: 4}, published: 4}\n"
        "quick: {trials: 1, experiments: {ladder: {load: {duration: 8s}, factors: {users: [1, 4]}}}}\n"
    )

    faults = lint.faults(planned(tmp_path, more=more, quick=True), cores=2)

    assert [(fault.rule, fault.message) for fault in faults] == [
        ("claim.no-case", "1 of 2 claims have no cases in this plan: line 20"),
    ]


def test_no_rule_knows_a_name_of_a_study(tmp_path: Path) -> None:
    """The same design under other names has the same faults."""
    changes = (("think: 1s, ", ""), ("trials: 3", "trials: 1"), ("[1, 4, 16]", "[2, 3]"))
    before = lint.faults(planned(tmp_path, *changes), cores=2)
    text = (tmp_path / "study.yaml").read_text()
    renamed = {"ladder": "zz", "slow": "yy", "fast": "xx", "health": "ww", "web": "vv", "workers": "tt"}
    for old, new in {**renamed, "users: [": "u: [", "$users": "$u", "users: 1,": "u: 1,"}.items():
        text = text.replace(old, new)
    (tmp_path / "study.yaml").write_text(text)

    after = lint.faults(plan.plan(parse.read(tmp_path)), cores=2)

    assert [fault.rule for fault in after] == [fault.rule for fault in before]
    assert len(before) == 4


def test_every_rule_of_the_module_is_used() -> None:
    tree = ast.parse((ROOT / "python" / "loadlens" / "study" / "lint.py").read_text())
    rules = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.args) == "experiment: Experiment"
    ]

    assert [rule.__name__ for rule in lint._RULES] == rules


# Clients that ask again at once are what two of the published designs are about.
PUBLISHED_AS_IT_WAS = ("load.no-think",)
# And a published table of single loads from 10 users on, nothing alongside, is repeated as it stands.
PUBLISHED_TABLES = {"sso": ("load.no-baseline", "probes.none")}


def test_the_shipped_studies_are_sound_on_a_machine_of_eight_cores() -> None:
    for folder in sorted((ROOT / "studies").iterdir()):
        study = plan.plan(parse.read(folder))
        expected = PUBLISHED_AS_IT_WAS + PUBLISHED_TABLES.get(folder.name, ())
        faults = [fault for fault in lint.faults(study, cores=8) if fault.rule not in expected]
        assert faults == [], folder.name


BY_PROGRAMS = (
    ("{users: 1, workers: 1, mode: a}", "{users: 1, workers: 1, mode: a, driver: wrk}"),
    ("factors: {users: [1, 4, 16]}", "factors: {users: [1, 4, 16], driver: [loadlens, wrk]}"),
)


@pytest.mark.parametrize(("more", "differ"), [("", True), (", warmup: 0s", False)])
def test_a_warm_up_of_our_engine_alone_makes_cases_unlike(tmp_path: Path, more: str, differ: bool) -> None:
    load = ("think: 1s, duration: 20s}", f"duration: 20s, driver: $driver{more}}}")

    assert ("drivers.warmup" in rules(planned(tmp_path, *BY_PROGRAMS, load))) == differ
