"""The catalogue is whole: families enough, twins that lack the flaw and nothing else, labels of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from catalogue.claims import CLAIMS
from catalogue.families import FAMILIES
from catalogue.family import ABOUT_THE_MEASUREMENT, LIMITS_OF_THE_MACHINE, Specimen
from catalogue.rows import FIRST_SEED, mixed, tasks

from loadlens import diagnose
from loadlens.whatif.remedies import ARITHMETIC, TREATMENTS

SEEDS = (1, 2, 3, 10_001)
RULE = re.compile(r"^[a-z]+\.[a-z_-]+$|^no-finding\.healthy$")


def specimens(name: str) -> Iterator[Specimen]:
    for seed in SEEDS:
        drawn = FAMILIES[name].drawn(seed)
        yield drawn.flawed
        if drawn.twin is not None:
            yield drawn.twin


def leaves(value: Any, at: str = "") -> dict[str, Any]:
    """Every value of nested settings by its path."""
    if isinstance(value, Mapping):
        return {
            path: leaf for key, item in value.items() for path, leaf in leaves(item, f"{at}.{key}").items()
        }
    if isinstance(value, (list, tuple)):
        return {
            path: leaf for n, item in enumerate(value) for path, leaf in leaves(item, f"{at}[{n}]").items()
        }
    return {at: value}


def test_there_are_enough_families_of_each_kind() -> None:
    kinds = [family.kind for family in FAMILIES.values()]

    assert kinds.count("flaw") >= 35
    assert kinds.count("healthy") >= 4
    assert kinds.count("decoy") >= 4
    assert kinds.count("composite") >= 6


@pytest.mark.parametrize("name", FAMILIES)
def test_a_seed_draws_the_same_again_and_another_seed_does_not(name: str) -> None:
    family = FAMILIES[name]

    assert family.drawn(5) == family.drawn(5)
    assert len({json.dumps(family.drawn(seed).flawed.setup.servers) for seed in range(5)}) == 5


@pytest.mark.parametrize("name", FAMILIES)
def test_what_has_a_flaw_has_a_twin_and_a_need_and_what_is_healthy_has_neither(name: str) -> None:
    family = FAMILIES[name]
    drawn = family.drawn(1)

    is_flawed = family.kind in ("flaw", "composite")
    assert (drawn.twin is not None) == is_flawed
    assert bool(drawn.flawed.label.needs) or not is_flawed
    assert not drawn.flawed.label.needs or family.kind != "healthy"


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.drawn(1).twin])
def test_a_twin_differs_in_little(name: str) -> None:
    for seed in SEEDS:
        drawn = FAMILIES[name].drawn(seed)
        assert drawn.twin is not None
        flawed, twin = leaves(drawn.flawed.setup.servers), leaves(drawn.twin.setup.servers)
        about = drawn.flawed.setup, drawn.twin.setup

        changed = {key for key in flawed.keys() & twin.keys() if flawed[key] != twin[key]}
        assert (
            flawed != twin or about[0].front != about[1].front or about[0].environment != about[1].environment
        )
        assert len(changed) <= 6, (seed, changed)  # one operation with its values, where operations shift
        assert flawed["[0].seed"] == twin["[0].seed"]


@pytest.mark.parametrize("name", FAMILIES)
def test_labels_name_rules_and_what_a_twin_lacks_is_needed_of_the_flawed(name: str) -> None:
    for specimen in specimens(name):
        assert all(RULE.match(rule) for rule in specimen.label.true), specimen.label.true
    drawn = FAMILIES[name].drawn(1)
    if drawn.twin is not None:
        gone = [need for need in drawn.flawed.label.needs if need not in drawn.twin.label.needs]
        assert gone, "the twin needs all that the specimen needs"
        needed_of_twin = {rule for need in drawn.twin.label.needs for rule in need.all_rules}
        assert not (gone[0].all_rules & needed_of_twin), "the flaw is needed of the twin"


@pytest.mark.parametrize("name", FAMILIES)
def test_look_alikes_are_families_with_another_cause(name: str) -> None:
    own = FAMILIES[name].drawn(1).flawed.label.needs

    for other in FAMILIES[name].looks_like:
        needs = FAMILIES[other].drawn(1).flawed.label.needs
        assert needs != own, f"{name} and {other} need the same"


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.fix])
def test_a_fix_brings_more_and_some_needed_rule_may_advise_it(name: str) -> None:
    fix = FAMILIES[name].fix
    assert fix is not None

    for seed in SEEDS:
        drawn = FAMILIES[name].drawn(seed)
        fixed = drawn.repaired or drawn.twin
        assert fixed is not None
        before, after = drawn.flawed.capacity_per_s, fixed.capacity_per_s
        assert after is not None, "nothing to hold a prediction against"
        assert before is None or after > 1.02 * before, "the fix brings nothing"
        assert set(fix.rules) <= drawn.flawed.label.needed


def test_every_rule_whose_fix_is_known_says_what_it_brings() -> None:
    rules = {rule for family in FAMILIES.values() if family.fix for rule in family.fix.rules}

    assert rules <= TREATMENTS.keys() | ARITHMETIC.keys()


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.drawn(1).repaired])
def test_a_repaired_service_still_has_the_flaw_and_differs_in_the_remedy_alone(name: str) -> None:
    assert FAMILIES[name].fix is not None
    for seed in SEEDS:
        drawn = FAMILIES[name].drawn(seed)
        assert drawn.repaired is not None
        flawed, repaired = leaves(drawn.flawed.setup.servers), leaves(drawn.repaired.setup.servers)
        before, after = drawn.flawed.capacity_per_s, drawn.repaired.capacity_per_s
        assert before is not None
        assert after is not None

        assert drawn.repaired.label == drawn.flawed.label
        assert len({key for key in flawed.keys() & repaired.keys() if flawed[key] != repaired[key]}) <= 1
        assert after == pytest.approx(2 * before) or name == "quota"  # which has one processor at most


@pytest.mark.parametrize("name", FAMILIES)
def test_numbers_are_above_nothing(name: str) -> None:
    for specimen in specimens(name):
        for what, number in specimen.numbers.items():
            assert number.value > 0, what


def test_more_severity_is_graver() -> None:
    mild, grave = (FAMILIES["slow-path"].drawn(3, severity).flawed for severity in (0.0, 1.0))

    assert mild.numbers["weight"].value == 0.02
    assert grave.numbers["weight"].value == 0.2
    assert mild.numbers["shift"] == grave.numbers["shift"]


# What is never asked for and may be found: it needs one service in several sizes, where a diagnosis sees one;
# it says again what a need says; or it comes from the output of other programs.
ALLOWED_ALONE: Final = frozenset({"scaling.workers", "hol.correlation", "failure.misclassified"})
# Rules on spans: their specimens need a package of their own, and are in tests/end_to_end/test_spans.py.
OF_SPANS: Final = frozenset({"calls.one-by-one", "calls.wait-before", "downstream.slow"})
# Seen in frames or counters of a language's runtime alone; services in `catalogue/wild` have them.
OF_RUNTIMES: Final = frozenset({"eventloop.waits", "gc.stops"})
# Of what the families' server does not do; services in `catalogue/wild` do.
OF_THE_WILD: Final = frozenset(
    {
        "cache.misses",
        "calls.at-once",
        "descriptors.exhausted",
        "downstream.full",
        "drift.handles",
        "places.lost",
        "processes.ended",
        "retry.calls",
        "slow.periodic",
        "tcp.calls-held",
    }
)
# Of several machines that make a load; the families have one.
OF_FLEETS: Final = frozenset({"node.limit", "node.slow-one", "paths.differ"})
# What no service here shows, because our own engine loses and misplaces nothing: found, it is false.
NEVER_TRUE: Final = frozenset({"little.violation", "accounting.deficit"})


def test_every_rule_that_exists_has_a_specimen() -> None:
    needed = {
        rule
        for name in FAMILIES
        for specimen in specimens(name)
        for need in specimen.label.needs
        for rule in need.all_rules
    }

    unlabelled = {rule.ID for rule in diagnose.PAGES} - needed - LIMITS_OF_THE_MACHINE - ABOUT_THE_MEASUREMENT
    assert unlabelled <= ALLOWED_ALONE | NEVER_TRUE | OF_SPANS | OF_RUNTIMES | OF_FLEETS | OF_THE_WILD, (
        "a rule is written after its specimen"
    )
    allowed = {rule for name in FAMILIES for specimen in specimens(name) for rule in specimen.label.allowed}
    assert allowed >= ALLOWED_ALONE
    assert not NEVER_TRUE & (allowed | needed)


def test_claims_are_of_numbers_that_some_family_knows_and_rules_that_some_family_needs() -> None:
    numbers = {what for name in FAMILIES for specimen in specimens(name) for what in specimen.numbers}
    rules = {rule for name in FAMILIES for specimen in specimens(name) for rule in specimen.label.true}

    assert set(CLAIMS) <= numbers
    assert {rule for places in CLAIMS.values() for rule, _ in places} <= rules


def test_hold_out_seeds_are_never_development_seeds() -> None:
    most = FIRST_SEED["hold-out"] - FIRST_SEED["development"]

    seeds = {
        split: {task.seed for task in tasks(["db-lock"], split, 40, "C", 30.0, twins=True)}
        for split in FIRST_SEED
    }

    assert most >= 10_000
    assert seeds["development"] & seeds["hold-out"] == set()
    assert len(seeds["hold-out"]) == 40


def test_a_run_that_ends_early_has_seen_every_family() -> None:
    listed = list(tasks(["healthy-threads", "db-lock"], "development", 2, "A", 30.0, twins=True))

    assert [(task.family, task.seed, task.side) for task in listed] == [
        ("healthy-threads", 1, "flawed"),
        ("db-lock", 1, "flawed"),
        ("db-lock", 1, "twin"),
        ("db-lock", 1, "repaired"),
        ("healthy-threads", 2, "flawed"),
        ("db-lock", 2, "flawed"),
        ("db-lock", 2, "twin"),
        ("db-lock", 2, "repaired"),
    ]


def test_an_hour_of_it_has_seen_some_of_each_kind() -> None:
    kinds = [FAMILIES[name].kind for name in mixed(list(FAMILIES))]

    assert sorted(mixed(list(FAMILIES))) == sorted(FAMILIES)
    for kind in set(kinds):
        of_first_half = kinds[: len(kinds) // 2].count(kind)
        assert abs(of_first_half - kinds.count(kind) / 2) <= 1, kind


def test_kinds_are_spread_evenly_and_keep_their_order() -> None:
    # Four flaws stand at 1/8, 3/8, 5/8, 7/8; two healthy ones at 1/4 and 3/4.
    names = ["healthy-threads", "healthy-loop", "db-lock", "db-pool", "leak", "pauses"]

    assert mixed(names) == ["db-lock", "healthy-threads", "db-pool", "leak", "healthy-loop", "pauses"]
