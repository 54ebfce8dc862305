"""Family: a flaw, the function that draws services with and without it, and the ground truth of each.

A diagnosis meets a `Need` with any of its rules. Which rules can fire depends on the tier: A sees responses
only, B also the processes, C also the service's own metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from catalogue.drawing import Draws

Tier = Literal["A", "B", "C"]
TIERS: Final[tuple[Tier, ...]] = ("A", "B", "C")

# True of any service that is loaded up to its limit on a small machine, with or without a flaw: throughput
# stops growing because the processor, the generator or the load is exhausted. None of these names a flaw.
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
# Rules about the quality of the measurement, which are scored separately.
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
    """A required finding; in a tier, any rule listed under the highest tier up to it."""

    by_tier: Mapping[Tier, tuple[str, ...]]

    def rules(self, tier: Tier) -> tuple[str, ...]:
        """Return the rules that meet the need in this tier; empty if the tier does not show enough."""
        listed = [step for step in TIERS[: TIERS.index(tier) + 1] if step in self.by_tier]
        return self.by_tier[listed[-1]] if listed else ()

    @property
    def all_rules(self) -> frozenset[str]:
        """Its rules in any tier: true, even where they are not required."""
        return frozenset(rule for rules in self.by_tier.values() for rule in rules)


def need(*rules: str, tier: Tier = "A") -> Need:
    """Require any of these rules from a tier on."""
    return Need({tier: rules})


@dataclass(frozen=True, slots=True)
class Label:
    """Rules that a diagnosis of one service must or may report; the first need is the primary cause."""

    needs: tuple[Need, ...] = ()
    allowed: frozenset[str] = frozenset()  # true as well, and secondary

    @property
    def needed(self) -> frozenset[str]:
        """Every rule that any need names, in any tier."""
        return frozenset(rule for need in self.needs for rule in need.all_rules)

    @property
    def true(self) -> frozenset[str]:
        """Every rule that would not be a false finding."""
        return self.needed | self.allowed | ABOUT_THE_MEASUREMENT


HEALTHY: Final = Label(allowed=LIMITS_OF_THE_MACHINE)


@dataclass(frozen=True, slots=True)
class Number:
    """A true number that a diagnosis may claim."""

    value: float
    unit: str  # "1/s", "s", "requests", "share", "users"


@dataclass(frozen=True, slots=True)
class Front:
    """The fault proxy in front of the servers."""

    turns: tuple[int, ...]  # index of the server for each turn of the round-robin
    faults: Mapping[str, Any] = field(default_factory=dict)  # settings of crates/proxy


@dataclass(frozen=True, slots=True)
class Environment:
    """Conditions outside the service."""

    neighbour_cores: int = 0  # cores that another program keeps busy
    neighbour_cpus: tuple[int, ...] = ()  # where that program runs; empty: anywhere
    generator_cpus: tuple[int, ...] = ()  # where the diagnosis itself runs; empty: anywhere
    quota_cores: float | None = None  # of the servers' control group
    quota_period_s: float = 0.1
    memory_bytes: int | None = None  # of the same group, page cache included
    ports: int | None = None  # local ports of the service's own network; None: the machine's network


@dataclass(frozen=True, slots=True)
class Setup:
    """Servers to start, in order. Load goes to the front if there is one, else to the last server.

    In settings, `"@0"` in place of a port is the port of the first server, `"@1"` of the second.
    """

    servers: tuple[Mapping[str, Any], ...]  # settings of crates/lab/specimen
    front: Front | None = None
    environment: Environment = Environment()
    metrics_from: int | None = -1  # index of the server whose metrics the diagnosis gets


@dataclass(frozen=True, slots=True)
class Specimen:
    """A service with its ground truth."""

    setup: Setup
    label: Label
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @property
    def capacity_per_s(self) -> float | None:
        """Highest throughput in responses per second; None if there is no formula for it."""
        return self.numbers["capacity"].value if "capacity" in self.numbers else None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A specimen with the flaw, and its twin, which lacks the flaw and is otherwise identical."""

    flawed: Specimen
    twin: Specimen | None = None  # None: there is no flaw to remove
    repaired: Specimen | None = None  # with one remedy: the flaw is still there but costs less


@dataclass(frozen=True, slots=True)
class Fix:
    """The change that the advice amounts to, for families with a service to which it was applied.

    That service is the repaired specimen if there is one, else the twin. Predictions of the fix are compared
    with its measured capacity. Most twins have no limit within reach, so there is nothing to compare.
    """

    what: str  # the change
    rules: tuple[str, ...]  # rules that advise it
    words: tuple[str, ...] = ()  # a prediction is about this change if it contains any of them; empty: always


@dataclass(frozen=True, slots=True)
class Family:
    """A flaw, and services that have it."""

    name: str
    flaw: str  # one sentence; for a healthy family, what might be mistaken for a flaw
    draw: Callable[[Draws], Drawn]
    kind: Literal["flaw", "healthy", "decoy", "composite"] = "flaw"
    looks_like: tuple[str, ...] = ()  # families with the same curve and another cause
    wants: tuple[Literal["control groups", "memory groups", "networks", "two processors"], ...] = ()
    fix: Fix | None = None  # None: no service has the advice applied

    def drawn(self, seed: int, severity: float | None = None) -> Drawn:
        """Return the specimen of a seed, with its twin."""
        return self.draw(Draws(self.name, seed, severity))
