"""Something else on the machine took processor time from the service.

**Means.** Another program, or another machine on the same host, used cores that the service wanted. The
figures show what was left, and another day gives other figures.

**Needs.** One of two things. Programs that belong neither to the services nor to Loadlens use 10 % of the
machine's cores or more, without the kernel's soft interrupts, and 10 % or more of those that the service may
use and did not get, while the service's threads wait for a core for 5 % of the time that they run, and for
5 % of the time that requests are under way, or more. Or the hypervisor gave more than 1 % of the machine's
time to others.

**Ruled out by.** Work of other programs that grows with the load: a database or a proxy that the service uses
and that was not named is a part of it. If no other level with a different throughput shows this, they are
suspected at most. Cores of the service's own, where it never waits, or which it uses up itself: its threads
then wait for each other. What was taken only at lighter levels explains no other finding: those are about
the highest load. Nor does it where the service computes, or waits to, for at most 70 % of the cores at the
highest load, no thread of it is full, and less than half of the waiting is for a core: something else makes
it wait.

**Thresholds.** 10 % of the machine: a monitor and a shell stay below, and the kernel's work for the network
belongs to no program. 5 % of waiting moves a response time by as much. 1 % stolen: above it, the CPU time of
a request varies by more than its noise; below 10 % it is suspected, and explains no other finding: so little
makes no plateau. Work of other programs counts as constant when it falls by 20 % while throughput does not,
or when at least half of it does not grow with throughput, compared over a factor of 1.25 or more.

**Do.** Stop the other programs, or give the service cores of its own, and repeat the affected trials. With
its own cores the service does what they support by the CPU time of a request.

**Confirm.** Repeat the lightest and the highest level on an idle machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe import waits
from loadlens.diagnose.observe.curve_signals import waits_signal
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.measure.curve import (
    completed,
    cores_of,
    others_without_load,
    requests_wait,
    used_by_others,
)
from loadlens.measure.thresholds import OTHERS_MATTER, SERVICE_WAITS, STOLEN_MATTERS
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present.numbers import percent

ID = "host.interference"
TITLE = "something else took the machine's time"
EXPLAINS: tuple[str, ...] = ("colocation.contention", "saturation.plateau")

CONSTANT = 0.5  # of the work of others that does not grow with throughput
FALLS_TO = 0.8  # of their work, while throughput does not fall


PROGRAMS, MACHINES = "programs", "machines"  # that took the time: on this machine, on the same host


def observe(facts: Facts) -> Sequence[Level[str]] | Lacking:
    """Return every level of every curve, for each of the two that were watched."""
    programs = levels(facts, lambda step: None if step.other_cores is None else PROGRAMS)
    machines = levels(facts, lambda step: None if step.steal is None else MACHINES)
    return [*programs, *machines] or Lacking("needs the CPU of the machine and of the service's processes")


def claim(facts: Facts, level: Level[str]) -> Claim:
    """Hold one level against the processor time that others took of it."""
    if level.detail == MACHINES:
        return _stolen(level)
    curve, step = level.curve, level.step
    used = used_by_others(curve, step)
    waiting = requests_wait(step)
    # 5 % of very little running is nothing: waiting is compared with the requests' own time.
    felt = "what part of their time requests wait for a core is not known"
    if waiting is not None:
        felt = (
            f"requests wait for a core {percent(waiting)} of the time that they are under way "
            f"(limit {percent(SERVICE_WAITS)})"
        )
    signals = [
        grading.stated(
            "others.cores",
            used / facts.cores >= OTHERS_MATTER,
            text=f"other programs use {used:.2f} of {facts.cores} cores "
            f"(limit {OTHERS_MATTER * facts.cores:.2g})",
            chip=f"others use {used:.2f} cores",
        ),
        waits_signal(step),
        # A service that has all the cores it may use lost nothing: its threads wait for each other.
        grading.stated("service.lacks", _is_taken(curve, step), text=_lacked_text(curve, step)),
        grading.stated("requests.wait", None if waiting is None else waiting >= SERVICE_WAITS, text=felt),
    ]
    part = _part_rival(curve, step)

    def words(_: Grade) -> Words:
        return Words(
            statement=f"Other programs use {used:.2f} of {facts.cores} cores while the service waits for one",
            explanation=f"The service itself uses {step.server_cores:.2f}; "
            "what it could do alone is not known.",
            advice=f"Stop the other programs ({used:.2f} cores) or give the service its own, then repeat.",
            confirm="the lightest and the highest level again on an idle machine",
            impact=used / (used + step.server_cores) if used + step.server_cores else 0.0,
            scope=level.label,
        )

    # A database that was not named would look just so.
    cap = Grade.SUSPECTED if part.ruled_out is None else Grade.STRONG
    explains_others = _is_taken(curve, curve.steps[-1]) and _may_limit(facts, curve)
    return on_curve(curve, signals, [part], words, cap=cap, explains_others=explains_others)


def _may_limit(facts: Facts, curve: Curve) -> bool:
    """False if the service has CPU to spare at the highest load, and requests hardly wait for a core there.

    Waiting for a core is then a small part of the waiting, and throughput stops for something else.
    """
    top, waiting = curve.steps[-1], requests_wait(curve.steps[-1])
    alone, mean = waits.alone_of(curve), top.response.mean
    if waiting is None or not isinstance(alone, Estimate) or not isinstance(mean, Estimate):
        return True
    share = 1 - alone.point / mean.point
    return waits.cpu_signal(facts, curve, top).evidence.passed is not True or waiting >= waits.MOSTLY * share


def _lacked_text(curve: Curve, step: Step) -> str:
    may = cores_of(curve, step)
    return (
        f"the service uses {step.server_cores:.2f} of the {may:g} cores that it may use, others took "
        f"{_taken(curve, step):.2f} of them at most (limit {OTHERS_MATTER * may:.2g})"
    )


def _is_taken(curve: Curve, step: Step) -> bool:
    return _taken(curve, step) >= OTHERS_MATTER * cores_of(curve, step)


def _taken(curve: Curve, step: Step) -> float:
    """Return the cores that others used and the service might have had, at most."""
    lab = 0.0 if curve.shares_cores is False else step.generator.cpu_cores or 0.0
    return min(used_by_others(curve, step), max(0.0, cores_of(curve, step) - step.server_cores - lab))


def _part_rival(curve: Curve, step: Step) -> Counter:
    """Weigh a part of the service: work that grows with throughput belongs to it, in whatever program."""
    name = "an unnamed part of the service"
    watched = [level for level in curve.steps if level.other_cores is not None]
    first, last = (step, watched[-1]) if step is watched[0] else (watched[0], step)
    if first is last:
        return grading.rival(name, "there is no other level to compare", None)
    before, now, done = used_by_others(curve, first), used_by_others(curve, last), completed(first)
    growth = completed(last) / done if done > 0 else 0.0
    text = (
        f"others use {before:.2f} cores at {first.load:g} and {now:.2f} at {last.load:g}, "
        f"with {growth:.2f} times the throughput"
    )
    if growth >= 1 and now <= FALLS_TO * before:
        return grading.rival(name, text, True)
    constant = others_without_load(curve, first, last)
    is_apart = None if constant is None else constant >= CONSTANT * used_by_others(curve, step)
    return grading.rival(name, text, is_apart)


def _stolen(level: Level[str]) -> Claim:
    curve, step = level.curve, level.step
    stolen, worst = step.stolen or 0.0, step.steal or 0.0
    is_much = stolen >= OTHERS_MATTER
    limits = f"whether the service felt it is not known below {percent(OTHERS_MATTER)}"
    if is_much:
        limits = "so much is gone that what the service lacked may be in it"
    signals = [
        grading.stated(
            "host.steal",
            stolen > STOLEN_MATTERS,
            text=f"the hypervisor gave {percent(stolen)} of the machine to others "
            f"(limit {percent(STOLEN_MATTERS)})",
            chip=f"{percent(stolen)} stolen",
        ),
        grading.stated("host.steal-limits", True if is_much else None, text=limits),
    ]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"Other machines on this host took {percent(stolen)} of its time",
            explanation=f"The mean of this level's trials, {percent(worst)} in the worst: its "
            "figures are those of a slower machine.",
            advice=f"Repeat {step.label} at a quieter time, or on a machine that shares nothing.",
            confirm="the same level again while nothing is stolen",
            impact=stolen,
            scope=level.label,
        )

    explains_others = (curve.steps[-1].stolen or 0.0) >= OTHERS_MATTER
    return on_curve(curve, signals, [], words, explains_others=explains_others)


def _silence(facts: Facts, observed: Sequence[Level[str]]) -> str:
    parts = []
    others = [(level.curve, level.step) for level in observed if level.detail == PROGRAMS]
    stolen = [level.step.steal or 0.0 for level in observed if level.detail == MACHINES]
    if others:
        curve, worst = max(others, key=lambda pair: used_by_others(*pair))
        text = f"other programs use up to {used_by_others(curve, worst):.2f} of {facts.cores} cores"
        part = _part_rival(curve, worst)
        if part.ruled_out is False:
            text += f", and more under load ({part.text}): they work for the service"
        elif not _is_taken(curve, worst):
            text += f"; {_lacked_text(curve, worst)}"
        parts.append(text)
    if stolen:
        parts.append(f"{percent(max(stolen))} was stolen at most")
    return "; ".join(parts)


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
