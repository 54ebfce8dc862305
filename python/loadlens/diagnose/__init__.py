"""Findings: one file each, whose docstring is its page in the reference. A rule sees Facts and nothing else.

A new rule is a new file with ID, TITLE, EXPLAINS and `assess`, one line in `RULES`, and fixtures: one record
where it fires and one near miss where it stays silent. A rule that needs the answers of others has
`assess_after` instead and is listed in `AFTER`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from loadlens.diagnose.rules.capacity_limits import (
    healthy,
    retrograde_throughput,
    saturation_plateau,
)
from loadlens.diagnose.rules.latency import (
    mixture_slow_path,
    pause_aperiodic,
    pause_periodic,
)
from loadlens.diagnose.rules.measurement import (
    accounting_deficit,
    accounting_excess,
    accounting_explained,
    co_omission,
    failure_misclassified,
    gen_bottleneck,
    little_violation,
    load_underdriven,
    noise_between_runs,
    quantile_boundary,
    quantile_insufficient,
    steady_none,
    warmup_incomplete,
)
from loadlens.diagnose.rules.memory_and_disk import (
    disk_bound,
    drift_data_growth,
    drift_leak,
    logging_per_request,
    memory_pressure,
)
from loadlens.diagnose.rules.network import (
    accept_drops,
    fairness_starvation,
    http_keepalive_limit,
    http_no_reuse,
    network_bound,
    ports_exhausted,
    tcp_timer_mode,
)
from loadlens.diagnose.rules.overload import (
    ratelimit_active,
    retry_amplification,
    shed_overload,
    timeouts_cliff,
)
from loadlens.diagnose.rules.processor import (
    cgroup_throttled,
    colocation_contention,
    cpu_saturated,
    eventloop_blocked,
    hol_correlation,
    host_interference,
    loop_multipass,
    scaling_workers,
)
from loadlens.diagnose.rules.replicas import backend_slow_one, lb_imbalance
from loadlens.diagnose.rules.waiting import (
    db_lock,
    db_lock_timeouts,
    db_pool,
    downstream_serialised,
    outside_handler_wait,
    threads_pool_limit,
)
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.notes import NOTES

Answer = Finding | Absent | NotAssessed


class Page(Protocol):
    """A file of a rule."""

    __name__: str
    __doc__: str | None
    ID: str
    TITLE: str
    EXPLAINS: tuple[str, ...]  # rules whose findings this one makes appear


class Rule(Page, Protocol):
    """A rule that needs facts alone."""

    def assess(self, facts: Facts) -> Answer: ...


class LaterRule(Page, Protocol):
    """A rule that also needs the answers of the rules before it."""

    def assess_after(self, facts: Facts, others: Sequence[Answer]) -> Answer: ...


RULES: tuple[Rule, ...] = (
    gen_bottleneck,
    retrograde_throughput,
    load_underdriven,
    colocation_contention,
    host_interference,
    warmup_incomplete,
    little_violation,
    accounting_excess,
    accounting_deficit,
    accounting_explained,
    failure_misclassified,
    co_omission,
    steady_none,
    noise_between_runs,
    quantile_boundary,
    quantile_insufficient,
    saturation_plateau,
    eventloop_blocked,
    db_lock,
    db_lock_timeouts,
    cgroup_throttled,
    http_keepalive_limit,
    http_no_reuse,
    ratelimit_active,
    shed_overload,
    accept_drops,
    ports_exhausted,
    fairness_starvation,
    timeouts_cliff,
    retry_amplification,
    lb_imbalance,
    backend_slow_one,
    disk_bound,
    memory_pressure,
    logging_per_request,
    network_bound,
    scaling_workers,
    pause_periodic,
    drift_leak,
    drift_data_growth,
    tcp_timer_mode,
    db_pool,
    threads_pool_limit,
    outside_handler_wait,
)
AFTER: tuple[LaterRule, ...] = (  # in this order; the last one looks at all others
    loop_multipass,
    hol_correlation,
    cpu_saturated,
    pause_aperiodic,
    mixture_slow_path,
    downstream_serialised,
    healthy,
)
PAGES: tuple[Page, ...] = (*RULES, *AFTER)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answers of all rules about a record."""

    findings: tuple[Finding, ...]  # by impact, then grade; then those that another explains; notes come last
    absent: tuple[Absent, ...]
    not_assessed: tuple[NotAssessed, ...]


def assess(facts: Facts) -> Verdict:
    """Apply every rule, fold what another finding explains, and order the rest."""
    answers: list[Answer] = [rule.assess(facts) for rule in RULES]
    for rule in AFTER:
        answers.append(rule.assess_after(facts, answers))
    findings = fold([answer for answer in answers if isinstance(answer, Finding)])
    return Verdict(
        tuple(sorted(findings, key=_place)),
        tuple(answer for answer in answers if isinstance(answer, Absent)),
        tuple(answer for answer in answers if isinstance(answer, NotAssessed)),
    )


def _place(finding: Finding) -> tuple[bool, bool, float, int]:
    """Order causes first, then what they explain, then notes; each by what is at stake where it is worst.

    The number of cases has no weight: it is the study's choice, and cases without a fault make the one at
    fault no better. The scope says where a finding holds.
    """
    is_folded = finding.explained_by is not None
    return finding.rule in NOTES, is_folded, -round(finding.impact, 2), -finding.grade


def fold(findings: list[Finding]) -> list[Finding]:
    """Mark each finding that another one explains on at least one curve, the weightier cause first.

    A finding that is itself a cause of others is not folded if it holds on a curve on which the other does
    not. Only a suspicion is folded under a suspicion: it must not hide what was shown. What a rule folded
    itself stays where it is, and explains nothing.
    """
    explains = {page.ID: page.EXPLAINS for page in PAGES}
    free = [f for f in findings if f.explained_by is None and f.explains_others]
    causes = sorted(free, key=lambda f: (-f.grade, -f.impact))
    folded = []
    for finding in findings:
        cause = next(
            (
                f.rule
                for f in causes
                if finding.rule in explains.get(f.rule, ())
                and f.grade >= min(finding.grade, Grade.PROBABLE)
                and (_covers(f, finding) if explains.get(finding.rule) else _overlap(f, finding))
            ),
            finding.explained_by,
        )
        folded.append(replace(finding, explained_by=cause))
    return folded


def _overlap(cause: Finding, effect: Finding) -> bool:
    # Without curves it holds for the whole record, as what a counter says over all trials.
    return not effect.curves or bool(set(cause.curves) & set(effect.curves))


def _covers(cause: Finding, effect: Finding) -> bool:
    return _overlap(cause, effect) and set(effect.curves) <= set(cause.curves)
