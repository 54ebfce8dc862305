"""Findings: one file each, whose docstring is its page in the reference. A rule sees Facts and nothing else.

A new rule is a new file with ID, TITLE, EXPLAINS and `assess`, one line in `RULES`, and fixtures: one record
where it fires and one near miss where it stays silent. A rule that needs the answers of others has
`assess_after` instead and is listed in `AFTER`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol

from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.notes import NOTES, OF_THE_HOST

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


def _modules(*names: str) -> tuple[Any, ...]:
    return tuple(import_module(f"loadlens.diagnose.rules.{name}") for name in names)


RULES: tuple[Rule, ...] = _modules(
    "measurement.gen_bottleneck",
    "fleet.node_limit",
    "fleet.paths_differ",
    "fleet.node_slow_one",
    "capacity_limits.retrograde_throughput",
    "measurement.load_underdriven",
    "processor.colocation_contention",
    "processor.host_interference",
    "measurement.warmup_incomplete",
    "measurement.little_violation",
    "measurement.accounting_excess",
    "measurement.accounting_deficit",
    "measurement.accounting_explained",
    "measurement.failure_misclassified",
    "measurement.co_omission",
    "measurement.steady_none",
    "measurement.noise_between_runs",
    "measurement.quantile_boundary",
    "measurement.quantile_insufficient",
    "capacity_limits.saturation_plateau",
    "processor.eventloop_blocked",
    "waiting.eventloop_waits",
    "waiting.db_lock",
    "waiting.db_lock_timeouts",
    "waiting.db_pool_timeouts",
    "waiting.places_lost",
    "processor.cgroup_throttled",
    "network.http_keepalive_limit",
    "network.http_no_reuse",
    "overload.ratelimit_active",
    "overload.requests_in_flight_limit",
    "overload.shed_overload",
    "network.ports_exhausted",
    "overload.descriptors_exhausted",
    "overload.processes_ended",
    "network.fairness_starvation",
    "overload.answers_changed",
    "overload.timeouts_cliff",
    "overload.requests_stuck",
    "overload.retry_amplification",
    "overload.retry_calls",
    "replicas.lb_imbalance",
    "replicas.backend_slow_one",
    "replicas.part_full",
    "memory_and_disk.disk_bound",
    "memory_and_disk.memory_pressure",
    "memory_and_disk.gc_stops",
    "memory_and_disk.logging_per_request",
    "network.network_bound",
    "processor.scaling_workers",
    "latency.pause_periodic",
    "latency.slow_periodic",
    "memory_and_disk.drift_leak",
    "memory_and_disk.drift_handles",
    "memory_and_disk.drift_data_growth",
    "network.tcp_timer_mode",
    "network.tcp_calls_held",
    "waiting.db_pool",
    "waiting.downstream_full",
    "waiting.threads_pool_limit",
    "waiting.outside_handler_wait",
    "waiting.cache_misses",
    "waiting.calls_at_once",
    "waiting.calls_wait_before",
    "waiting.downstream_slow",
    "latency.calls_one_by_one",
)
AFTER: tuple[LaterRule, ...] = _modules(  # in this order; the last one looks at all others
    "processor.loop_multipass",
    "processor.hol_correlation",
    "processor.cpu_saturated",
    "processor.cpu_one_core",
    "network.accept_drops",
    "latency.pause_aperiodic",
    "latency.mixture_slow_path",
    "waiting.downstream_serialised",
    "capacity_limits.healthy",
)
HEALTHY = AFTER[-1].ID
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
    is_named = any(_names_a_limit(finding) for finding in findings)
    return Verdict(
        tuple(sorted(findings, key=lambda finding: _place(finding, is_named=is_named))),
        tuple(answer for answer in answers if isinstance(answer, Absent)),
        tuple(answer for answer in answers if isinstance(answer, NotAssessed)),
    )


def _names_a_limit(finding: Finding) -> bool:
    """Return whether a finding shows something about the service itself that no other explains."""
    is_about_service = finding.rule not in NOTES | OF_THE_HOST | {HEALTHY}
    return is_about_service and finding.explained_by is None and finding.grade >= Grade.PROBABLE


def limits_of(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings that no other explains and that say more than how far figures go."""
    return [f for f in findings if f.explained_by is None and f.rule not in NOTES]


def root_of(findings: Sequence[Finding]) -> Finding | None:
    """Return the weightiest finding of a limit that no other explains, if it is at least probable."""
    return next((f for f in limits_of(findings) if f.grade >= Grade.PROBABLE), None)


def _place(finding: Finding, *, is_named: bool) -> tuple[bool, bool, bool, float, int]:
    """Order causes first, then what they explain, then notes; each by what is at stake where it is worst.

    Where a limit of the service is named, what other programs took of the machine comes after it.

    The number of cases has no weight: it is the study's choice, and cases without a fault make the one at
    fault no better. The scope says where a finding holds.
    """
    is_folded = finding.explained_by is not None
    yields = is_named and finding.rule in OF_THE_HOST
    return finding.rule in NOTES, is_folded, yields, -round(finding.impact, 2), -finding.grade


def fold(findings: list[Finding]) -> list[Finding]:
    """Mark each finding that another one explains on at least one curve, the weightier cause first.

    A finding that is itself a cause of others is not folded if it holds on a curve on which the other does
    not. Only a suspicion is folded under a suspicion: it must not hide what was shown. What a rule folded
    itself stays where it is, and explains only what nothing else does.
    """
    explains = {page.ID: page.EXPLAINS for page in PAGES}
    able = [f for f in findings if f.explains_others]
    causes = sorted(able, key=lambda f: (f.explained_by is not None, -f.grade, -f.impact))
    folded = []
    for finding in findings:
        cause = next(
            (
                f.rule
                for f in causes
                if finding.rule in explains.get(f.rule, ())
                and finding.rule != f.explained_by
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
