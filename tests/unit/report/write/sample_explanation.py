"""An answer as `explain` gives it, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadlens.model.explanation import Explanation, ProbePaid, Rung, Unknown
from loadlens.model.finding import (
    Absent,
    Counter,
    Estimate,
    Evidence,
    Finding,
    Grade,
    NotAssessed,
    NotMeasured,
    Undecided,
)


def estimate(point: float, unit: str = "s", trials: int = 3) -> Estimate:
    return Estimate("any", unit, point, point * 0.98, point * 1.02, trials, 500, "t on log of trials")


def finding(rule: str = "saturation.plateau", **changes: Any) -> Finding:
    plateau = Finding(
        rule=rule,
        grade=Grade.PROBABLE,
        impact=0.9,
        scope="ladder",
        statement="Throughput stops at 100 /s from 1.2 users on; further users only wait",
        explanation="From 2 to 8 users throughput stays at 100 /s.",
        evidence=(
            Evidence(
                "throughput.gain",
                "the last doubling of users brought +0.3 %",
                "",
                None,
                None,
                None,
                None,
                True,
            ),
            Evidence("response.slope", "each further user adds 10.0 ms", "", None, None, None, None, True),
        ),
        counter=(Counter("generator", "busy 1.1 %", True), Counter("shared cores", "not read", None)),
        advice="Keep at most 1 in flight at once and refuse the rest early: 100 /s stays.",
        confirm="users 1, 1 and 2: throughput equal beyond the knee, R = N / X - Z",
    )
    return replace(plateau, **changes)


def rung(users: float, **changes: Any) -> Rung:
    probe = ProbePaid("GET /ok", estimate(0.01 * users), estimate(0.02 * users), estimate(0.99, "share"), 100)
    one = Rung(
        curve="ladder",
        users=users,
        trials=3,
        throughput=estimate(100.0, "1/s"),
        mean=estimate(users / 100),
        p50=estimate(users / 100),
        p99=Undecided("p99", "s", "12 requests, needs 368"),
        failed=Estimate("failed", "share", 0.0, 0.0, 0.01, 3, 500, "Clopper-Pearson"),
        cpu_cores=1.0,
        probe=probe,
    )
    return replace(one, **changes)


def sample(**changes: Any) -> Explanation:
    made = Explanation(
        target="http://127.0.0.1:8080",
        requests=("GET /work",),
        tier="B",
        sentence="Throughput stops at 100 /s from 1.2 users on; further users only wait (probable).",
        limit="saturation.plateau",
        grade="probable",
        capacity=estimate(100.0, "1/s", trials=7),
        at_least=None,
        knee_users=1.2,
        others="GET /ok takes 80.0 ms (78.4–81.6) at 8 users, 10.0 ms at 1: it waits for the others.",
        time="",
        do="Keep at most 1 in flight at once and refuse the rest early: 100 /s stays.",
        brings="a mean of 20.0 ms (measured at 2 users) in place of 80.0 ms at 8, at the same throughput",
        ladder=tuple(rung(users) for users in (1, 2, 4, 8)),
        findings=(finding(),),
        absent=(Absent("gen.bottleneck", "the generator is the limit", "busy 1.1 %"),),
        not_assessed=(NotAssessed("db.pool", "a full pool", "no gauge of the pool"),),
        unknown=(
            Unknown("what holds the throughput there", "what the service says of its pools: --metrics URL"),
            Unknown("a full pool: no gauge of the pool", ""),
        ),
        cautions=("not looked at: the service does not count its requests",),
        found=("process 4711 (python3 app.py)", "metrics at /metrics (7 metrics)"),
        missing=(),
        stopped_because="saturated",
        stopped_words="the last doubling of the load gave 0 %",
        budget_s=90.0,
        used_s=61.4,
        seed=7,
        record=None,
    )
    return replace(made, **changes)


UNMEASURED = rung(
    16,
    trials=0,
    throughput=NotMeasured("any", "97 of 99 requests came to nothing within a second"),
    mean=NotMeasured("any", "x"),
    p50=NotMeasured("any", "x"),
    p99=NotMeasured("any", "x"),
    failed=Estimate("failed.share", "share", 0.4, None, None, 1, 99, "exact count"),
    cpu_cores=None,
    probe=None,
    ended_early="97 of 99 requests came to nothing within a second",
)
