"""A program of others that made the load of a trial: what it told of it, and why the rest is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loadlens.estimate.interval import Interval
from loadlens.estimate.reconciliation import Part
from loadlens.measure.source import Json
from loadlens.model.finding import NotMeasured
from loadlens.units import duration_text

NO_RESPONSE = "when requests were due"
AT_THE_END = "in flight at the end"
_BARE = ("stdev", "min", "max")  # plain numbers of the result


@dataclass(frozen=True, slots=True, eq=False)
class Teller:
    """One such program in one trial."""

    name: str
    version: str
    seconds: float  # of the load
    users: int  # connections at once, as planned
    stream: Json  # the load's part of its result
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

    def count(self, kind: str) -> int | None:
        """A count of `requests`; none: it does not tell."""
        value = self.stream["requests"].get(kind)
        return None if value is None else int(value)

    @property
    def ended(self) -> int:
        """Requests that were answered or failed."""
        return (self.count("answered") or 0) + (self.count("failed") or 0)

    @property
    def most_open(self) -> int:
        """Requests that may have been under way at the end: one a connection, where it does not say."""
        told = self.count("in_flight")
        return self.users if told is None else told

    def sent(self) -> tuple[Part, ...]:
        """Requests that may have reached the service, those under way at the end among them."""
        answered = self.count("answered") or 0
        return Part(f"load by {self.name}", answered, self.ended), Part(AT_THE_END, 0, self.most_open)

    def rate(self) -> Interval | None:
        """Successes per second."""
        return self._bare(self.stream["throughput_rps"]["value"], self.count("ok") or 0, "rate")

    def service_time(self, statistic: str) -> Interval | None:
        """Mean, spread, extreme or quantile (`p99`) of its times."""
        times = self.stream["service_time_s"]
        if times is None:
            return None
        value = times.get(statistic)
        found = value if statistic in _BARE or value is None else value["value"]
        what = statistic if statistic in ("mean", *_BARE) else "quantiles"
        return self._bare(found, int(times["count"]), what)

    def _bare(self, value: float | None, count: int, what: str) -> Interval | None:
        """A figure as it was told, without an interval: how it varied within the trial is not known."""
        if value is None:
            return None
        step = self.rounding_s.get(what)
        rounded = "" if step is None else f", rounded to {duration_text(step)}"
        return Interval(float(value), None, None, float(count), f"told by {self.name}{rounded}")


def driver_of(engine: Json | None) -> str | None:
    """The name of the program that made the load of a result in our engine's place; none: our engine did."""
    driver = (engine or {}).get("driver")
    return None if driver is None else str(driver["name"])


def does_not(names: Iterable[str]) -> str:
    """`wrk does not`, `ab, hey and wrk do not`; empty without names."""
    *others, last = tuple(dict.fromkeys(names)) or ("",)
    if not last:
        return ""
    return f"{', '.join(others)} and {last} do not" if others else f"{last} does not"


def teller_of(engine: Json | None, users: int = 0) -> Teller | None:
    """Who made the load of a result in our engine's place; none: our engine did.

    Args:
        engine: The result.
        users: Connections at once, as planned.
    """
    driver = (engine or {}).get("driver")
    if engine is None or driver is None:
        return None
    stream = next(one for one in engine["streams"] if one["role"] == "load")
    return Teller(
        name=str(driver["name"]),
        version=str(driver.get("version") or ""),
        seconds=float(engine["measured_s"]),
        users=users,
        stream=stream,
        rounding_s=dict(driver.get("rounding_s") or {}),
        tells_requests=bool(driver.get("tells_requests")),
    )
