"""Pytest plugin: fixtures that make loads and keep a service, and failures that show their evidence.

pytest imports this file in every session, so it imports nothing else before a fixture is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from loadlens.api.service import Service
    from loadlens.api.testing import Loads

MARK = "loadlens"
# Properties of a test in JUnit XML and for the summary.
SECONDS = "loadlens.seconds"  # that a load took
NO_TIME = "loadlens.no_time"  # left of the budget
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the time budget, as an option and as a setting."""
    about = "time for all loads of the session; tests with a load that does not fit are skipped: 2m"
    parser.getgroup("loadlens").addoption("--loadlens-budget", metavar="TIME", help=about)
    parser.addini("loadlens_budget", about, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark."""
    config.addinivalue_line(
        "markers", f"{MARK}: makes a load; every test with the fixture of this name has it"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the tests that make loads, so that `-m 'not loadlens'` leaves them out."""
    for item in items:
        if MARK in getattr(item, "fixturenames", ()):
            item.add_marker(MARK)


@pytest.fixture
def loadlens(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loads:
    """Verbs as functions, as in the package: `loadlens.hit(url, rate=50, duration="5s")`.

    One load runs at a time on this machine, and its figures become properties of the test in JUnit XML.
    """
    from loadlens.api.testing import Loads

    return Loads.of(request, tmp_path_factory)


@pytest.fixture(scope="module")
def loadlens_service(request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    """Start services, each once per module: `loadlens_service("python app.py $port", ready="/health")`.

    They end after the last test of the module, or with this process.
    """
    from loadlens.api.service import Services

    with Services(request.config.rootpath) as services:
        yield services.started


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain a figure that does not keep its limit: value, interval, origin, what would decide."""
    module = sys.modules.get("loadlens.api.measured")
    if module is None or op not in FLIPPED:
        return None
    for figure, sign, limit in ((left, op, right), (right, FLIPPED[op], left)):
        if isinstance(figure, module.Measured):
            return list(figure.against(sign, limit).lines)
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many loads there were, how long they took, and how many tests had no time for theirs."""
    properties = [
        (name, str(value))
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.getreports(outcome)
        for name, value in getattr(report, "user_properties", ())
    ]
    seconds = [float(value) for name, value in properties if name == SECONDS]
    lacking = sum(name == NO_TIME for name, _ in properties)
    if seconds or lacking:
        words = f"loadlens: {len(seconds)} load{'s' * (len(seconds) != 1)} in {sum(seconds):.1f} s"
        terminalreporter.write_line(words + f", no time left for {lacking}" * (lacking > 0))
