"""Generator and service take the same cores from each other.

**Means.** Both want more than the cores they share can give. Throughput is what the two reach together, and
response times include waiting that a service with cores of its own would not have.

**Needs.** At the highest load: the cores that the generator may use are 90 % busy; Loadlens takes at least
10 % of them, or sends late because it lacks them (it waits for a core for 10 % of the time, and its lag is
above its limit); other programs than Loadlens take at least 25 % of them; the service's threads wait for a
core for 5 % of the time that they run, or more; and throughput no longer grows with the load, where users
wait for responses.

**Ruled out by.** Separate cores for each; other programs that take the larger part of what Loadlens does not
take itself. If Loadlens takes less than a third of what the others take, the service is short of cores with
or without it: then this finding explains no other.

**Thresholds.** 0.9: /proc is exact to 2 to 3 %, and above it no core is free. 10 %: the service could gain no
more than what the generator takes, and less is within the precision of a capacity. A third: without the
generator 25 % of the cores would be free, and the service a third faster at most. 25 %: the kernel's work for
the network, which belongs to no process, takes up to a fifth of a core.

**Do.** Pin generator and service to separate cores, or generate on another machine. The service then does
what its cores support by the CPU time of a request.

**Confirm.** Pin the generator to one core: the CPU time of a request stays, throughput changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.curve_signals import gain_text, waits_signal
from loadlens.estimate.saturation import GAIN_PER_DOUBLING
from loadlens.measure.curve import Capacity, capacity_of, generator_in_time
from loadlens.measure.thresholds import FULL_CORES, OTHERS_MATTER
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Grade
from loadlens.model.quality import OwnCores
from loadlens.present import numbers
from loadlens.present.numbers import percent

ID = "colocation.contention"
TITLE = "generator and service take cores from each other"
EXPLAINS: tuple[str, ...] = ("gen.bottleneck", "cpu.saturated", "saturation.plateau")

LAB_MATTERS = 0.10
SERVICE_THERE = 0.25
MOSTLY = 0.5  # of what others than Loadlens take
EXPLAINS_FROM = 1 / 3  # of the same, taken by Loadlens: less is no reason why the rest is full


@dataclass(frozen=True, slots=True)
class SharedCores:
    """The highest load of a curve, and the cores that generator and service may meet on."""

    curve: Curve
    step: Step
    cores: OwnCores

    @property
    def busy(self) -> float:
        """Share of the cores' time that anything used."""
        return self.cores.busy / self.cores.cores

    @property
    def generator(self) -> float:
        """Share of the cores' time that Loadlens used."""
        return self.cores.lab / self.cores.cores

    @property
    def starved(self) -> float:
        """Share of the time for which the generator had no core; 0 where it did not send late for it."""
        watch = self.step.generator
        return 0.0 if generator_in_time(watch) is not False else watch.waiting or 0.0


def observe(facts: Facts) -> Sequence[SharedCores] | Lacking | Nothing:
    """Return the highest load of every curve whose parts may meet on a core."""
    tops = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    if tops and all(curve.shares_cores is False for curve, _ in tops):
        return Nothing("generator and service ran on cores of their own")
    shared = [
        SharedCores(curve, step, cores)
        for curve, step in tops
        if curve.shares_cores is not False and step.processes and (cores := step.quality.own_cores)
    ]
    return shared or Lacking("needs the CPU of the service's processes and of each core")


def claim(_: Facts, shared: SharedCores) -> Claim:
    """Hold full cores against what Loadlens, the service and other programs take of them."""
    curve, step, cores = shared.curve, shared.step, shared.cores
    rest, capacity = max(0.0, shared.busy - shared.generator), capacity_of(curve)
    signals = [
        grading.stated(
            "cores.busy",
            shared.busy >= FULL_CORES,
            text=f"the generator's cores are {percent(shared.busy)} busy (limit {percent(FULL_CORES)})",
            chip=f"shared cores {percent(shared.busy)} busy",
        ),
        grading.stated(
            "cores.generator",
            shared.generator >= LAB_MATTERS or shared.starved >= LAB_MATTERS,
            text=f"Loadlens takes {percent(shared.generator)} of them, and sends late without a core "
            f"for {percent(shared.starved)} of the time (limit {percent(LAB_MATTERS)})",
            chip=f"generator takes {percent(shared.generator)}",
        ),
        grading.stated(
            "cores.service",
            shared.busy - shared.generator >= SERVICE_THERE,
            text=f"others than Loadlens take {percent(rest)} of them (limit {percent(SERVICE_THERE)})",
            chip=f"the rest {percent(rest)}",
        ),
        waits_signal(step),
    ]
    if isinstance(capacity, Capacity):  # nothing is known of open loads
        gain = capacity.saturation.gain_per_doubling
        # While throughput still grows with users, the service is not yet short of cores.
        signals.append(grading.stated("plateau", gain < GAIN_PER_DOUBLING, text=gain_text(gain)))

    def words(_: Grade) -> Words:
        where = "the core" if cores.cores == 1 else f"the {cores.cores} cores"
        generator = f"lacks one {percent(shared.starved)}"
        if shared.generator >= LAB_MATTERS:
            generator = f"takes {percent(shared.generator)}"
        return Words(
            statement=f"Generator and service fill {where} they share: the generator {generator}",
            explanation=f"At {step.load:g} {'users' if curve.is_closed else '/s offered'} the service has "
            f"what the generator leaves it: {numbers.short(step.throughput)} is what both reach together.",
            advice=f"Give the service cores of its own: Loadlens takes {cores.lab:.2f} of {cores.cores} "
            "here, which the service would have (cpus: in the study, taskset with explain).",
            confirm="the generator on one core that the service does not use: CPU time of a request stays, "
            "throughput changes",
            impact=max(shared.generator, shared.starved),
        )

    explains_others = cores.lab >= EXPLAINS_FROM * (cores.busy - cores.lab)
    return on_curve(curve, signals, [_other_programs(shared)], words, explains_others=explains_others)


def _other_programs(shared: SharedCores) -> Counter:
    name, used, cores = "other programs", shared.step.other_cores, shared.cores
    if used is None:
        return grading.rival(name, "the machine as a whole was not watched", None)
    text = f"other programs use {used:.2f} cores"
    if used >= MOSTLY * max(0.0, cores.busy - cores.lab):
        return grading.rival(name, text, False)
    return grading.rival(name, text, True if used < OTHERS_MATTER * cores.cores else None)


def _silence(facts: Facts, observed: Sequence[SharedCores]) -> str:
    fullest = claim(facts, max(observed, key=lambda shared: shared.busy))
    return f"on {fullest.where} {grading.unclear(fullest.signals) or fullest.rivals[0].text}"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
