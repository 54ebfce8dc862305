"""Properties of all rules together: order, folding, and blindness for names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.capacity_limits import saturation_plateau
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.model.facts import Curve, Gate
from loadlens.model.finding import Finding, Grade, NotAssessed
from loadlens.model.notes import NOTES, OF_THE_HOST
from loadlens.model.quality import Quality, QuantileWatch
from tests.unit.diagnose.build import (
    LOCKED,
    blocked,
    curve,
    estimate,
    facts,
    failing,
    process,
    step,
)


def healthy_curve() -> Curve:
    steps = [step(n, n / 1.01, 0.01, processes=(process(0.005 * n),)) for n in (1, 2, 4)]
    return curve(*steps, think=1.0, work=estimate(0.005))


def test_a_plateau_that_a_blocked_loop_explains_is_folded_under_it() -> None:
    verdict = diagnose.assess(facts(blocked(0.2)))

    assert [f.rule for f in verdict.findings] == ["eventloop.blocked", "saturation.plateau"]
    assert verdict.findings[1].explained_by == "eventloop.blocked"


def test_a_plateau_on_another_curve_stands_on_its_own() -> None:
    other = replace(blocked(0.2, probes=()), label="other")
    quiet = replace(blocked(0.2), label="k=1")

    folded = diagnose.fold(
        [
            f
            for rule in (eventloop_blocked, saturation_plateau)
            if isinstance(f := rule.assess(facts(quiet)), Finding)
        ]
    )
    apart = replace(folded[1], curves=(other.label,), explained_by=None)

    assert diagnose.fold([folded[0], apart])[1].explained_by is None


@pytest.mark.parametrize(
    ("cause", "effect", "explained_by"),
    [
        (Grade.SUSPECTED, Grade.PROBABLE, None),
        (Grade.SUSPECTED, Grade.SUSPECTED, "gen.bottleneck"),
        (Grade.PROBABLE, Grade.STRONG, "gen.bottleneck"),
    ],
)
def test_a_suspicion_hides_no_cause_that_was_shown(
    cause: Grade, effect: Grade, explained_by: str | None
) -> None:
    over = Finding("gen.bottleneck", cause, 1.0, "k=1", "1 late", "", (), (), "", "", curves=("k=1",))
    under = replace(over, rule="eventloop.blocked", grade=effect)

    assert diagnose.fold([over, under])[1].explained_by == explained_by


@pytest.mark.parametrize(("explains", "explained_by"), [(True, "gen.bottleneck"), (False, None)])
def test_what_explains_nothing_folds_nothing(explains: bool, explained_by: str | None) -> None:
    over = Finding("gen.bottleneck", Grade.STRONG, 1.0, "k=1", "1 late", "", (), (), "", "", curves=("k=1",))
    under = replace(over, rule="saturation.plateau")

    folded = diagnose.fold([replace(over, explains_others=explains), under])

    assert folded[1].explained_by == explained_by


@pytest.mark.parametrize(
    ("cause", "explained_by"), [(Grade.SUSPECTED, None), (Grade.PROBABLE, "gen.bottleneck")]
)
def test_a_plateau_that_was_shown_stands_beside_a_suspicion(cause: Grade, explained_by: str | None) -> None:
    over = Finding("gen.bottleneck", cause, 1.0, "k=1", "1 late", "", (), (), "", "", curves=("k=1",))
    under = replace(over, rule="saturation.plateau", grade=Grade.PROBABLE)

    assert diagnose.fold([over, under])[1].explained_by == explained_by


def test_a_quiet_service_is_healthy_with_its_headroom() -> None:
    gates = (Gate("generator", True, "kept up"), Gate("counting", True, "all counted"))

    verdict = diagnose.assess(facts(healthy_curve(), gates=gates))

    assert [f.rule for f in verdict.findings] == ["no-finding.healthy", "load.underdriven"]
    assert "Underdriven: nothing limits" in verdict.findings[0].statement
    assert "100 % of the CPU is left" in verdict.findings[0].statement  # 0.02 of 4 cores
    assert any(isinstance(other, NotAssessed) for other in verdict.not_assessed)


def test_a_failed_gate_is_not_called_healthy() -> None:
    verdict = diagnose.assess(facts(healthy_curve(), gates=(Gate("little", False, "broken"),)))

    assert [f.rule for f in verdict.findings] == ["load.underdriven"]


def test_notes_come_last_however_weighty() -> None:
    few = QuantileWatch(0.99, estimate(0.1), 4.0, None, None, 0.005)
    built = blocked(0.2)
    steps = tuple(replace(level, quality=Quality(quantiles=(few,))) for level in built.steps)

    verdict = diagnose.assess(facts(replace(built, steps=steps)))

    assert [f.rule for f in verdict.findings] == [
        "eventloop.blocked",
        "saturation.plateau",  # explained
        "quantile.insufficient",
    ]


@pytest.mark.parametrize("trials", [1, 3])
def test_a_noisy_machine_is_a_caveat_next_to_what_is_known_of_the_service(trials: int) -> None:
    """Other machines take 30 % of the time of every level, which weighs more than the loop alone would."""
    built = blocked(0.2, trials=trials)
    noisy = replace(built, steps=tuple(replace(level, steal=0.3, steal_mean=0.3) for level in built.steps))
    quiet_service = replace(
        healthy_curve(), steps=tuple(replace(s, steal=0.3, steal_mean=0.3) for s in healthy_curve().steps)
    )

    alone = diagnose.assess(facts(quiet_service)).findings

    rules = [f.rule for f in diagnose.assess(facts(noisy)).findings if f.explained_by is None]
    assert rules[:2] == ["eventloop.blocked", "host.interference"]
    assert alone[0].rule == "host.interference"


def test_notes_are_rules_that_exist() -> None:
    assert {page.ID for page in diagnose.PAGES} >= NOTES | OF_THE_HOST | {diagnose.HEALTHY}


def _renamed(built: Curve) -> Curve:
    """The same curve under other names everywhere."""
    steps = tuple(
        replace(
            level,
            label="Schritt",
            classes=tuple(replace(c, label="ж", request="PUT /ж") for c in level.classes),
            probes=tuple(replace(p, label="ü", request="HEAD /ü") for p in level.probes),
            processes=tuple(replace(p, label="x") for p in level.processes),
            failures=tuple(replace(m, label="ж") for m in level.failures),
        )
        for level in built.steps
    )
    return replace(built, label="Fall", anchor="bild", costliest="ж", steps=steps)


@pytest.mark.parametrize(
    "built",
    [
        blocked(0.2),
        blocked(0.2, k=2, passes=2.0),
        blocked(0.2, processes=(process(0.95, hot=8),)),
        curve(step(1, 4.5, 0.2), replace(failing(0.02, median=5.05), log_signs=(LOCKED,))),
        healthy_curve(),
    ],
)
def test_other_names_give_the_same_findings(built: Curve) -> None:
    before, after = diagnose.assess(facts(built)), diagnose.assess(facts(_renamed(built)))

    assert [(f.rule, f.grade, round(f.impact, 9)) for f in before.findings] == [
        (f.rule, f.grade, round(f.impact, 9)) for f in after.findings
    ]
    assert [a.rule for a in before.absent] == [a.rule for a in after.absent]


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_other_times_give_the_same_findings(scale: float) -> None:
    before = diagnose.assess(facts(blocked(0.2)))
    after = diagnose.assess(facts(blocked(0.2 * scale, think=0.15 * scale)))

    assert [(f.rule, f.grade) for f in before.findings] == [(f.rule, f.grade) for f in after.findings]


@pytest.mark.parametrize("rule", diagnose.PAGES, ids=lambda rule: rule.ID)
def test_every_rule_has_a_page_with_its_evidence_and_thresholds(rule: diagnose.Page) -> None:
    page = rule.__doc__ or ""

    for heading in ("**Means.**", "**Needs.**", "**Ruled out by.**", "**Do.**", "**Confirm.**"):
        assert heading in page


@pytest.mark.parametrize("built", [blocked(0.2), blocked(0.00213, think=0.1), healthy_curve()])
def test_statements_have_at_most_ninety_characters_and_a_number(built: Curve) -> None:
    for finding in diagnose.assess(facts(built)).findings:
        assert len(finding.statement) <= 90
        assert any(character.isdigit() for character in finding.statement)
        assert all(len(e.chip) <= 32 for e in finding.evidence)


def test_no_rule_explains_itself_through_others() -> None:
    explains = {page.ID: page.EXPLAINS for page in diagnose.PAGES}
    assert {effect for effects in explains.values() for effect in effects} <= set(explains)

    def below(rule: str, path: tuple[str, ...] = ()) -> None:
        assert rule not in path, f"{' -> '.join([*path, rule])}"
        for effect in explains[rule]:
            below(effect, (*path, rule))

    for rule in explains:
        below(rule)
