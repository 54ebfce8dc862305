"""What a family is: a flaw, how a specimen and its twin are drawn, and what is true of each.

A *need* is satisfied by any of its rules. What can be told depends on what was looked at: tier A sees answers
only, B the processes too, C the service's own metrics as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from catalogue.drawing import Draws

Tier = Literal["A", "B", "C"]
TIERS: Final[tuple[Tier, ...]] = ("A", "B", "C")

# What is true of any service that is driven to its end on a small machine, flaw or not: its throughput stops
# somewhere, because the processor, the generator or the load has come to an end. None of it names a flaw of
# the service.
LIMITS_OF_THE_MACHINE: Final = frozenset(
    {
        "saturation.plateau",
        "cpu.saturated",
        "load.underdriven",
        "gen.bottleneck",
        "colocation.contention",
        "no-finding.healthy",
    }
)
# What says how much the measurement can be trusted, and is judged apart.
ABOUT_THE_MEASUREMENT: Final = frozenset(
    {
        "co.omission",
        "noise.between-runs",
        "quantile.boundary",
        "quantile.insufficient",
        "steady.none",
        "host.interference",
    }
)


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that must be found; at a tier, any of the rules under the highest tier up to it."""

    by_tier: Mapping[Tier, tuple[str, ...]]

    def rules(self, tier: Tier) -> tuple[str, ...]:
        """What satisfies it; nothing: it cannot be told in this tier."""
        known = [step for step in TIERS[: TIERS.index(tier) + 1] if step in self.by_tier]
        return self.by_tier[known[-1]] if known else ()

    @property
    def all_rules(self) -> frozenset[str]:
        """Its rules in any tier: true, even where they are not asked for."""
        return frozenset(rule for rules in self.by_tier.values() for rule in rules)


def need(*rules: str, tier: Tier = "A") -> Need:
    """Any of these, from a tier on."""
    return Need({tier: rules})


@dataclass(frozen=True, slots=True)
class Label:
    """What a diagnosis of one service must and may say; the first need is the cause that comes first."""

    needs: tuple[Need, ...] = ()
    allowed: frozenset[str] = frozenset()  # true as well, and secondary

    @property
    def needed(self) -> frozenset[str]:
        """Every rule that any need names, in any tier."""
        return frozenset(rule for one in self.needs for rule in one.all_rules)

    @property
    def true(self) -> frozenset[str]:
        """Every rule that would be no false finding."""
        return self.needed | self.allowed | ABOUT_THE_MEASUREMENT


HEALTHY: Final = Label(allowed=LIMITS_OF_THE_MACHINE)


@dataclass(frozen=True, slots=True)
class Number:
    """A true number that a diagnosis may claim."""

    value: float
    unit: str  # "1/s", "s", "requests", "share", "users"


@dataclass(frozen=True, slots=True)
class Front:
    """The fault proxy before the servers."""

    turns: tuple[int, ...]  # which server each turn of the round goes to
    faults: Mapping[str, Any] = field(default_factory=dict)  # settings of crates/proxy


@dataclass(frozen=True, slots=True)
class Around:
    """What happens beside the service."""

    neighbour_cores: int = 0  # computing for nobody
    neighbour_cpus: tuple[int, ...] = ()  # where; empty: anywhere
    generator_cpus: tuple[int, ...] = ()  # where the diagnosis itself runs; empty: anywhere
    quota_cores: float | None = None  # of a control group around the servers
    quota_period_s: float = 0.1
    memory_bytes: int | None = None  # of the same group, pages of files included
    ports: int | None = None  # local ports, in a network of their own; none: the machine's


@dataclass(frozen=True, slots=True)
class Setup:
    """What is started: servers in order, the last of which is asked unless a front stands before them.

    In settings, `"@0"` where a port is wanted is the port of the first server.
    """

    servers: tuple[Mapping[str, Any], ...]  # settings of crates/lab/specimen
    front: Front | None = None
    around: Around = Around()
    told_by: int | None = -1  # the server whose metrics are given to the diagnosis


@dataclass(frozen=True, slots=True)
class Known:
    """A service and what is true of it."""

    setup: Setup
    label: Label
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @property
    def capacity_per_s(self) -> float | None:
        """The most that it can answer in a second; none: nobody knows."""
        return self.numbers["capacity"].value if "capacity" in self.numbers else None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A specimen and its twin, which lacks the flaw and differs in nothing else."""

    flawed: Known
    twin: Known | None = None  # none: there is no flaw to take away
    mended: Known | None = None  # with one remedy, which leaves the flaw and lets it matter less


@dataclass(frozen=True, slots=True)
class Mend:
    """What somebody does who follows the advice, where a service is known of which that was done.

    That is the mended one, or where there is none the twin: its measured capacity is what the fix brought,
    and a prediction can be held against it. Most twins have no limit within reach, and say nothing of one.
    """

    what: str  # what is changed
    rules: tuple[str, ...]  # whose advice it is
    words: tuple[str, ...] = ()  # a prediction is of this change if it has any of them; none: any is


@dataclass(frozen=True, slots=True)
class Family:
    """A flaw, and services that have it."""

    name: str
    flaw: str  # one sentence; of a healthy family what might be taken for a flaw
    draw: Callable[[Draws], Drawn]
    kind: Literal["flaw", "healthy", "decoy", "composite"] = "flaw"
    looks_like: tuple[str, ...] = ()  # families with the same curve and another cause
    wants: tuple[Literal["control groups", "memory groups", "networks", "two processors"], ...] = ()
    mend: Mend | None = None  # none: no service is known of which the advice was followed

    def drawn(self, seed: int, severity: float | None = None) -> Drawn:
        """The specimen of a seed, with its twin."""
        return self.draw(Draws(self.name, seed, severity))
