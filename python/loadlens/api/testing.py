"""Loads within tests: one at a time on this machine, within a budget, with their figures in JUnit XML."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

import pytest

from loadlens import temporary, units
from loadlens.api import verbs
from loadlens.api.pytest_plugin import NO_TIME, SECONDS
from loadlens.api.results import Compared, Explained, Found, Load, Outcome, Studied
from loadlens.cli.hit_load import DEFAULT_DURATION, quantity
from loadlens.errors import LoadlensError
from loadlens.present import numbers

if TYPE_CHECKING:
    from loadlens.api.flags import CapacityFlags, CompareFlags, ExplainFlags, HitFlags, RunFlags

Made = TypeVar("Made", bound=Outcome)


@dataclass(frozen=True, slots=True, repr=False)
class Loads:
    """The verbs as functions, for one test."""

    test: pytest.Item
    budget_s: float | None
    used: Path  # seconds that loads of the session took, shared by the processes of pytest-xdist

    @classmethod
    def of(cls, request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Loads:
        """Return the verbs for the test of a request.

        Raises:
            UsageError: The budget is no time.
        """
        config = request.config
        text = config.getoption("--loadlens-budget") or config.getini("loadlens_budget")
        folder = folders.getbasetemp()
        # Not by the environment, which a pytest that a test starts has as well.
        shared = folder.parent if hasattr(config, "workerinput") else folder
        budget = quantity(units.duration_s, text, "--loadlens-budget") if text else None
        return cls(request.node, budget, shared / "loadlens-seconds")

    def __repr__(self) -> str:
        return f"<loadlens of {self.test.name}>"

    def hit(self, *urls: str, **flags: Unpack[HitFlags]) -> Load:
        """Load a URL, as `loadlens.hit` does."""
        __tracebackhide__ = True
        return self._made("hit", lambda: verbs.hit(*urls, **flags), flags)

    def run(self, study: str | Path, **flags: Unpack[RunFlags]) -> Studied:
        """Run a study, as `loadlens.run` does."""
        __tracebackhide__ = True
        return self._made("run", lambda: verbs.run(study, **flags), flags)

    def explain(self, *targets: str | Path, **flags: Unpack[ExplainFlags]) -> Explained:
        """Find what limits a service, as `loadlens.explain` does."""
        __tracebackhide__ = True
        return self._made("explain", lambda: verbs.explain(*targets, **flags), flags)

    def capacity(self, *targets: str | Path, **flags: Unpack[CapacityFlags]) -> Found:
        """Find the highest rate that meets objectives, as `loadlens.capacity` does."""
        __tracebackhide__ = True
        return self._made("capacity", lambda: verbs.capacity(*targets, **flags), flags)

    def compare(self, *targets: str | Path, **flags: Unpack[CompareFlags]) -> Compared:
        """Compare two versions, as `loadlens.compare` does."""
        __tracebackhide__ = True
        return self._made("compare", lambda: verbs.compare(*targets, **flags), flags)

    def _made(self, verb: str, make: Callable[[], Made], flags: Mapping[str, object]) -> Made:
        """Make a load when it is the turn of this test and there is time for it."""
        __tracebackhide__ = True
        with _alone():
            used_s = float(self.used.read_text()) if self.used.exists() else 0.0
            if self.budget_s is not None and used_s + _least_s(verb, flags) > self.budget_s:
                words = (
                    f"{numbers.duration(self.budget_s)} for loads, {numbers.duration(used_s)} of them used"
                )
                self.test.user_properties.append((NO_TIME, words))
                pytest.skip(f"no time left: {words}")
            began = time.monotonic()
            try:
                made = make()
            except LoadlensError as fault:
                raise fault.with_traceback(None) from None  # the line of the test says where
            finally:
                took_s = time.monotonic() - began
                self.used.write_text(repr(used_s + took_s))
            self.test.user_properties.append((SECONDS, f"{took_s:.1f}"))
        self._note(made)
        return made

    def _note(self, made: Outcome) -> None:
        """Make the answer and its figures properties of the test."""
        before = sum(name.endswith(".load") for name, _ in self.test.user_properties)
        prefix = "loadlens" if not before else f"loadlens.{before + 1}"
        properties = [("load", made.title), ("answer", made.headline)]
        properties += [
            (row.metric, numbers.show(row.figure).with_interval)
            for row in made.content.rows
            if row.label and row.figure is not None and not (row.case or row.step)
        ]
        self.test.user_properties += [(f"{prefix}.{name}", text) for name, text in properties]


def _least_s(verb: str, flags: Mapping[str, object]) -> float:
    """Return how long a load will take, as far as its keywords say so."""
    name = "duration" if verb == "hit" else "budget"
    default = DEFAULT_DURATION if name == "duration" and flags.get("requests") is None else "0s"
    return quantity(units.duration_s, str(flags.get(name) or default), f"--{name}")


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other test of this user makes a load on this machine; a process that ends gives way."""
    path = temporary.default_cache() / "pytest.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
