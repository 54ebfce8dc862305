"""A definition -> cases and their order. Numbers of cases and trials are counted by hand."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadlens import engine
from loadlens.errors import DefinitionErrors, UsageError
from loadlens.model.profile import Profile, Segment
from loadlens.model.study import Case, Study
from loadlens.model.topology import Calibrate, Otlp, Scalar
from loadlens.model.workload import Bounds, Closed, Connection, Group, Open, Source, Think
from loadlens.run.external import cannot_do
from loadlens.study import parse, plan

ROOT = Path(__file__).parents[3]
EVERYTHING = ROOT / "tests" / "data" / "studies" / "everything"
REGISTER = ROOT / "studies" / "register"
BALANCE = ROOT / "studies" / "balance"
S = 1_000_000_000

HEAD = """\
schema: 1
study: small
question: does it plan?
params: {users: 3, workers: 1, think: 150ms}
services:
  web: {start: "serve --port $port --workers $workers", env: {THINK: $think, PRICE: "$$5"}}
entry: web
scenarios:
  look: [{get: /}]
  buy: [{post: /, json: {n: $workers, t: "w$workers"}}]
experiments:
"""


def planned(tmp_path: Path, experiments: str, **options: object) -> Study:
    (tmp_path / "study.yaml").write_text(HEAD + experiments)
    return plan.plan(parse.read(tmp_path), **options)  # type: ignore[arg-type]


LADDER = (
    "  ladder: {mix: look, load: {users: $users, think: $think, duration: 20s}, factors: {users: [1, 5]}}\n"
)


def by_name(study: Study) -> dict[str, Case]:
    return {case.name: case for case in study.cases}


# ------------------------------------------------------------------------------------------------- values


def test_a_name_that_is_the_whole_value_keeps_its_type_and_in_a_text_becomes_text(tmp_path: Path) -> None:
    study = planned(
        tmp_path,
        "  e: {mix: buy, load: {users: $users, duration: 9s}, factors: {workers: [2], users: [1]}}\n",
    )

    case = study.cases[0]
    assert case.scenarios[0].steps[0].body.value == {"n": 2, "t": "w2"}
    assert case.services[0].env == (
        ("THINK", "150ms"),
        ("PRICE", "$$5"),
    )  # a dollar stays doubled for the testbed


def test_names_of_the_testbed_stay_open_and_params_are_filled(tmp_path: Path) -> None:
    case = planned(tmp_path, LADDER).cases[0]

    assert case.services[0].start == "serve --port $port --workers 1"


def test_a_case_has_the_workload_that_the_file_says(tmp_path: Path) -> None:
    case = by_name(planned(tmp_path, LADDER))["ladder users=5"]

    assert case.workload == Closed(users=5, think=Think("fixed", ns=150_000_000))
    assert case.connection == Connection("keep")
    assert (case.warmup_ns, case.duration_ns, case.timeout_ns) == (None, 20 * S, 30 * S)
    assert dict(case.params) == {"users": 5, "workers": 1, "think": "150ms"}


def test_a_load_that_ends_by_a_number_has_no_warmup_of_itself(tmp_path: Path) -> None:
    study = planned(
        tmp_path,
        LADDER.replace("duration: 20s", "iterations: 100").replace("ladder", "counted")
        + LADDER.replace("duration: 20s", "iterations: 100, warmup: 2s").replace("ladder", "warmed"),
    )

    assert {case.experiment: case.warmup_ns for case in study.cases} == {"counted": 0, "warmed": 2 * S}


def test_a_driver_is_a_factor_like_others_and_ours_is_none(tmp_path: Path) -> None:
    cases = by_name(
        planned(
            tmp_path,
            "  e: {mix: look, load: {users: $users, duration: 9s, driver: $by}, "
            "factors: {by: [loadlens, wrk]}}\n",
        )
    )

    ours, theirs = cases["e by=loadlens"], cases["e by=wrk"]
    assert (ours.driver, ours.warmup_ns) == (None, None)  # automatic
    assert (theirs.driver, theirs.warmup_ns) == ("wrk", 0)  # it reports the whole load


def test_a_driver_that_is_not_known_is_a_fault_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DefinitionErrors) as fault:
        planned(tmp_path, "  e: {mix: look, load: {users: $users, duration: 9s, driver: siege}}\n")

    assert "siege" in str(fault.value)
    assert "locust" in str(fault.value)
    assert "experiments.e.load.driver" in str(fault.value)


def test_what_a_driver_cannot_do_is_a_fault_at_the_line_that_asks_for_it(tmp_path: Path) -> None:
    experiments = """\
  e:
    mix: buy
    load:
      rate: 5/s
      driver: ab
      warmup: auto
      duration: 9s
      connection: 3
  f:
    mix: {look: 1, buy: 1}
    load: {users: $users, duration: 9s, driver: k6}
report: {window: {from: 1s}}
"""
    with pytest.raises(DefinitionErrors) as fault:
        planned(tmp_path, experiments, refusals=cannot_do)

    start = HEAD.count("\n")
    for words, line, key in (
        ("ab keeps no rate and no due times", start + 4, "experiments.e.load.rate"),
        ("ab knows no warm-up", start + 6, "experiments.e.load.warmup"),
        ("ab keeps connections or makes a new one for each", start + 8, "experiments.e.load.connection"),
        ("k6 asks one request over and over", start + 10, "experiments.f.mix"),
        ("the report cannot take a part of one", start + 12, "report.window"),
    ):
        place = str(fault.value).partition(words)[2].partition("  at ")[2].partition("\n")[0]
        assert f"study.yaml:{line} {key}" in place, (words, str(fault.value))


def test_every_key_arrives_where_it_should() -> None:
    cases = by_name(plan.plan(parse.read(EVERYTHING), read_due_times=engine.read_due_times))

    closed = cases["closed workers=2 users=16"]
    api = closed.services[1]
    assert api.calibrate == Calibrate("python -m app.spin 3M", "rounds")
    assert api.start == "python -m app --host $host --port $port --workers 2 --upstream $db.host:$db.port"
    assert dict(api.env) == {
        "BACKEND": "plain",
        "REPLICA": "$replica",
        "LOG": "$scratch/log-$replica.jsonl",
        "VERSION": "1.10",
        "PRICE": "$$5",
    }
    assert (api.replicas, api.ports, api.after, api.setup) == (
        2,
        ("http", "metrics"),
        ("db",),
        "python -m app.schema $db.url --rounds $rounds",
    )
    assert api.ready is not None
    assert (api.ready.path, api.ready.port, api.ready.status, api.ready.within_s) == (
        "/health",
        "http",
        204,
        60.0,
    )
    assert api.scrape is not None
    assert (api.scrape.path, api.scrape.port, api.scrape.every_s) == ("/metrics", "metrics", 0.5)
    assert api.otlp == Otlp(port=4318)
    assert api.server_times is not None
    assert (api.server_times.path, api.server_times.seconds) == ("route", "took_s")
    assert (closed.services[0].stop.signal, closed.services[0].stop.within_s) == ("INT", 5.0)
    assert closed.reset is not None
    assert (closed.reset.before, closed.reset.run, closed.reset.files) == (
        "block",
        "python -m app.fill 3M",
        ("$scratch/*.tmp",),
    )
    assert (closed.entry.service, closed.entry.port, closed.needs_cores) == ("api", "http", 2)
    assert closed.workload == Closed(users=16, think=Think("fixed", ns=150_000_000), ramp_ns=S)
    assert closed.connection == Connection("requests", requests=100, pool=50)
    probe = closed.probes[0]
    assert probe.workload == Open(rate_per_s=20.0, arrivals="poisson", max_in_flight=100)
    assert (probe.connection, probe.timeout_ns) == (Connection("new"), 10 * S)
    assert [(s.name, s.weight) for s in closed.scenarios] == [("crud", 4.0), ("ping", 1.0)]
    create, _, replace, upload, _ = closed.scenarios[0].steps
    assert (create.method, create.path, create.expect) == ("POST", "/items?by=plain", (200, 201))
    assert create.headers == (
        ("Accept", "application/json"),
        ("X-Token", "a$b"),
        ("traceparent", "{{traceparent}}"),
    )
    assert create.body.value == {
        "item": {"value": "{{int 1 100}}", "tags": ["plain", "x-16"], "price": 1.5, "none": None}
    }
    assert [(c.kind, c.path, c.bounds or c.pattern or c.below_ns) for c in create.checks[5:]] == [
        ("exists", "data", None),
        ("exists", "items[-1]", None),
        ("absent", "error", None),
        ("number", "data.price", Bounds(above=0, below=100)),
        ("count", "items", Bounds(equals=2)),
        ("regex", None, 'id" *: *\\d+$'),
        ("size", None, Bounds(below=64000)),
        ("latency", None, 200_000_000),
    ]
    assert create.extract[2].source == Source("regex", pattern=r"/items/(\d+)", group=1, header="Location")
    assert [(c.kind, c.path or c.name or c.text, c.equals) for c in create.checks[:5]] == [
        ("json", "data.id", 7), ("json", "items[0].ok", True), ("header", "Content-Type", "application/json"),
        ("contains", "id", None), ("contains", "data", None),
    ]  # fmt: skip
    assert [(e.name, e.source.kind, e.source.path or e.source.name) for e in create.extract[:2]] == [
        ("id", "json", "data.id"), ("location", "header", "Location"),
    ]  # fmt: skip
    assert create.think == Think("uniform", low_ns=10_000_000, high_ns=30_000_000)
    assert replace.think == Think("exponential", mean_ns=20_000_000)
    assert upload.body.path == str(EVERYTHING / "app" / "body.bin")
    assert upload.body.digest == hashlib.sha256(b"bytes\n").hexdigest()
    opened = cases["open rate=3000/m"]
    assert opened.workload == Open(rate_per_s=50.0, arrivals="poisson", max_in_flight=200, overflow="drop")
    assert (opened.warmup_ns, opened.fresh, opened.trials) == (3 * S, "block", 3)
    rising = cases["rising"]
    assert rising.workload == Open(
        profile=Profile(
            (Segment(10 * S, 10.0, 100.0), Segment(20 * S, 100.0, 100.0)),
        )
    )
    assert (rising.warmup_ns, rising.duration_ns) == (10 * S, 20 * S)
    stepping = cases["stepping"]
    assert stepping.workload == Closed(
        users=8,
        pace=Think("uniform", low_ns=S // 2, high_ns=3 * S // 2),
        profile=Profile((Segment(20 * S, 4.0, 4.0), Segment(20 * S, 8.0, 8.0))),
    )
    assert (stepping.warmup_ns, stepping.duration_ns) == (0, 40 * S)
    bursting = cases["bursting"]
    assert bursting.workload.profile == Profile(
        (Segment(S, 200.0, 200.0), Segment(4 * S, 0.0, 0.0)), repeats=True
    )
    assert bursting.duration_ns == 30 * S
    replay = cases["replayed"].workload
    assert isinstance(replay, Open)
    assert replay.replay is not None
    # 0, 1.5 s and 3 s after the first, at twice the speed.
    assert (replay.replay.arrivals, replay.replay.last_ns, replay.replay.peak_per_s) == (
        3,
        1_500_000_000,
        2.0,
    )
    assert (cases["replayed"].duration_ns, cases["replayed"].warmup_ns) == (None, 0)
    again = cases["again pool=small"]
    assert (again.fresh, again.trials, again.probes, again.needs_cores) == ("trial", 2, (), 1)
    assert dict(again.params)["backend"] == "pooled"


# ------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("experiments", "line", "message"),
    [
        (LADDER.replace("[1, 5]", "[1, 0]"), 12, "a count here is at least 1, got 0 (from $users in ladder)"),
        (LADDER.replace("[1, 5]", "[1, many]"), 12, "'many' is not a count (from $users in ladder)"),
        (
            LADDER.replace("users: [1, 5]", "users: [1], rows: [1]"),
            12,
            "factor rows changes nothing: no $rows in ladder, its scenarios or the services",
        ),
        (
            LADDER.replace("[1, 5]", "{few: {users: 1, rows: 5}}"),
            12,
            "level few binds rows, which nothing in ladder uses",
        ),
        (
            LADDER.replace("look", "$place").replace("users: [1", "place: [look], users: [1")
            + LADDER.replace("ladder", "other").replace("look", "$place"),
            13,
            "$place has no value in other",
        ),
        (
            LADDER.replace("look", "$place").replace("users: [", "place: [lok], users: ["),
            12,
            "'lok' is no scenario",
        ),
        (
            LADDER.replace("mix: look", "mix: {look: 1, buy: $workers}").replace(
                "users: [", "workers: [0], users: ["
            ),
            12,
            "weight of buy is above 0, got 0 (from $workers in ladder)",
        ),
    ],
)
def test_what_a_filled_name_makes_wrong_is_a_fault_with_its_line(
    tmp_path: Path, experiments: str, line: int, message: str
) -> None:
    with pytest.raises(DefinitionErrors) as caught:
        planned(tmp_path, experiments)

    places = [(fault.message, fault.where) for fault in caught.value.faults]
    assert any(text == message and re.search(rf":{line} ", where or "") for text, where in places), places


def test_each_fault_is_said_once_whatever_the_number_of_cases(tmp_path: Path) -> None:
    experiments = LADDER.replace("20s", "$workers").replace("[1, 5]", "[1, 2, 3]")

    with pytest.raises(DefinitionErrors) as caught:
        planned(tmp_path, experiments.replace("users: [", "workers: [0], users: ["))

    assert len(caught.value.faults) == 1


def test_a_folder_or_file_that_is_not_there_is_a_fault_before_anything_starts(tmp_path: Path) -> None:
    shutil.copytree(EVERYTHING, tmp_path / "study")
    (tmp_path / "study" / "app" / "body.bin").unlink()
    (tmp_path / "study" / "app" / "requirements.txt").unlink()

    with pytest.raises(DefinitionErrors) as caught:
        plan.plan(parse.read(tmp_path / "study"), read_due_times=engine.read_due_times)

    assert [fault.message for fault in caught.value.faults] == [
        "there is no file 'requirements.txt' in app",
        "there is no file 'body.bin'",
    ]


def test_templates_are_checked_with_the_values_that_earlier_steps_extract() -> None:
    asked: dict[str, set[str]] = {}

    class Templates:
        def check_template(
            self, text: str, names: Sequence[str] = (), feeds: Sequence[str] = ()
        ) -> str | None:
            asked.setdefault(text, set()).update(names)
            return "no such generator: wrod" if "word" in text else None

        def columns_of(
            self, text: str, names: Sequence[str], feeds: Sequence[str]
        ) -> list[tuple[str, str, bool]]:
            return []

        def check_pattern(self, text: str, group: int | None = None) -> str | None:
            return None

        def open_feed(self, path: Path, format: str) -> Any:
            raise AssertionError("the study has no feed")

    with pytest.raises(DefinitionErrors) as caught:
        plan.plan(parse.read(EVERYTHING), templates=Templates(), read_due_times=engine.read_due_times)

    assert asked == {
        "{{int 1 100}}": set(),
        "{{people.name}}": set(),
        "/items/{{id}}": {"id", "location", "number"},
        "value={{word 5}}": {"id", "location", "number"},
    }
    faults = {fault.message: fault.where or "" for fault in caught.value.faults}
    assert ".body" in faults["no such generator: wrod"]


def test_too_many_cases_are_refused_without_being_made(tmp_path: Path) -> None:
    levels = ", ".join(str(n) for n in range(1, 1001))
    factors = f"{{users: [{levels}], workers: [{levels}], think: [{levels}]}}"  # 10^9 cases

    with pytest.raises(DefinitionErrors, match="more than 2,000 cases"):
        planned(tmp_path, LADDER.replace("{users: [1, 5]}", factors))


# -------------------------------------------------------------------------------------------------- cases


def test_factors_are_crossed_in_study_order(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER.replace("users: [1, 5]", "workers: [1, 2], users: [1, 5, 9]"))

    assert [case.slug for case in study.cases] == [
        "ladder-workers-1-users-1", "ladder-workers-1-users-5", "ladder-workers-1-users-9",
        "ladder-workers-2-users-1", "ladder-workers-2-users-5", "ladder-workers-2-users-9",
    ]  # fmt: skip


def test_an_experiment_without_factors_is_one_case(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER.replace(", factors: {users: [1, 5]}", ""))

    assert [case.name for case in study.cases] == ["ladder"]
    assert study.cases[0].workload == Closed(users=3, think=Think("fixed", ns=150_000_000))


def test_held_out_levels_are_crossed_with_what_where_leaves(tmp_path: Path) -> None:
    held = LADDER.replace("users: [1, 5]", "workers: [1, 2], users: [1, 5]").replace(
        "}}\n", "}, hold_out: {think: [0s], where: {users: [5]}}}\n"
    )

    study = planned(tmp_path, held)

    assert [case.name for case in study.cases if case.held_out] == [
        "ladder workers=1 users=5 think=0s",
        "ladder workers=2 users=5 think=0s",
    ]
    assert sum(not case.held_out for case in study.cases) == 4


def test_a_level_held_out_of_a_factor_takes_the_place_of_its_levels(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER.replace("}}\n", "}, hold_out: {users: [9]}}\n"))

    assert [(case.name, case.held_out) for case in study.cases] == [
        ("ladder users=1", False), ("ladder users=5", False), ("ladder users=9", True),
    ]  # fmt: skip


def test_slugs_are_safe_for_folders_and_unique(tmp_path: Path) -> None:
    levels = '["../x", "a b", "a/b", "A b", "ü", "con.", "' + "long" * 18 + '"]'

    study = planned(
        tmp_path, LADDER.replace("users: [1, 5]", f"think: {levels}").replace("think: $think, ", "")
    )

    slugs = [case.slug for case in study.cases]
    assert len(set(slugs)) == len(slugs) == 7
    assert all(
        re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,84}", slug) and not slug.endswith(".") for slug in slugs
    ), slugs


# -------------------------------------------------------------------------------------------------- order


def test_every_case_stands_once_in_each_block_and_held_out_ones_at_the_end() -> None:
    study = plan.plan(parse.read(EVERYTHING), read_due_times=engine.read_due_times)
    order = plan.order(study)

    assert len(order) == 45  # closed 7 x 3, again 3 x 2, open 2 x 3, four more x 3
    assert [trial.position for trial in order] == list(range(1, 46))
    assert Counter((trial.case.slug, trial.block) for trial in order).most_common(1)[0][1] == 1
    held_out = [trial.case.held_out for trial in order]
    assert held_out == sorted(held_out)
    assert [trial.block for trial in order if not trial.case.held_out] == [1] * 14 + [2] * 14 + [3] * 12
    assert len({trial.seed for trial in order}) == 45


def test_the_order_follows_from_the_seed_alone(tmp_path: Path) -> None:
    ladder = LADDER.replace("[1, 5]", "[1, 2, 3, 4, 5, 6]")
    study = planned(tmp_path, ladder)
    other = planned(tmp_path, ladder + "order: {seed: 2}\n")

    assert plan.order(study) == plan.order(planned(tmp_path, ladder))
    assert [t.case.slug for t in plan.order(study)] != [t.case.slug for t in plan.order(other)]


def test_one_case_more_leaves_the_seeds_of_the_others(tmp_path: Path) -> None:
    few = {(t.case.slug, t.block): t.seed for t in plan.order(planned(tmp_path, LADDER))}
    more = {
        (t.case.slug, t.block): t.seed
        for t in plan.order(planned(tmp_path, LADDER.replace("1, 5", "1, 3, 5")))
    }

    assert few.items() <= more.items()


def test_listed_order_is_the_order_of_the_file(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER.replace("1, 5", "5, 1, 3") + "order: {by: listed}\ntrials: 2\n")

    assert [trial.case.slug[-1] for trial in plan.order(study)] == ["5", "1", "3", "5", "1", "3"]


# ----------------------------------------------------------------------------------------- quick and --set

QUICK = (
    LADDER.replace("users: [1, 5]", "workers: [1, 2], users: [1, 5]")
    + """\
trials: 3
quick:
  trials: 1
  params: {workers: 4}
  experiments: {ladder: {load: {duration: 8s}, factors: {users: [5]}}}
"""
)


def test_quick_changes_a_load_key_by_key_and_replaces_factors(tmp_path: Path) -> None:
    case = planned(tmp_path, QUICK, quick=True).cases[0]

    assert case.name == "ladder users=5"
    assert case.duration_ns == 8 * S
    assert isinstance(case.workload, Closed)
    assert case.workload.think == Think("fixed", ns=150_000_000)  # kept
    assert dict(case.params)["workers"] == 4
    assert case.trials == 1


def test_quick_says_every_difference_in_words(tmp_path: Path) -> None:
    assert planned(tmp_path, QUICK, quick=True).quick_differences == (
        "param workers: 4 instead of 1",
        "trials: 1 instead of 3",
        "ladder: duration 8s instead of 20s",
        "ladder: workers at its default instead of 1, 2",
        "ladder: users 5 instead of 1, 5",
    )
    assert planned(tmp_path, QUICK).quick_differences == ()


def test_quick_keeps_held_out_cases_to_the_levels_that_are_left(tmp_path: Path) -> None:
    held = QUICK.replace("[1, 5]}}\n", "[1, 5]}, hold_out: {think: [0s], where: {users: [1, 5]}}}\n", 1)

    study = planned(tmp_path, held, quick=True)

    assert [case.name for case in study.cases if case.held_out] == ["ladder users=5 think=0s"]


def test_quick_cannot_turn_users_into_a_rate(tmp_path: Path) -> None:
    with pytest.raises(DefinitionErrors, match="closed in the study and open in its quick profile"):
        planned(tmp_path, QUICK.replace("{duration: 8s}", "{rate: 5/s}"), quick=True)


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ({"users": 5}, ["ladder workers=1 users=5", "ladder workers=2 users=5"]),
        ({"users": 7, "workers": 2}, ["ladder workers=2 users=7"]),
    ],
)
def test_set_pins_a_factor_to_one_level(
    tmp_path: Path, overrides: dict[str, Scalar], names: list[str]
) -> None:
    study = planned(tmp_path, LADDER.replace("users: [1", "workers: [1, 2], users: [1"), overrides=overrides)

    assert [case.name for case in study.cases] == names


def test_set_of_what_is_held_out_runs_it_as_a_case_of_its_own(tmp_path: Path) -> None:
    held = LADDER.replace("}}\n", "}, hold_out: {think: [0s]}}\n")

    study = planned(tmp_path, held, overrides={"think": "0s"})

    assert [(case.held_out, dict(case.params)["think"]) for case in study.cases] == [(False, "0s")] * 2


def test_set_of_an_unknown_name_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the study has no such param or factor") as caught:
        planned(tmp_path, LADDER, overrides={"usres": 5})

    assert caught.value.hint == "did you mean users?"


def test_set_of_a_param_that_levels_bind_names_their_factor(tmp_path: Path) -> None:
    named = LADDER.replace("users: [1, 5]", "size: {small: {users: 1}, big: {users: 5}}")

    with pytest.raises(UsageError, match="--set users would change no case: the levels of size") as caught:
        planned(tmp_path, named, overrides={"users": 7})

    assert caught.value.hint == "choose a level: --set size=small"


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("users=5", ("users", 5)),
        ("think=150ms", ("think", "150ms")),
        (" a = b=c ", ("a", "b=c")),
        ("on=true", ("on", True)),
    ],
)
def test_an_override_is_read_as_yaml_reads_it(text: str, pair: tuple[str, Scalar]) -> None:
    assert plan.parse_override(text) == pair


@pytest.mark.parametrize("text", ["users", "=5", "users=", "users=1e999", f"users={2**64}"])
def test_an_override_without_name_or_usable_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        plan.parse_override(text)


# --------------------------------------------------------------------------------------------------- time


def test_the_estimate_counts_warmup_load_start_and_seal(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER + "trials: 2\n")

    # 2 cases x 2 trials x (5 warm-up + 20 + 1 around it + 1.5 start + 0.5 stop + 0.5 seal); nothing is built
    assert plan.duration(study).seconds == pytest.approx(4 * 28.5)


def test_processes_that_live_on_are_started_once(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER + "trials: 2\nfresh: run\n")

    assert plan.duration(study).seconds == pytest.approx(4 * 26.5 + 2.0)


def test_a_load_that_ends_by_a_number_is_guessed(tmp_path: Path) -> None:
    study = planned(
        tmp_path, LADDER.replace("duration: 20s", "iterations: 100").replace("[1, 5]", "[5]") + "trials: 1\n"
    )

    # 100 x (0.02 answer + 0.15 think) + start, stop, seal, around it
    assert plan.duration(study).seconds == pytest.approx(17.0 + 3.5)
    assert plan.duration(study).notes == (
        (
            "1 of 1 trials end by a number of requests: "
            "1 guessed at 20 ms an answer and at most 1,000 requests/s"
        ),
    )


def test_users_who_share_connections_are_guessed_to_wait_for_them(tmp_path: Path) -> None:
    load = "iterations: 100, connections: 2"
    text = LADDER.replace("think: $think, ", "").replace("duration: 20s", load).replace("[1, 5]", "[5]")
    study = planned(tmp_path, text + "trials: 1\n")

    # 5 users x 100 requests x 0.02 s over two connections
    assert plan.duration(study).seconds == pytest.approx(5.0 + 3.5)


def test_a_load_that_ends_by_a_number_lasts_as_in_earlier_runs(tmp_path: Path) -> None:
    study = planned(tmp_path, LADDER.replace("duration: 20s", "iterations: 100") + "trials: 1\n")
    seen = [
        plan.PastTrial("ladder-users-5", "ladder", per_s=rate, overhead_s=2.0) for rate in (4.0, 5.0, 50.0)
    ]

    estimate = plan.duration(study, seen)

    # 500 requests at the median of 5/s and 2 s around them; 100 of the case that was not seen, at the rate of
    # its experiment, and 3.5 s around them
    assert estimate.seconds == pytest.approx(100.0 + 2.0 + 20.0 + 3.5)
    assert estimate.notes == (
        "2 of 2 trials end by a number of requests: 2 as fast as in earlier runs here",
        "2.0 s around the load of a trial, the median of 3 earlier trials here; builds are cached",
    )


def test_without_an_earlier_run_the_published_times_of_clients_count() -> None:
    study = plan.plan(parse.read(BALANCE))
    one, three = (
        replace(study, cases=(case,))
        for case in study.cases
        if case.experiment == "published" and case.levels[0].name in ("one", "three")
    )

    # 10,000 requests of 6 users: 138.889 ms each alone, 82.378 ms with three servers; the rest is the same
    # but for two more replicas and the balancer
    alone, farm = plan.duration(one), plan.duration(three)
    assert (farm.seconds - alone.seconds) / 3 == pytest.approx(10_000 / 6 * (0.082378 - 0.138889) + 0.4 + 2.0)
    assert alone.notes == ("3 of 3 trials end by a number of requests: 3 as fast as published",)


# ----------------------------------------------------------------------------------------- the register study


def test_the_register_study_is_the_published_matrix_and_fits_its_hour() -> None:
    study = plan.plan(parse.read(REGISTER))

    counted = Counter((case.experiment, case.held_out) for case in study.cases)
    # one request at a time: 2 endpoints; then workers 1, 2, 4 x users 1, 5, 10, 15, 20, twice
    assert counted == {
        ("consecutive", False): 2,
        ("alone", False): 15,
        ("mixed", False): 15,
        ("alone", True): 2,
        ("mixed", True): 2,
    }
    assert all(case.trials == 3 for case in study.cases)
    assert plan.duration(study).seconds <= 3600
    assert study.published is not None
    assert len(study.published.rows) == 15
    mixed = by_name(study)["mixed workers=4 users=20"]
    assert [(s.name, s.weight) for s in mixed.scenarios] == [("register", 5.0), ("health", 1.0)]
    assert mixed.needs_cores == 4


def test_the_quick_register_study_takes_about_two_minutes() -> None:
    study = plan.plan(parse.read(REGISTER), quick=True)

    assert 90 < plan.duration(study).seconds < 150
    assert all(case.duration_ns is None or case.duration_ns >= 5 * S for case in study.cases)


def test_ratios_that_the_register_study_claims_are_those_of_its_published_figures() -> None:
    study = plan.plan(parse.read(REGISTER))
    assert study.published is not None
    seconds = {
        (row["experiment"], row["workers"], row["users"]): float(row["value"])
        * {"ms": 1e-3, "s": 1.0}[row["unit"]]
        for row in study.published.rows
        if row["experiment"] != "consecutive"
    }
    for claim in (claim for claim in study.claims if claim.kind == "ratio"):
        of, to = ({**dict(claim.where), **dict(side)} for side in (claim.of, claim.to))
        published = [seconds[claim.experiment, levels["workers"], levels["users"]] for levels in (of, to)]
        # as published, to the three digits that the claim states
        assert claim.published == pytest.approx(published[0] / published[1], rel=5e-3), claim


# ------------------------------------------------------------------------------------------------- groups

NESTED = """\
schema: 1
study: shop
question: how does a basket fill?
params: {items: 4}
entry: http://127.0.0.1:1
scenarios:
  shop:
    - {name: home, get: /, think: 1s}
    - group: basket
      repeat: 2
      steps:
        - {name: list, get: /items, think: 10ms}
        - repeat: $items
          steps:
            - {group: look, steps: [{name: item, get: "/items/{{int 1 9}}"}, {name: add, post: /basket}]}
        - {name: total, get: /basket}
    - {name: pay, post: /pay, think: 5s}
experiments:
  e: {mix: shop, load: {users: 1, iterations: 3}}
"""


def test_groups_nest_and_repeat(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(NESTED)

    scenario = plan.plan(parse.read(tmp_path)).cases[0].scenarios[0]

    assert [step.name for step in scenario.steps] == ["home", "list", "item", "add", "total", "pay"]
    assert scenario.groups == (Group("basket", 1, 4, 2), Group("", 2, 2, 4), Group("look", 2, 2, 1))
    # By hand: home 1, list 2, item and add 2 x 4 each, total 2, pay 1.
    assert scenario.visits == (1, 2, 8, 8, 2, 1)
    assert scenario.requests == 22
    # Home thinks 1 s once, list 10 ms twice; pay is the last request, and nothing waits after it.
    assert scenario.pause_s == pytest.approx(1.02)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("repeat: 2", "repeat: 0", "0"),
        ("repeat: 2", "repeat: 60k", "requests an iteration"),
        (
            "group: look, steps: [{name: item",
            "group: basket, steps: [{name: item",
            "group 'basket' stands twice",
        ),
        ("{name: total, get: /basket}", "{name: total}", "a step without a request"),
        ("{name: total, get: /basket}", "{group: g, steps: []}", "the list is empty"),
        ("{name: total, get: /basket}", "{group: g}", "group without steps"),
        ("{name: total, get: /basket}", "{group: g, steps: [{get: /}]}", "a step without a name"),
        ("{name: total, get: /basket}", "{name: item, get: /}", "step 'item' stands twice"),
        ("{name: total, get: /basket}", "{group: g, get: /, steps: [{name: t, get: /}]}", "unknown key"),
    ],
)
def test_a_fault_in_a_group_has_its_line_and_key(tmp_path: Path, old: str, new: str, part: str) -> None:
    (tmp_path / "study.yaml").write_text(NESTED.replace(old, new))

    with pytest.raises(DefinitionErrors) as refused:
        plan.plan(parse.read(tmp_path))

    fault = next(fault for fault in refused.value.faults if part in fault.message)
    assert re.match(r"study.yaml:\d+ scenarios.shop\[1\]", str(fault.where).rsplit("/", 1)[-1]) or (
        part == "requests an iteration"
    ), fault.where


# ------------------------------------------------------------------------------------------------ stacks


def sampled(study: Study) -> list[str]:
    return [case.slug for case in study.cases if case.purpose == "stacks"]


def test_stacks_are_sampled_at_the_lightest_and_the_highest_level_of_each_curve_and_in_no_figure(
    tmp_path: Path,
) -> None:
    factors = "factors: {users: [4, 1, 9], workers: [1, 2]}"
    study = planned(
        tmp_path, f"  e: {{mix: buy, stacks: on, load: {{users: $users, duration: 9s}}, {factors}}}\n"
    )

    assert sampled(study) == [
        f"stacks-e-users-{users}-workers-{workers}" for workers in (1, 2) for users in (1, 9)
    ]
    (case, *_) = (case for case in study.cases if case.purpose == "stacks")
    assert (case.trials, case.probes, case.experiment) == (1, (), "e")
    assert case.workload == Closed(users=1)
    assert case.duration_ns == 3 * S
    assert len(study.cases) == 6 + 4


def test_stacks_are_off_unless_asked_for_and_an_experiment_may_turn_them_off(tmp_path: Path) -> None:
    load = "load: {users: $users, duration: 9s}"
    experiments = f"  a: {{mix: look, {load}}}\n  b: {{mix: look, stacks: off, {load}}}\n"

    assert sampled(planned(tmp_path, experiments)) == []
    assert sampled(planned(tmp_path, f"{experiments}stacks: on\n")) == ["stacks-a"]


def test_a_load_that_ends_by_a_number_is_sampled_for_a_time(tmp_path: Path) -> None:
    study = planned(tmp_path, "  e: {mix: look, stacks: on, load: {users: $users, requests: 30}}\n")

    (case,) = (case for case in study.cases if case.purpose == "stacks")
    assert (case.workload.requests, case.duration_ns) == (None, 3 * S)


def test_trials_that_sample_stacks_come_after_those_that_give_figures_and_before_held_out_ones(
    tmp_path: Path,
) -> None:
    study = planned(
        tmp_path, LADDER.replace("}}", "}, hold_out: {workers: [2]}}").replace("1, 5]", "1]") + "stacks: on\n"
    )

    order = [(trial.case.purpose, trial.case.held_out) for trial in plan.order(study)]

    assert order == [("load", False)] * 3 + [("stacks", False)] + [("load", True)] * 3


@pytest.mark.parametrize(
    "load", ["stages: [9s:5], users: $users", "users: $users, driver: wrk, duration: 9s"]
)
def test_stacks_under_a_load_that_changes_or_of_another_program_are_refused(
    tmp_path: Path, load: str
) -> None:
    with pytest.raises(DefinitionErrors, match="e: stacks are sampled under a steady load of our engine"):
        planned(tmp_path, f"  e: {{mix: look, stacks: on, load: {{{load}}}}}\n")
