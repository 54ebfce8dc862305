"""A program of others that made the load of a trial: what it told of it, and why the rest is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loadlens.estimate.interval import Interval
from loadlens.estimate.reconciliation import Part
from loadlens.model.finding import NotMeasured
from loadlens.model.result import EXTREMES, EngineResult, ExternalCounts, ExternalLoad
from loadlens.units import duration_text

NO_RESPONSE = "when requests were due"
AT_THE_END = "in flight at the end"


@dataclass(frozen=True, slots=True, eq=False)
class Teller:
    """One such program in one trial."""

    name: str
    version: str
    seconds: float  # of the load
    users: int  # connections at once, as planned
    load: ExternalLoad
    rounding_s: Mapping[str, float]  # what it rounds before it tells: mean, stdev, min, max, quantiles
    tells_requests: bool  # every single one, so that figures come from them

    @property
    def title(self) -> str:
        """Name and version."""
        return self.version if self.name in self.version else f"{self.name} {self.version}".rstrip()

    def not_told(self, metric: str, what: str) -> NotMeasured:
        """A figure that it does not give."""
        return NotMeasured(metric, self.does_not_say(what))

    def does_not_say(self, what: str) -> str:
        """`wrk does not say when requests were due`."""
        return f"{self.name} does not say {what}"

    @property
    def counts(self) -> ExternalCounts:
        """Requests as it counted them."""
        return self.load.requests

    @property
    def ended(self) -> int:
        """Requests that were answered or failed."""
        return self.counts.ended

    @property
    def most_open(self) -> int:
        """Requests that may have been under way at the end: one a connection, where it does not say."""
        return self.users if self.counts.in_flight is None else self.counts.in_flight

    def sent(self) -> tuple[Part, ...]:
        """Requests that may have reached the service, those under way at the end among them."""
        load = Part(f"load by {self.name}", self.counts.answered, self.ended)
        return load, Part(AT_THE_END, 0, self.most_open)

    def rate(self) -> Interval | None:
        """Successes per second."""
        return self._bare(self.load.throughput_rps.value, self.counts.ok or 0, "rate")

    def service_time(self, statistic: str) -> Interval | None:
        """Mean, spread, extreme or quantile (`p99`) of its times."""
        times = self.load.service_time_s
        if times is None:
            return None
        what = statistic if statistic in ("mean", *EXTREMES) else "quantiles"
        return self._bare(times.value(statistic), times.count, what)

    def _bare(self, value: float | None, count: int, what: str) -> Interval | None:
        """A figure as it was told, without an interval: how it varied within the trial is not known."""
        if value is None:
            return None
        step = self.rounding_s.get(what)
        rounded = "" if step is None else f", rounded to {duration_text(step)}"
        return Interval(float(value), None, None, float(count), f"told by {self.name}{rounded}")


def driver_of(result: EngineResult | None) -> str | None:
    """The name of the program that made the load of a result in our engine's place; none: our engine did."""
    return None if result is None or result.driver is None else result.driver.name


def does_not(names: Iterable[str]) -> str:
    """`wrk does not`, `ab, hey and wrk do not`; empty without names."""
    *others, last = tuple(dict.fromkeys(names)) or ("",)
    if not last:
        return ""
    return f"{', '.join(others)} and {last} do not" if others else f"{last} does not"


def teller_of(result: EngineResult | None, users: int = 0) -> Teller | None:
    """The program that made the load of a result in our engine's place; none: our engine did.

    Args:
        result: Of the load.
        users: Connections at once, as planned.
    """
    if result is None or result.driver is None or result.external is None:
        return None
    driver = result.driver
    return Teller(
        name=driver.name,
        version=driver.version or "",
        seconds=result.measured_s,
        users=users,
        load=result.external,
        rounding_s=driver.rounding_s,
        tells_requests=driver.tells_requests,
    )
