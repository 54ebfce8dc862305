"""Requests take longer the more of them were answered.

**Means.** The service does more for each request than for the one before: a table without an index to which
every request adds, a list that is searched, a log that is read again. The cost per request keeps growing.

**Needs.** One level of load that was measured twice in one life of the service, with other levels or a pause
in between: the median is 10 % higher the second time, with its interval. Times rise within trials as well: in
more trials than they fall, in a quarter of the trials with at least 150 requests (by more than chance at 1 %,
and by 3 %), or in two where the median has grown by half, and they fall in none. The rises are in proportion
to the requests of each trial, not to its length. Or else the median has doubled, and every level that was
measured again gave less each time, in an order that chance makes in fewer than 5 % of the cases; with the
median doubled alone it is suspected, where times fall in fewer trials than they rise in. Requests that met a
pause are left out. Only closed loads count, since under an open load above the capacity waits grow by
themselves.

**Ruled out by.** Trials in which times fall: a cold start, after which the same load cannot take twice as
long. Rises in proportion to time alone. Other programs that used the machine meanwhile. Memory that grows
with the requests is reported separately.

**Thresholds.** 10 %: repeated runs differ by less. 3 % within a trial: the least that a few hundred requests
can show. With one trial per level the finding is at most probable: the interval of the change covers the
variation within its two trials, not between runs. Four trials whose numbers of requests differ by a factor of
four distinguish requests from time.

**Do.** Look for data to which every request adds and that every request reads: add an index, a bound, or a
retention period.

**Confirm.** The initial data set brings back the first times; a restart alone does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.curve_signals import BY_CHANCE, by_chance, gives_less_each_time
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.model.shapes import Slowdown
from loadlens.present import numbers
from loadlens.present.words import plural

ID = "drift.data-growth"
TITLE = "requests take longer the more were answered"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "noise.between-runs", "steady.none")

LEAST_CHANGE = 1.10
BY_HALF = 1.5
DOUBLED = 2.0  # only from here on does it explain others
RISING_SHARE = 0.25
RISING_ALONE = 0.5  # where no level was measured twice
FEWEST_RISING = 2


def observe(facts: Facts) -> Sequence[tuple[Curve, Slowdown]] | Lacking:
    """Return the classes of closed curves, the one that slowed down most first."""
    drifts = [(curve, slow) for curve in facts.curves for slow in curve.slowdowns]
    if not drifts:
        return Lacking("needs a closed load and every request of a trial in its log")
    drifts = [drift for drift in drifts if drift[1].trials or isinstance(drift[1].change, Estimate)]
    if not drifts:
        return Lacking("needs trials of 150 requests, or a level that is measured twice")
    return sorted(drifts, key=lambda drift: -figures.point(drift[1].change))


def claim(facts: Facts, drift: tuple[Curve, Slowdown]) -> Claim | Nothing:
    """Check that times rise from level to level, within trials, and with the requests."""
    (curve, slow), change = drift, drift[1].change
    if not slow.rising and not isinstance(change, Estimate):
        return Nothing("times rise in no trial")
    text, more = "no level measured twice", ""
    if isinstance(change, Estimate):
        at = "" if slow.load is None else f" at {slow.load:g} users"
        later = f"{slow.requests:,} requests and {slow.seconds:.0f} s later"
        text = f"median{at} {numbers.shown(change)} times the first, {later} (limit {LEAST_CHANGE:g})"
        more = numbers.signed_percent(change.point - 1)
        if _has_doubled(slow):
            more = f"{numbers.about(change.point)} times as long"
    signals = [
        grading.at_least(
            "drift.change", change, LEAST_CHANGE, text=text, chip=f"{more} at one level" if more else ""
        ),
        *_order(curve, slow),
    ]

    def words(grade: Grade) -> Words:
        soon = "" if slow.doubling is None else f" (twice the time after {slow.doubling:,.0f} requests)"
        statement = (
            f"{slow.request} takes longer the later it comes, in {slow.rising} of {slow.trials} trials"
        )
        explanation, impact = "Times rise within trials at one level of load.", 0.1
        if isinstance(change, Estimate):
            statement = f"{slow.request} takes {more} after {slow.requests:,} requests"
            explanation = (
                "The same load took longer when it came again, in step with what was answered before."
            )
            impact = 1 - 1 / change.point if change.point > 1 else impact
        return Words(
            statement=statement,
            explanation=explanation,
            advice=f"Look for what each request adds to and each one reads{soon}: index it, bound it, or "
            "expire it; or for what requests take and do not give back.",
            confirm="the data set of the beginning brings the first times back; a restart alone does not",
            impact=impact,
            scope=f"{slow.label} · {curve.label}",
        )

    cap = Grade.STRONG if slow.rising > 2 else Grade.PROBABLE
    rivals = _rivals(facts, curve, slow)
    return on_curve(curve, signals, rivals, words, cap=cap, explains_others=_has_doubled(slow))


def _order(curve: Curve, slow: Slowdown) -> list[grading.Signal]:
    """Require that times rise with the requests: within trials, or from each trial of a level to the next."""
    repeated = [step for step in curve.steps if len(step.throughput_trials) > 1]
    chance = by_chance(repeated)
    if _has_doubled(slow) and chance < BY_CHANCE and all(map(gives_less_each_time, repeated)):
        example = max((step.throughput_trials for step in repeated), key=lambda rates: rates[0] / rates[-1])
        rates = ", ".join(numbers.with_unit(rate, "1/s") for rate in example)
        text = f"{plural(len(repeated), 'repeated level')} gave less each time, one {rates} "
        text += f"(by chance {numbers.percent(chance)}, limit {numbers.percent(BY_CHANCE)})"
        return [grading.stated("drift.repeats", True, text=text, chip="less each time")]
    rises = f"times rise in {slow.rising} of {slow.trials} trials and fall in {slow.falling}"
    least = RISING_SHARE if isinstance(slow.change, Estimate) else RISING_ALONE
    if _has_grown(slow, BY_HALF) and not slow.falling:
        least = 0.0  # what grew by half over all trials need not show within each
    is_rising: bool | None = slow.rising >= max(FEWEST_RISING, least * slow.trials)
    if is_rising and slow.falling:
        is_rising = None if _has_doubled(slow) and slow.rising > slow.falling else False
    within = grading.stated(
        "drift.within",
        is_rising if slow.trials else None,
        text=rises if slow.trials else "no trial has 150 requests for a trend within it",
        chip=f"rises in {slow.rising} of {slow.trials} trials",
    )
    return [within, _follows(slow)]


def _has_doubled(slow: Slowdown) -> bool:
    return _has_grown(slow, DOUBLED)


def _has_grown(slow: Slowdown, times: float) -> bool:
    change = slow.change
    return isinstance(change, Estimate) and change.low is not None and change.low >= times


def _follows(slow: Slowdown) -> grading.Signal:
    text = f"rises within trials are in proportion to the {slow.follows} of each"
    if slow.follows == "unknown":
        text = "whether it follows the requests or the clock is not known: all trials have as many requests"
    return grading.stated(
        "drift.requests",
        None if slow.follows == "unknown" else slow.follows == "requests",
        text=text,
        chip="in step with requests" if slow.follows == "requests" else "",
    )


def _rivals(facts: Facts, curve: Curve, slow: Slowdown) -> list[Counter]:
    here = next((step for step in curve.steps if step.load == slow.load), curve.steps[-1])
    # The look with dense probes counts as its level: then the second time had more load next to it.
    has_dense = any(look.load == slow.load for look in facts.dense)
    more_load = "as many users, perhaps more probes the second time"
    return [
        grading.rival(
            "cold start", f"times fall in {slow.falling} trials", slow.falling == 0 or _has_doubled(slow)
        ),
        grading.rival(
            "more load",
            more_load if has_dense else "the same level is compared with itself",
            None if has_dense else True,
        ),
        grading.rival("standstills", "requests that met one were left out", True),
        grading.interference_rival(here, facts.cores),
    ]


def _silence(facts: Facts, drifts: Sequence[tuple[Curve, Slowdown]]) -> str:
    most, parts = drifts[0][1], list[str]()
    if isinstance(most.change, Estimate):
        at = f"{most.load:g} users" if most.load is not None else "one level"
        parts.append(
            f"median at {at} {numbers.shown(most.change)} times the first, {most.requests:,} requests later"
        )
    parts.append(f"times rise in {most.rising} of {most.trials} trials and fall in {most.falling}")
    if most.follows == "clock":
        parts.append("in proportion to time, not to requests")
    least = numbers.with_unit(LEAST_CHANGE - 1, "share")
    return f"{'; '.join(parts)}; less than {least} was not assessed"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
