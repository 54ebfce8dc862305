"""Report of an external load generator, and the reasons for figures that it does not give."""

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
class ExternalReport:
    """Report of one external load generator in one trial."""

    name: str
    version: str
    seconds: float  # of the load
    users: int  # planned concurrent connections
    load: ExternalLoad
    rounding_s: Mapping[str, float]  # step to which it rounds: mean, stdev, min, max, quantiles
    tells_requests: bool  # lists every request: figures are computed from them

    @property
    def title(self) -> str:
        """Name and version."""
        return self.version if self.name in self.version else f"{self.name} {self.version}".rstrip()

    def not_reported(self, metric: str, what: str) -> NotMeasured:
        """Return the reason why a figure is missing: the report does not give it."""
        return NotMeasured(metric, self.does_not_say(what))

    def does_not_say(self, what: str) -> str:
        """Return, for example, `wrk does not say when requests were due`."""
        return f"{self.name} does not say {what}"

    @property
    def counts(self) -> ExternalCounts:
        """Counts of requests in the report."""
        return self.load.requests

    @property
    def ended(self) -> int:
        """Requests that were answered or failed."""
        return self.counts.ended

    @property
    def most_open(self) -> int:
        """Most requests in flight at the end: one per connection if the report does not say."""
        return self.users if self.counts.in_flight is None else self.counts.in_flight

    def sent(self) -> tuple[Part, ...]:
        """Return the requests that may have reached the service, including those in flight at the end."""
        load = Part(f"load by {self.name}", self.counts.answered, self.ended)
        return load, Part(AT_THE_END, 0, self.most_open)

    def rate(self) -> Interval | None:
        """Successes per second."""
        return self._bare(self.load.throughput_rps.value, self.counts.ok or 0, "rate")

    def service_time(self, statistic: str) -> Interval | None:
        """Return the mean, spread, an extreme or a quantile (`p99`) of its times."""
        times = self.load.service_time_s
        if times is None:
            return None
        what = statistic if statistic in ("mean", *EXTREMES) else "quantiles"
        return self._bare(times.value(statistic), times.count, what)

    def _bare(self, value: float | None, count: int, what: str) -> Interval | None:
        """Return a figure as reported, without an interval: its variation within the trial is unknown."""
        if value is None:
            return None
        step = self.rounding_s.get(what)
        rounded = "" if step is None else f", rounded to {duration_text(step)}"
        return Interval(float(value), None, None, float(count), f"reported by {self.name}{rounded}")


def driver_of(result: EngineResult | None) -> str | None:
    """Return the name of the external load generator of a result; none if our engine made the load."""
    return None if result is None or result.driver is None else result.driver.name


def does_not(names: Iterable[str]) -> str:
    """`wrk does not`, `ab, hey and wrk do not`; empty without names."""
    *others, last = tuple(dict.fromkeys(names)) or ("",)
    if not last:
        return ""
    return f"{', '.join(others)} and {last} do not" if others else f"{last} does not"


def external_report_of(result: EngineResult | None, users: int = 0) -> ExternalReport | None:
    """Return the report of the external load generator of a result; none if our engine made the load.

    Args:
        result: Result of the load.
        users: Planned concurrent connections.
    """
    if result is None or result.driver is None or result.external is None:
        return None
    driver = result.driver
    return ExternalReport(
        name=driver.name,
        version=driver.version or "",
        seconds=result.measured_s,
        users=users,
        load=result.external,
        rounding_s=driver.rounding_s,
        tells_requests=driver.tells_requests,
    )
