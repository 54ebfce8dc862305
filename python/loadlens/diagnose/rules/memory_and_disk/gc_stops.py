"""Garbage collection stops the service for much of the time, and more so the higher the load.

**Means.** While the collector has stopped all threads, no request goes on. Where the heap is nearly full,
each collection frees little, so that the next one comes soon: the more requests are in flight and hold
memory, the more of each second the collector takes, and throughput ends where it has taken most of it.

**Needs.** Throughput has reached a plateau. From its first level on, collections stop the service for at
least 10 % of the time, at least twice as much as at the lightest load. And these are no ordinary collections
of young objects: half of the time goes into collections of the whole heap, or at least 90 % of the heap (of a
JVM: of its old generation) stay in use. Where neither is known, each request costs 1.5 times as much
collection as at the lightest load, or half of all time is collection. The time is known of a JVM on this
machine, of Node with `runtime: node`, and of services that export a counter of it.

**Ruled out by.** The service's own computing: where its cores are full and the stops take less than half of
the time, the finding is at most probable. A machine or a quota that holds up the collector makes its stops
longer, and leaves the finding probable, as does a late generator.

**Thresholds.** 10 %: G1 sizes its heap so that collections take less than 8 % (GCTimeRatio 12); beyond it a
ninth more would fit. Twice: a stop of every so many seconds, whatever the load, holds no throughput. Half: a
healthy service spends next to nothing on the whole heap. 90 %: most collectors begin to work at half of that.
1.5 times: requests that cost the same at each load only allocate much, a part of their CPU time. From half of
the time on, the stops explain the plateau and what else looks like a cause.

**Do.** Give the heap more room, or hold less per request and between requests. A service that only the stops
hold back then does at most 1 / (1 - share) times as much.

**Confirm.** Twice the heap: the share of the time falls, and throughput rises by what it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, all_seen, assessing, objecting, on_curve
from loadlens.diagnose.observe import disk_writes
from loadlens.diagnose.observe.curve_signals import plateau_signal
from loadlens.estimate.interval import Insufficient
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, completed, cores_of
from loadlens.measure.thresholds import SATURATED, STOLEN_MATTERS, THROTTLED
from loadlens.model.facts import CollectorWatch, Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers, words
from loadlens.present.numbers import percent, with_unit

ID = "gc.stops"
TITLE = "garbage collection stops the service"
EXPLAINS: tuple[str, ...] = (
    *("saturation.plateau", "retrograde.throughput", "pause.periodic", "pause.aperiodic"),
    *("cpu.saturated", "cpu.one-core", "eventloop.blocked", "downstream.serialised", "mixture.slow-path"),
    *("threads.pool-limit", "outside.handler-wait", "calls.wait-before", "slow.periodic"),
)

STOPPED = 0.10  # of the time
GROWS = 2  # from the lightest load to the plateau
OF_THE_WHOLE = 0.5  # of the time in collections: those of the whole heap
FILLED = 0.90  # of the heap, after collections
DEARER = 1.5  # collection per request, from the lightest load to the plateau
MOSTLY = 0.5  # of the time: then the stops make appear what else looks like a cause


@dataclass(frozen=True, slots=True)
class Stopped:
    """A curve with the collector that stops most where its plateau begins."""

    curve: Curve
    capacity: Capacity
    levels: Sequence[tuple[Step, CollectorWatch]]  # ascending; those at which its time is known
    first: Step  # of the plateau

    @property
    def at_first(self) -> CollectorWatch:
        """The collector at the first level of the plateau."""
        return next(watch for step, watch in self.levels if step is self.first)

    @property
    def at_top(self) -> tuple[Step, CollectorWatch]:
        """The highest level."""
        return self.levels[-1]

    @property
    def lightest(self) -> tuple[Step, CollectorWatch] | None:
        """The lightest level below the plateau; none: none is known."""
        step, watch = self.levels[0]
        return None if step.load >= self.first.load else (step, watch)

    @property
    def share(self) -> float:
        """Share of the time, where the plateau begins."""
        return figures.point(self.at_first.stopped)

    @property
    def of_the_whole(self) -> float | None:
        """Share of it in collections of the whole heap; none: not known apart."""
        full = self.at_first.full
        return full.point / self.share if isinstance(full, Estimate) and self.share > 0 else None

    @property
    def dearer(self) -> float | None:
        """Collection per request over that at the lightest load; none: not known."""
        if self.lightest is None:
            return None
        step, watch = self.lightest
        light, here = figures.point(watch.stopped), completed(self.first)
        if light <= 0 or here <= 0 or completed(step) <= 0:
            return None
        return self.share / here / (light / completed(step))


def observe(facts: Facts) -> Sequence[Stopped] | Lacking:
    """Return every closed curve with a collector whose time is known, the longest first."""
    longest = sorted(facts.curves, key=lambda curve: -len(curve.steps))
    return all_seen(_stopped(curve) for curve in longest)


def _stopped(curve: Curve) -> Stopped | str:
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity.reason
    labels = {watch.label for step in curve.steps for watch in step.collectors}
    observed = []
    for label in sorted(labels):
        levels = [
            (step, watch)
            for step in curve.steps
            for watch in step.collectors
            if watch.label == label and isinstance(watch.stopped, Estimate)
        ]
        plateau = [step for step, _ in levels if step.load >= capacity.saturation.plateau_from]
        if plateau:
            observed.append(Stopped(curve, capacity, levels, plateau[0]))
    if not observed:
        return "for how long a garbage collector stops the service is not known: no JVM, no metric says it"
    return max(observed, key=lambda stopped: stopped.share)


def claim(facts: Facts, seen: Stopped) -> Claim:
    """Hold the time in collections against the load, the heap, and what else lengthens the stops."""
    step, share = seen.first, seen.share
    signals = [
        plateau_signal(seen.capacity.saturation),
        _time(step, seen.at_first, "gc.stopped"),
        *([] if seen.at_top[0] is step else [_time(*seen.at_top, "gc.beyond")]),
        _growth(seen),
        _kind(seen),
    ]
    rivals = [
        _own_work(seen),
        grading.left_open(grading.generator_rival(step)),
        grading.interference_rival(step, facts.cores),
        _stolen(step),
        _quota(step),
    ]

    def texts(_: Grade) -> Words:
        rate = with_unit(seen.capacity.saturation.capacity, "1/s")
        most = with_unit(seen.capacity.saturation.capacity / max(0.01, 1 - share), "1/s")
        pauses = seen.at_first.pauses
        each = ""
        if isinstance(pauses, Estimate) and pauses.point > 0:
            each = f", {with_unit(pauses.point, '1/s')} of {with_unit(share / pauses.point, 's')} each"
        return Words(
            statement=f"Garbage collection stops the service {percent(share)} of the time at {rate}",
            explanation=f"Where the plateau begins, with {words.users(step.load)}, collections stop all its "
            f"work for {percent(share)} of the time{each}.",
            advice=f"{_advice(seen)} That returns up to {percent(share)} of the time: at most {most}.",
            confirm="twice the heap: collections take less of the time, throughput rises by as much",
            impact=share,
        )

    return on_curve(seen.curve, signals, rivals, texts, explains_others=share >= MOSTLY)


def _advice(seen: Stopped) -> str:
    watch, filled = seen.at_first, seen.at_first.filled
    if filled is not None and filled >= FILLED:
        kept, most = disk_writes.size(watch.kept_bytes or 0.0), disk_writes.size(watch.most_bytes or 0.0)
        return f"Give the heap more room ({kept} of {most} stay in use), or hold less per request."
    if (seen.of_the_whole or 0.0) >= OF_THE_WHOLE and filled is not None:
        return (
            f"The whole heap is collected although {percent(1 - filled)} of it is free: look for calls of "
            "the collector, or a young generation that is too small."
        )
    return "Give the heap more room, or allocate and hold less per request."


# --- signals ------------------------------------------------------------------------------------------------


def _time(step: Step, watch: CollectorWatch, signal: str) -> grading.Signal:
    share = percent(figures.point(watch.stopped))
    return grading.at_least(
        signal,
        watch.stopped,
        STOPPED,
        text=f"with {words.users(step.load)} collections stop the service {numbers.shown(watch.stopped)} of "
        f"the time (limit {percent(STOPPED)})",
        chip=f"{share} in collections",
    )


def _growth(seen: Stopped) -> grading.Signal:
    """Require that the load makes the collections."""
    if seen.lightest is None:
        return grading.stated("gc.load", None, text="no lighter load was measured to compare with")
    step, watch = seen.lightest
    light = figures.point(watch.stopped)
    text = f"{percent(light)} with {words.users(step.load)} (limit 1/{GROWS:g} of the former)"
    return grading.stated("gc.load", seen.share >= GROWS * light, text=text)


def _kind(seen: Stopped) -> grading.Signal:
    """Require another sign than time that the heap is short: healthy services have young collections only."""
    filled, whole, dearer = seen.at_first.filled, seen.of_the_whole, seen.dearer
    signs = []
    if filled is not None:
        signs.append(
            (filled >= FILLED, f"{percent(filled)} of its heap stay in use (limit {percent(FILLED)})")
        )
    if whole is not None:
        text = f"{percent(whole)} of that time collects the whole heap (limit {percent(OF_THE_WHOLE)})"
        signs.append((whole >= OF_THE_WHOLE, text))
    if not signs and dearer is not None:
        text = (
            f"a request costs {dearer:.1f} times as much collection as at the lightest load (limit {DEARER})"
        )
        signs.append((dearer >= DEARER, text))
    share = figures.point(seen.at_first.stopped)
    if filled is None and whole is None and share >= MOSTLY:
        signs.append((True, f"{percent(share)} of the time is collection (limit {percent(MOSTLY)})"))
    if not signs:
        return grading.stated("gc.heap", None, text="what its heap holds after a collection is not known")
    passed = [text for is_sign, text in signs if is_sign]
    return grading.stated("gc.heap", bool(passed), text="; ".join(passed or [text for _, text in signs]))


# --- rivals -------------------------------------------------------------------------------------------------


def _own_work(seen: Stopped) -> Counter:
    """Weigh the service's own computing: full cores leave open which of the two ends the throughput."""
    name, step = "CPU of the service", seen.first
    if not step.processes:
        return grading.rival(name, "not read", None)
    cores = cores_of(seen.curve, step)
    text = f"it uses {step.server_cores:.2f} of {cores:g} cores"
    if step.server_cores < SATURATED * cores:
        return grading.rival(name, text, True)
    if seen.share >= MOSTLY:
        return grading.rival(name, f"{text}, the collector's included: requests had less than half", True)
    return grading.rival(name, text, None)


def _stolen(step: Step) -> Counter:
    name = "time taken by other machines"
    if step.stolen is None:
        return grading.rival(name, "not read", None)
    return grading.rival(name, percent(step.stolen), True if step.stolen <= STOLEN_MATTERS else None)


def _quota(step: Step) -> Counter:
    """Weigh a quota: a collector that is throttled stops the service for longer."""
    throttled = [quota.throttled.point for quota in step.quotas if isinstance(quota.throttled, Estimate)]
    if not throttled:
        return grading.rival("CPU quota", "there is none", True if not step.quotas else None)
    most = max(throttled)
    text = f"stopped in {percent(most)} of its periods"
    return grading.rival("CPU quota", text, True if most < THROTTLED else None)


assess = assessing(ID, TITLE, observe, claim, silence=objecting(claim, lambda seen: seen.share))
