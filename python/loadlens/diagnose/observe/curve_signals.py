"""Signals from a load curve that rules share: the last gain, waits for cores, room left, later trials."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.estimate import saturation as load
from loadlens.measure.curve import completed, waits_for_cores, working
from loadlens.measure.thresholds import SERVICE_WAITS
from loadlens.model.facts import Curve, ProcessWatch, Step
from loadlens.present import numbers

BY_CHANCE = 0.05  # an order of trials that is as improbable is none of chance
UNACCEPTED = 0.5  # of the users whose request is not being served: a loop has accepted their connections
FEWEST_OTHERS = 4  # of these users: with fewer, connections of probes look the same
SEVERAL = 2.0  # times as many as servers or probes alone explain


def accepts_signal(curve: Curve, step: Step, servers: int, service_s: float) -> list[grading.Signal]:
    """Require that connections are accepted while others are served, as by an event loop; none if not read.

    A loop may accept a single connection between two rounds of requests, as Node's does: many of them wait,
    and more are served in turns than a worker has that stays with its connection until it is closed. Behind a
    program that passes requests on, connections say nothing of these servers.

    Args:
        servers: Loops, or processes with one.
        service_s: For which a request keeps one of them, seconds.
    """
    kernel, others = step.kernel, step.load - servers
    served = step.connections.served if step.connections is not None else 0
    is_behind = bool(step.balances) or any(process.is_called for process in working(step))
    if curve.is_closed and not is_behind and served > SEVERAL * servers:
        return [grading.stated("loop.accepts", True, text=f"{served} connections are served in turns")]
    if kernel is None or kernel.unaccepted is None or not curve.is_closed or others < FEWEST_OTHERS:
        return []
    # Those of probes that come while one request is served wait, too.
    probes = sum(probe.count for probe in step.probes) / (step.issued or 1)
    of_probes = SEVERAL * probes * completed(step) * service_s
    limit = max(UNACCEPTED * others, of_probes)
    bound = kernel.accept_queue_bound
    if bound is not None and bound < limit:  # a short queue is full before
        if bound <= of_probes:
            return []
        limit = bound
    text = f"{kernel.unaccepted:g} connections wait to be accepted (limit {limit:.3g})"
    return [grading.stated("loop.accepts", kernel.unaccepted <= limit, text=text)]


def one_thread(processes: Sequence[ProcessWatch]) -> tuple[bool | None, str]:
    """Return whether one thread does the work of each process (none: not read), and how much at least."""
    shares = [each.busiest_thread for each in processes if each.busiest_thread is not None]
    if len(shares) < len(processes):
        return None, "threads were not read"
    text = f"the busiest thread does {numbers.percent(min(shares))} of its process's work"
    return all(each.is_one_thread for each in processes), text


def gives_less_each_time(step: Step) -> bool:
    """True if a level was measured again, and each trial had a lower throughput than the one before it."""
    trials = step.throughput_trials
    return len(trials) > 1 and all(after < before for before, after in itertools.pairwise(trials))


def by_chance(repeated: Sequence[Step]) -> float:
    """Return the probability with which each trial of all these levels gives less than the one before it."""
    return 1 / math.prod(math.factorial(len(step.throughput_trials)) for step in repeated)


def gain_text(gain: float) -> str:
    """Return the gain of the last doubling of users, with the limit up to which it counts as nothing."""
    return (
        f"the last doubling of users brought {numbers.signed_percent(gain)} "
        f"(limit {numbers.percent(load.GAIN_PER_DOUBLING)})"
    )


def plateau_signal(saturation: load.Saturation) -> grading.Signal:
    """Require that throughput has reached its limit."""
    gain = numbers.signed_percent(saturation.gain_per_doubling)
    return grading.stated(
        "plateau",
        saturation.verdict != "underdriven",
        text=f"the last doubling of users brought {gain}",
        chip=f"last doubling {gain}",
    )


def gain_signal(signal: str, gain: float, passed: bool) -> grading.Signal:
    """Return the same as a signal, which the rule judges."""
    return grading.stated(
        signal,
        passed,
        text=gain_text(gain),
        chip=f"last doubling {numbers.signed_percent(gain)}",
    )


def waits_signal(step: Step) -> grading.Signal:
    """Require that the service's threads wait for a core, relative to the time that they run."""
    waits = waits_for_cores(step)
    if waits is None:
        return grading.stated(
            "service.waits", None, text="how long the service waits for a core was not read"
        )
    return grading.stated(
        "service.waits",
        waits >= SERVICE_WAITS,
        text=f"the service waits for a core {numbers.percent(waits)} of the time that it runs "
        f"(limit {numbers.percent(SERVICE_WAITS)})",
        chip=f"service waits {numbers.percent(waits)}",
    )


def room_signal(curve: Curve, step: Step, most: float) -> grading.Signal:
    """Require that the service's processes use no more than a share of its cores."""
    share = step.server_cores / curve.cores_allotted
    text = f"the service uses {numbers.percent(share)} of its cores (limit {numbers.percent(most)})"
    return grading.stated("cpu.room", share <= most, text=text, chip=f"{numbers.percent(share)} of its cores")
