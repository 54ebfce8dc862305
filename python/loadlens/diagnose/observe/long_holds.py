"""Requests that hold a place for long: a share of them decides how many all places let through.

W places let W / (mean time that one is held) requests through. Where a share s of the requests holds one for
l seconds longer than the usual u, the mean is u + s l, however quick the others are.

Source: P. J. Denning and J. P. Buzen, Computing Surveys 10 (3), 1978 (utilisation law).
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose.observe.waits import Full, constant_path
from loadlens.estimate import mixtures
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.present import numbers, words

LEAST_OF_TIME = 0.25  # of the time of all requests: less decides little
SAME = 0.25  # by which the mean time that a place is held may differ from what requests take alone


@dataclass(frozen=True, slots=True)
class LongRequests:
    """A share of the requests that takes far longer than the others, on a service without load."""

    share: float  # of the requests
    name: str  # for printing: `20 % of GET /x`
    seconds: float  # that each takes
    mean_s: float  # of all requests

    @property
    def of_time(self) -> float:
        """Share of the time of all requests."""
        return min(1.0, self.share * self.seconds / self.mean_s)

    @property
    def others_s(self) -> float:
        """Mean time of the other requests."""
        return max(0.0, self.mean_s - self.share * self.seconds) / (1 - self.share)

    @property
    def of_places(self) -> str:
        """`20 % of requests hold them 91 % of the time`."""
        share, time = numbers.percent(self.share), numbers.percent(self.of_time)
        return f"{share} of requests hold them {time} of the time"

    def text(self, places: float, noun: str, full: Full) -> str:
        """State the law: `4 threads / 90.0 ms each = 44.4 /s, and 43.9 /s came out: 20 % of GET /x ...`."""
        mean, each = numbers.with_unit(self.mean_s, "s"), numbers.with_unit(self.seconds, "s")
        law, others = numbers.with_unit(places / self.mean_s, "1/s"), numbers.with_unit(self.others_s, "s")
        return (
            f"{words.plural(round(places), noun)} / {mean} each = {law}, and {full.most} came out: "
            f"{self.name} hold one for {each}, the others for {others}"
        )

    def apart(self, places: float) -> str:
        """Advise to serve the long requests elsewhere, with what the places then carry."""
        rate = numbers.with_unit(places / self.others_s, "1/s") if self.others_s > 0 else "far more"
        return f"Or give the long ones places of their own: these then carry {rate} of the others"


def long_requests(full: Full) -> LongRequests | None:
    """Return the requests that take much of the time though they are few; none: there are none.

    They are a slow path of the costliest kind, or a kind of request of their own.
    """
    seen = [each for each in (_of_a_path(full), _of_a_kind(full)) if each is not None]
    return max(
        (each for each in seen if each.of_time >= LEAST_OF_TIME), key=lambda each: each.of_time, default=None
    )


def _of_a_path(full: Full) -> LongRequests | None:
    path = constant_path(full.curve)
    if path is None or path.usual_s is None:
        return None
    share, shift_s = figures.point(path.weight), figures.point(path.shift)
    if not (share > 0 and shift_s > 0):
        return None
    mean_s = path.usual_s + share * shift_s
    name = f"{numbers.percent(share)} of {path.request}"
    return LongRequests(share, name, path.usual_s + shift_s, mean_s)


def _of_a_kind(full: Full) -> LongRequests | None:
    """Weigh the kinds at the highest load by what each takes at the lightest."""
    first = {kind.label: figures.point(kind.response.mean) for kind in full.curve.steps[0].classes}
    kinds = [(kind, figures.point(kind.rate), first.get(kind.label, 0.0)) for kind in full.top.classes]
    if len(kinds) < 2 or not all(rate > 0 and seconds > 0 for _, rate, seconds in kinds):
        return None
    whole = sum(rate for _, rate, _ in kinds)
    mean_s = sum(rate * seconds for _, rate, seconds in kinds) / whole
    longest, rate, seconds = max(kinds, key=lambda kind: kind[2])
    others = [each for each in kinds if each[0] is not longest]
    if seconds < mixtures.SLOW_RATIO * max(each for _, _, each in others):
        return None
    share = numbers.percent(rate / whole)
    return LongRequests(rate / whole, f"{share} ({longest.request})", seconds, mean_s)


def holders(full: Full, hold: Interval | Insufficient) -> LongRequests | None:
    """Return the long requests if places are held for as long as requests take, theirs included."""
    long = long_requests(full)
    if long is None or isinstance(hold, Insufficient):
        return None
    return long if abs(hold.point / long.mean_s - 1) <= SAME else None
